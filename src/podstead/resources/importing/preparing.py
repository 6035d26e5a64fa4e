"""Prepares resources from elsewhere for storing: validated for their path, with their new names.

:class:`ImportPlan` then plans the puts of some of them on one state of their surroundings, without
I/O.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import msgspec

from podstead.core import identifiers
from podstead.core.errors import BadRequest, BodyTooLarge, Conflict, RequestRefused, TargetTooLong
from podstead.core.media_types import TURTLE, essence, parse_media_type
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import Dataset
from podstead.rdf.listing import server_managed
from podstead.resources.codes import ResourceCodes
from podstead.resources.context import WriteContext
from podstead.resources.documents import EMPTY_DATASET, is_rdf
from podstead.resources.importing.values import (
    ImportedResource,
    ImportReport,
    ImportTarget,
    NotTaken,
)
from podstead.resources.planning import DEFAULT_DESCRIPTION_TYPE
from podstead.resources.renaming import renamed_document
from podstead.resources.target_state import check_new_path_length
from podstead.storage.records import (
    Absent,
    AtVersion,
    Body,
    InlineBody,
    Metadata,
    Precondition,
    Put,
    ResourceKind,
)
from podstead.wac.acl import check_acl_size, check_storable, read_acl
from podstead.wac.codes import WacCodes
from podstead.wac.effective import MAX_DEPTH
from podstead.wac.modes import Mode

NO_RULES = InlineBody(b"")
"""An ACL that grants nothing to anybody."""


class Prepared(msgspec.Struct, frozen=True):
    """A resource that is ready to be stored. ``dataset`` has its triples if it is RDF."""

    path: identifiers.ResourcePath
    kind: ResourceKind
    content_type: str
    body: Body
    size_bytes: int
    dataset: Dataset = EMPTY_DATASET
    created_ms: int | None = None
    modified_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Preparation:
    """Prepares the resources of one import, and notes in its report what cannot be imported."""

    context: WriteContext
    target: ImportTarget
    report: ImportReport
    max_body_bytes: int

    async def prepare(self, resource: ImportedResource) -> Prepared | None:
        """A document, container or description; ``None`` if it cannot be imported. Raises what the
        source raises."""
        path = resource.path
        try:
            self._check_path(path)
            return await self._prepared(resource)
        except RequestRefused as refused:
            self.report.not_taken.append(NotTaken(path, str(refused)))
            return None

    async def prepare_rules(self, resource: ImportedResource) -> Prepared:
        """An ACL; one that grants nothing if it cannot be read. Raises as :meth:`prepare` does."""
        path = resource.path
        try:
            content, dataset = await self._rdf(resource, path, must_be_read=True)
            check_acl_size(len(content))
            subject = identifiers.subject_of(path)
            subject_url = self.context.documents.url_of(subject)
            is_root = subject == self.target.root
            check_storable(dataset.default, subject_url=subject_url, of_storage_root=is_root)
        except RequestRefused as refused:
            self.report.closed.append(NotTaken(path, str(refused)))
            return closed_rules(path)
        rules = read_acl(dataset.default, subject_url=subject_url).authorizations
        if any(Mode.CONTROL in rule.modes and rule.public for rule in rules):
            self.report.controlled_by_all.append(subject)
        body = InlineBody(content) if self.target.dry_run else await self._staged(content)
        return Prepared(
            path, ResourceKind.ACL, resource.content_type, body, len(content), dataset,
            resource.created_ms, resource.modified_ms,
        )  # fmt: skip

    async def discard(self, prepared: Prepared) -> None:
        """Remove the staged body of a resource that is not stored."""
        if not isinstance(prepared.body, InlineBody):
            await self.context.store.discard(prepared.body)

    def _check_path(self, path: identifiers.ResourcePath) -> None:
        """Raises Conflict, TargetTooLong."""
        if not path.startswith(self.target.root):
            raise Conflict("It is outside of the pod")
        subject = identifiers.subject_of(path)
        if subject != path and identifiers.auxiliary_kind(subject) is not None:
            raise Conflict(ResourceCodes.AUXILIARY_OF_AUXILIARY)
        if (
            identifiers.is_container(path)
            and identifiers.auxiliary_kind(identifiers.slash_variant(path)) is not None
        ):
            raise Conflict(ResourceCodes.CONTAINER_NAMED_AS_AUXILIARY)
        check_new_path_length(subject)
        if subject.count("/") > MAX_DEPTH:
            raise TargetTooLong(WacCodes.TOO_DEEP, number=MAX_DEPTH)

    async def _prepared(self, resource: ImportedResource) -> Prepared:
        path, content_type = resource.path, resource.content_type
        dates = resource.created_ms, resource.modified_ms
        parse_media_type(content_type)
        if identifiers.is_container(identifiers.subject_of(path)):
            return await self._container(resource)
        describes = identifiers.auxiliary_kind(path) is identifiers.Auxiliary.DESCRIPTION
        kind = ResourceKind.DESCRIPTION if describes else ResourceKind.DOCUMENT
        if describes or is_rdf(content_type):
            content, dataset = await self._rdf(resource, path, must_be_read=False)
            body, size_bytes = await self._staged(content), len(content)
        else:
            (body, size_bytes), dataset = await self._streamed(resource), EMPTY_DATASET
        return Prepared(path, kind, content_type, body, size_bytes, dataset, *dates)

    async def _container(self, resource: ImportedResource) -> Prepared:
        path = identifiers.subject_of(resource.path)
        is_root = path == self.target.root
        kind = ResourceKind.STORAGE if is_root else ResourceKind.CONTAINER
        dates = resource.created_ms, resource.modified_ms
        if resource.open is None:
            return Prepared(
                path, kind, DEFAULT_DESCRIPTION_TYPE, InlineBody(b""), 0, EMPTY_DATASET, *dates
            )
        content_type = resource.content_type
        content, dataset = await self._rdf(resource, path, must_be_read=True)
        url = self.context.documents.url_of(path)
        managed = server_managed(dataset.default, container_url=url)
        if managed or resource.path != path:
            document = await self.context.documents.parse(content, content_type, path=resource.path)
            # What the server states about a container and its members is not stored.
            document = document.with_graph(dataset.default - managed)
            content_type = essence(content_type)
            content = await self.context.documents.write(document, content_type, path=path)
            dataset = document.dataset
        body = await self._staged(content)
        return Prepared(path, kind, content_type, body, len(content), dataset, *dates)

    async def _rdf(
        self, resource: ImportedResource, path: identifiers.ResourcePath, *, must_be_read: bool
    ) -> tuple[bytes, Dataset]:
        """The content with its new names, and its triples. Raises RequestRefused."""
        content_type = resource.content_type
        if not is_rdf(content_type):
            raise BadRequest(f"It must be RDF, not {essence(content_type)}")
        content = await self._read(resource)
        target, at = self.target, resource.path
        from_url = resource.from_url or self.context.documents.url_of(at)
        adjust = target.adjust
        try:
            renamed = await renamed_document(
                self.context.documents,
                content,
                content_type,
                target.names,
                from_url=from_url,
                path=at,
                adjust=None if adjust is None else lambda dataset: adjust(path, dataset),
            )
        except UnknownContext as unknown:
            if must_be_read:
                raise BadRequest(str(unknown)) from unknown
            if not target.names.changes_nothing:
                self.report.not_renamed.append(NotTaken(path, str(unknown)))
            return content, EMPTY_DATASET
        if renamed.content is not content:
            self.report.renamed += 1
        return renamed.content, renamed.dataset

    async def _staged(self, content: bytes) -> Body:
        if self.target.dry_run:
            return InlineBody(b"")
        return await self.context.store.stage_body(content)

    async def _read(self, resource: ImportedResource) -> bytes:
        limit_bytes = min(self.context.documents.max_bytes, self.max_body_bytes)
        return b"".join([piece async for piece in _pieces(resource, limit_bytes)])

    async def _streamed(self, resource: ImportedResource) -> tuple[Body, int]:
        pieces = _pieces(resource, self.max_body_bytes)
        if not self.target.dry_run:
            body = await self.context.store.stage_body(pieces, content_type=resource.content_type)
            return body, body.size_bytes
        size_bytes = 0
        async for piece in pieces:
            size_bytes += len(piece)
        return InlineBody(b""), size_bytes


def closed_rules(path: identifiers.ResourcePath) -> Prepared:
    """An ACL that grants nothing to anybody."""
    return Prepared(path, ResourceKind.ACL, TURTLE, NO_RULES, 0)


async def _pieces(resource: ImportedResource, limit_bytes: int) -> AsyncIterator[bytes]:
    if resource.open is None:
        return
    taken_bytes = 0
    async for piece in resource.open():
        taken_bytes += len(piece)
        if taken_bytes > limit_bytes:
            raise BodyTooLarge(f"It is larger than the limit of {limit_bytes} bytes")
        yield piece


class ImportPlan:
    """The puts of some resources, and why others are not stored."""

    def __init__(
        self, target: ImportTarget, state: Mapping[identifiers.ResourcePath, Metadata | None]
    ) -> None:
        self._target = target
        self._state = state
        self._creating: set[identifiers.ResourcePath] = set()
        self.puts: list[Put] = []
        self.stored: list[Prepared] = []
        self.unused: list[Prepared] = []
        self.preconditions: list[Precondition] = []
        self.refused: list[NotTaken] = []
        self.already_there = 0

    def add(self, prepared: Prepared) -> None:
        """Plan the storing of a resource, with the containers above it that do not exist."""
        path, existing = prepared.path, self._state[prepared.path]
        if path in self._creating or existing is not None:
            self._fill(prepared, existing)
            return
        refusal = self._refusal(prepared)
        if refusal is not None:
            self.unused.append(prepared)
            self.refused.append(NotTaken(path, refusal))
            return
        if prepared.kind.is_member:
            for container in reversed(identifiers.ancestors(path)[:-1]):
                if not self._exists(container):
                    self._create(_empty_container(container))
        self._create(prepared)
        self.stored.append(prepared)

    def _fill(self, prepared: Prepared, existing: Metadata | None) -> None:
        """Give a container that was created for a member its own content."""
        if existing is None or not prepared.kind.is_container:
            index = next(
                (index for index, put in enumerate(self.puts) if put.path == prepared.path), None
            )
            if index is not None and prepared.kind.is_container:
                self.puts[index] = put_of(prepared, creates=self.puts[index].creates)
                self.stored.append(prepared)
                return
        elif not existing.size_bytes and prepared.size_bytes:
            self.preconditions.append(AtVersion(prepared.path, existing.version))
            self.puts.append(put_of(prepared, creates=False))
            self.stored.append(prepared)
            return
        self.unused.append(prepared)
        # The root of a new pod exists before anything else.
        self.already_there += prepared.path != self._target.root

    def _create(self, prepared: Prepared) -> None:
        self._creating.add(prepared.path)
        self.puts.append(put_of(prepared, creates=True))
        if prepared.kind.is_member:
            self.preconditions.append(Absent(identifiers.slash_variant(prepared.path)))

    def _refusal(self, prepared: Prepared) -> str | None:
        if not prepared.kind.is_member:
            if self._exists(identifiers.subject_of(prepared.path)):
                return None
            return "What it describes does not exist"
        path = prepared.path
        if self._exists(identifiers.slash_variant(path)):
            return "There is a resource whose URL differs only in the trailing slash"
        for container in identifiers.ancestors(path)[:-1]:
            if not self._exists(container) and self._exists(identifiers.slash_variant(container)):
                return "There is a document in the place of a container above it"
            named = identifiers.auxiliary_kind(identifiers.slash_variant(container))
            if container != self._target.root and named is not None:
                return "Without its slash, a container above it has the URL of an auxiliary"
        return None

    def _exists(self, path: identifiers.ResourcePath) -> bool:
        return path in self._creating or self._state.get(path) is not None


def put_of(prepared: Prepared, *, creates: bool) -> Put:
    """The put that stores a resource."""
    return Put(
        prepared.path,
        prepared.kind,
        prepared.content_type,
        prepared.body,
        creates=creates,
        created_ms=prepared.created_ms,
        modified_ms=prepared.modified_ms,
    )


def _empty_container(path: identifiers.ResourcePath) -> Prepared:
    return Prepared(path, ResourceKind.CONTAINER, DEFAULT_DESCRIPTION_TYPE, InlineBody(b""), 0)
