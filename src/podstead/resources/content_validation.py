"""Validates the content of a write for its target, and chooses the form in which it is stored.

RDF must be parsed where the server interprets it: an ACL that cannot be read would lock everybody
out, and the triples of a container are merged into its listing. Any other document with an unknown
JSON-LD context is stored as sent (R-11). A change of statements of identity needs more than the
right to write, whatever the media type (:mod:`podstead.resources.identity_changes`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from podstead.core.errors import BadRequest, BodyTooLarge
from podstead.core.identifiers import (
    Auxiliary,
    ResourcePath,
    acl_of,
    auxiliary_kind,
    is_container,
    storage_root,
)
from podstead.core.media_types import TURTLE, essence
from podstead.rdf.codecs import Document, repair_missing_final_dot
from podstead.rdf.codes import RdfCodes
from podstead.rdf.errors import MalformedRdf, UnavailableContext, UnknownContext
from podstead.rdf.graph import Dataset, Graph
from podstead.rdf.listing import (
    NotContained,
    claimed_members,
    container_statements,
    member_statements,
    server_managed,
)
from podstead.resources.documents import (
    BYTES_OF_A_TRIPLE,
    EMPTY_DATASET,
    Documents,
)
from podstead.resources.entity_tags import last_modified_ms
from podstead.resources.identity_changes import IdentityChanges
from podstead.resources.listings import listed_member, pages_of_members
from podstead.resources.outcome import ResourceRequest
from podstead.resources.planning import NO_RECORDS, Content, DerivedRecords
from podstead.resources.received import ReceivedBody
from podstead.resources.target_state import TargetState
from podstead.resources.write_hooks import ContainerHook, WriteHook
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import InlineBody, Metadata, Precondition, Record, Version
from podstead.wac.acl import check_storable

_MAX_MEMBERS_IN_MEMORY = 20_000
_TRIPLES_OF_A_MEMBER = 6
_RECENT_ROWS = 10_000
"""The last rows of the change log in which to look for a deleted member."""
_STEP_ROWS = 2_000
"""How many of them one step examines; other requests wait for it."""


class ContentValidator:
    """Validates content for the path at which it will be stored."""

    def __init__(
        self,
        *,
        store: ResourceStore,
        documents: Documents,
        identity_changes: IdentityChanges,
        write_hooks: Sequence[WriteHook] = (),
        container_hooks: Sequence[ContainerHook] = (),
    ) -> None:
        self._store = store
        self._documents = documents
        self._identity_changes = identity_changes
        self._write_hooks = tuple(write_hooks)
        self._container_hooks = container_hooks

    async def validate(
        self,
        request: ResourceRequest,
        state: TargetState,
        received: ReceivedBody,
        version: Version,
        *,
        posted: bool = False,
    ) -> Content:
        """The content to store at the target, as this version.

        ``posted`` allows a missing final dot in Turtle (R-12). Raises MalformedRdf, BadRequest for
        an unknown context where the content must be parsed, Conflict for the containment of what is
        not in a container, AccessDenied or NotAuthenticated for a change of statements of identity
        that the agent may not make, and Superseded if the current content changed while it was
        compared.
        """
        sent = received.body
        document, after = None, EMPTY_DATASET
        if received.rdf is not None:
            received, document = await self._understand(
                state, received, received.rdf, posted=posted
            )
        content = Content(received.content_type, received.body)
        if document is not None:
            content, after = await self._fit(state, content, document)
        await self._identity_changes.check(request, state, after, version)
        if content.body is not sent:
            await self._store.discard(sent)  # the write will not use it
        return await self._with_records(state, content, after)

    async def validate_document(
        self,
        request: ResourceRequest,
        state: TargetState,
        document: Document,
        media_type: str,
        version: Version,
        *,
        before: Dataset | None = None,
    ) -> Content:
        """The content for a document that a patch has produced, in the given media type.

        The document of a container must contain only its own triples. Statements of identity are
        compared with ``before``, if given, instead of what is stored. Raises as :meth:`validate`
        does, and RdfTooLarge for a document beyond the limits.
        """
        path = state.stored_path
        turtle = await self._documents.write(document, media_type, path=path)
        content = Content(media_type, InlineBody(turtle))
        after = document.dataset
        if auxiliary_kind(path) is Auxiliary.ACL:
            self._check_rules(state, document)
        await self._identity_changes.check(request, state, after, version, before=before)
        return await self._with_records(state, content, after)

    def keeps_records(self, path: ResourcePath) -> bool:
        """Whether :meth:`records_of` a document at the path may return any."""
        return any(hook.applies_to(path) for hook in self._write_hooks)

    async def records_of(self, path: ResourcePath, after: Dataset) -> DerivedRecords:
        """The records to commit with a write that gives the document at the path this content."""
        records: list[Record] = []
        preconditions: list[Precondition] = []
        for hook in self._write_hooks:
            if hook.applies_to(path):
                changes = await hook.of(path, after)
                records += changes.records
                preconditions += changes.preconditions
        if not records and not preconditions:
            return NO_RECORDS
        return DerivedRecords(tuple(records), tuple(preconditions))

    async def records_of_deletion(self, state: TargetState) -> DerivedRecords:
        """The records to commit with the deletion of the target and of its access rules."""
        derived = await self.records_of(state.stored_path, EMPTY_DATASET)
        existing = state.existing
        if existing is not None and existing.kind.is_container:
            dropped = self.records_of_containers([existing.path])
            derived = derived.with_more(DerivedRecords(tuple(dropped)))
        if existing is None or not existing.kind.is_member:
            return derived
        acl = acl_of(existing.path)
        if state.metadata(acl) is None:
            return derived
        return derived.with_more(await self.records_of(acl, EMPTY_DATASET))

    def records_of_containers(self, deleted: Iterable[ResourcePath]) -> list[Record]:
        """The records to commit with the deletion of these containers."""
        hooks = self._container_hooks
        return [each for path in deleted for hook in hooks for each in hook.of_deletion(path)]

    async def _with_records(self, state: TargetState, content: Content, after: Dataset) -> Content:
        if not self.keeps_records(state.stored_path):
            return content
        return replace(content, derived=await self.records_of(state.stored_path, after))

    async def _understand(
        self, state: TargetState, received: ReceivedBody, rdf: bytes, *, posted: bool
    ) -> tuple[ReceivedBody, Document | None]:
        """The body, repaired where that is allowed, and its document.

        The document is ``None`` if a JSON-LD context is unknown and the content need not be parsed.
        """
        path = state.target
        try:
            return received, await self._documents.parse(rdf, received.content_type, path=path)
        except UnknownContext as unknown:
            if _must_be_understood(state) and isinstance(unknown, UnavailableContext):
                raise
            if _must_be_understood(state):
                raise BadRequest(RdfCodes.UNKNOWN_CONTEXT, address=unknown.url) from unknown
            return received, None
        except MalformedRdf:
            if not posted or not _is_turtle(received):
                raise
            work = partial(repair_missing_final_dot, rdf)
            mended = await self._documents.run(work, size_bytes=len(rdf), path=path)
            if mended is None:
                raise
        received = replace(received, rdf=mended, body=InlineBody(mended))
        return received, await self._documents.parse(mended, received.content_type, path=path)

    async def _fit(
        self, state: TargetState, content: Content, document: Document
    ) -> tuple[Content, Dataset]:
        """The content to store and its triples, after the checks that the kind of resource
        needs."""
        path = state.stored_path
        if auxiliary_kind(path) is Auxiliary.ACL:
            self._check_rules(state, document)
            return content, document.dataset
        if is_container(path):
            return await self._fit_container(state, content, document)
        return content, document.dataset

    def _check_rules(self, state: TargetState, document: Document) -> None:
        """Refuse an ACL that must not be stored (W-4). Raises Conflict, BadRequest."""
        check_storable(
            document.graph,
            subject_url=self._documents.url_of(state.subject),
            of_storage_root=storage_root(state.stored_path) == state.subject,
        )

    async def _fit_container(
        self, state: TargetState, content: Content, document: Document
    ) -> tuple[Content, Dataset]:
        """Keep only the container's own triples, and drop those of the server (C-12, C-13).

        Clients send back all that they have read, and meanwhile times, sizes and members may have
        changed. Only a member that neither exists nor existed recently is refused.

        Content sent to the description is stored at the container's path, so it is serialized
        again with relative IRIs for that path (R-7).
        """
        path = state.stored_path
        url = self._documents.url_of(path)
        managed = server_managed(document.graph, container_url=url)
        if managed:
            await self._check_members(path, claimed_members(managed, container_url=url))
            document = document.with_graph(document.graph - managed)
        elif state.target == path:
            return content, document.dataset
        media_type = essence(content.content_type)
        written = await self._documents.write(document, media_type, path=path)
        return Content(media_type, InlineBody(written)), document.dataset

    async def _check_members(self, container: ResourcePath, names: Collection[str]) -> None:
        """Raises NotContained unless all these members of a container are there or were
        recently."""
        paths = {ResourcePath(container + name) for name in names}
        snapshot = await self._store.read_metadata(paths)
        missing = {path for path in paths if not _is_there(snapshot.get(path))}
        for path in sorted(missing):
            if auxiliary_kind(path) is not None:
                raise NotContained(self._documents.url_of(path))
        end = await self._store.newest_sequence() + 1 if missing else 0
        last = max(0, end - _RECENT_ROWS)
        while missing and end > last:
            first = max(last, end - _STEP_ROWS)
            rows = await self._store.changes_before(
                end, first=first, below=container, limit=_STEP_ROWS
            )
            missing -= {row.change.path for row in rows}
            end = first
            await asyncio.sleep(0)  # requests come first
        for path in sorted(missing):
            raise NotContained(self._documents.url_of(path))

    async def all_server_statements(self, state: TargetState) -> Graph:
        """Everything that the server states about the container at the target.

        Members that are created or deleted during the read may or may not be included; a write
        based on this must have the container's state as a precondition
        (:meth:`ResourceRequest.require_state`). Raises BodyTooLarge if there are too many members.
        """
        path = state.stored_path
        members: list[Metadata] = []
        async for page in pages_of_members(self._store, path):
            members += page
            if len(members) > _MAX_MEMBERS_IN_MEMORY:
                raise BodyTooLarge(
                    "A patch with conditions is applied to at most "
                    f"{_MAX_MEMBERS_IN_MEMORY} members"
                )
        work = partial(_stated, state, self._documents.url_of(path), members)
        size_bytes = len(members) * _TRIPLES_OF_A_MEMBER * BYTES_OF_A_TRIPLE
        return await self._documents.run(work, size_bytes=size_bytes, path=path)


def _stated(state: TargetState, container_url: str, members: Sequence[Metadata]) -> Graph:
    """What the server states about a container and some of its members."""
    existing = state.existing
    return container_statements(
        container_url,
        is_storage=state.is_storage_root,
        modified_ms=0 if existing is None else last_modified_ms(existing),
    ) | member_statements(container_url, [listed_member(member) for member in members])


def _is_there(metadata: Metadata | None) -> bool:
    return metadata is not None and metadata.kind.is_member


def _must_be_understood(state: TargetState) -> bool:
    path = state.stored_path
    return is_container(path) or auxiliary_kind(path) is Auxiliary.ACL


def _is_turtle(received: ReceivedBody) -> bool:
    return essence(received.content_type) == TURTLE
