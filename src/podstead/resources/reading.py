"""Answers GET and HEAD: content negotiation, conditional requests, ranges."""

from __future__ import annotations

from msgspec.structs import replace

from podstead.core.conditional import PreconditionResult, evaluate_read
from podstead.core.header_fields import MINIMAL_CONTAINER, ByteRange, if_range_holds, select_range
from podstead.core.identifiers import is_container, storage_root
from podstead.core.media_types import RDF_XML
from podstead.core.operation import Operation
from podstead.resources.entity_tags import entity_tag, last_modified_ms
from podstead.resources.listings import Listings
from podstead.resources.outcome import Outcome, Representation, Result
from podstead.resources.representations import Representations
from podstead.storage.records import Metadata
from podstead.wac.gate import StorageOwners


class ResourceReader:
    """Answers reads of resources that exist."""

    def __init__(
        self,
        *,
        representations: Representations,
        listings: Listings,
        named_owners: StorageOwners | None,
    ) -> None:
        """``named_owners`` gives the published owners of storages; ``None`` to publish none."""
        self._representations = representations
        self._listings = listings
        self._named_owners = named_owners

    async def answer(self, operation: Operation, existing: Metadata) -> Outcome:
        """The outcome of an authorized GET or HEAD.

        Content negotiation precedes the evaluation of conditional headers (P-23). Raises
        NotAcceptable, PreconditionFailed, RangeNotSatisfiable, and Superseded if the resource has
        changed since ``existing`` was read.
        """
        if self._named_owners is None or storage_root(operation.target) != operation.target:
            return await self._answer(operation, existing)
        owner = await self._named_owners.owner_of(operation.target)
        return replace(await self._answer(operation, existing), owner=owner)

    async def _answer(self, operation: Operation, existing: Metadata) -> Outcome:
        as_listing = existing.kind.is_container and is_container(operation.target)
        media_type = self._representations.choose(existing, operation.accept, as_listing=as_listing)
        without_members = as_listing and operation.preferences.without_members
        etag = entity_tag(existing, media_type, without_members=without_members)
        if operation.conditions.any_given:
            verdict = evaluate_read(
                operation.conditions, etag=etag, modified_ms=last_modified_ms(existing)
            )
            if verdict is PreconditionResult.NOT_MODIFIED:
                return Outcome(Result.NOT_MODIFIED, existing, etag)
        if as_listing:
            representation = await self._listing(operation, existing, media_type)
        else:
            head = operation.method == "HEAD"
            representation = await self._representations.document(existing, media_type, head=head)
        chosen = _range(operation, representation, etag)
        result = Result.REPRESENTED if chosen is None else Result.PARTIAL
        return Outcome(result, existing, etag, representation, chosen)

    def no_description(self, operation: Operation) -> Outcome:
        """The outcome of reading a description that does not exist yet (C-30).

        Raises NotAcceptable.
        """
        representation = self._representations.empty_description(operation.accept)
        return Outcome(Result.REPRESENTED, representation=representation)

    async def _listing(
        self, operation: Operation, container: Metadata, media_type: str
    ) -> Representation:
        head = operation.method == "HEAD"
        if head and media_type != RDF_XML:
            return Representation(media_type, None, None)  # not rendered, since it is not sent
        if head or operation.preferences.without_members:
            # Rendered even for HEAD: only that shows whether RDF/XML can express the triples of the
            # container. No members are read.
            rendered = await self._listings.without_members(container, media_type)
            return Representation(media_type, None, None) if head else rendered
        return await self._listings.whole(container, media_type)


def without_members(operation: Operation, container: Metadata) -> tuple[Operation, Metadata]:
    """The read of a container by an agent that must not know its members.

    The state does not contain theirs, so neither the entity tag nor the date tells when one was
    created or deleted.
    """
    return (
        replace(operation, preferences=MINIMAL_CONTAINER),
        replace(container, members_version=None, members_modified_ms=None),
    )


def _range(operation: Operation, representation: Representation, etag: str) -> ByteRange | None:
    """The requested byte range, if this representation supports ranges (P-27); else ``None``.

    Times are too coarse to distinguish states, so an If-Range with a date gets the whole.
    """
    if operation.range is None or operation.method == "HEAD" or not representation.verbatim:
        return None
    size_bytes = representation.size_bytes
    if size_bytes is None or not if_range_holds(operation.if_range, etag, None):
        return None
    return select_range(operation.range, size_bytes)
