"""Receives the content of a write, and validates it for its target.

The body is checked against its limits and staged in the store, which changes no resource yet. RDF
is received as a whole, because it will be parsed; other content is streamed into the store.

RDF must be parsed where the server interprets it: an ACL that cannot be read would lock everybody
out, and the triples of a container are merged into its listing. Any other document with an unknown
JSON-LD context is stored as sent (R-11). A change of statements of identity needs more than the
right to write, whatever the media type (:mod:`podstead.resources.identity_changes`).
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from podstead.core import clock, codes, header_fields, identifiers, value, vocab
from podstead.core.errors import BadRequest, BodyTooLarge, Conflict, UnsupportedMediaType
from podstead.core.media_types import N3, SPARQL_UPDATE, TURTLE, essence, parse_media_type
from podstead.core.operation import Operation
from podstead.rdf import codes as rdf_codes
from podstead.rdf import errors, limits, listing, patch_parsers, tasks
from podstead.rdf.codecs import Document, read_lines, repair_missing_final_dot
from podstead.rdf.graph import EMPTY_GRAPH, Dataset, Graph
from podstead.rdf.patching import Patch, apply, apply_to_container
from podstead.resources import codes as resources_codes
from podstead.resources import costly_work, documents, entity_tags, planning, reading
from podstead.resources.context import ResourceContext
from podstead.resources.identity_changes import IdentityChanges
from podstead.resources.outcome import ResourceRequest
from podstead.resources.target_state import TargetState
from podstead.storage.records import Body, InlineBody, Metadata, Record, Version
from podstead.wac.acl import check_acl_size, check_storable, ignored_conditions
from podstead.wac.modes import PatchContent

_CONTAINER_TYPES = frozenset({vocab.LDP_CONTAINER, vocab.LDP_BASIC_CONTAINER})


class UploadedOperation(Operation, frozen=True):
    """A PUT whose body is already in the store: ``draft`` is that of a finished upload."""

    draft: str = ""


class ReceivedBody(value.Value):
    """One received body.

    ``rdf`` holds the bytes of an RDF body and is ``None`` for other types. ``empty`` means that the
    request had no content at all, which differs from a document without triples.
    """

    content_type: str
    body: Body
    empty: bool
    rdf: bytes | None = None


def check_content_type(operation: Operation) -> None:
    """Refuse a write without a Content-Type (P-6), unless it creates a container and has no body
    (C-9).

    Depends on the request only. Raises BadRequest.
    """
    if operation.content_type is not None:
        parse_media_type(operation.content_type)
        return
    puts_container = operation.method == "PUT" and identifiers.is_container(operation.target)
    if operation.body.announced or not (puts_container or requests_container(operation)):
        raise BadRequest("The Content-Type header is missing")


def requests_container(operation: Operation) -> bool:
    """Whether a Link header of the request gives a container type (C-8)."""
    return not _CONTAINER_TYPES.isdisjoint(operation.link_types)


def is_empty_container(operation: Operation, received: ReceivedBody) -> bool:
    """Whether a PUT only requests that a container exist, because it has no content."""
    return received.empty and identifiers.is_container(operation.target)


def check_type_links(operation: Operation) -> None:
    """Refuse a PUT whose type link contradicts its URL (C-10, C-11). Raises Conflict."""
    if identifiers.is_container(operation.target):
        if vocab.LDP_NON_RDF_SOURCE in operation.link_types:
            raise Conflict("A URL that ends in a slash identifies a container, which must be RDF")
    elif requests_container(operation):
        raise Conflict(resources_codes.ResourceCodes.SLASH_MISSING)


class BodyReceiver:
    """Receives and stages request bodies."""

    def __init__(self, context: ResourceContext, *, max_body_bytes: int) -> None:
        self._store = context.store
        self._documents = context.documents
        self._max_body_bytes = max_body_bytes

    async def receive(self, operation: Operation, *, only_rdf: bool) -> ReceivedBody:
        """Receive the body of a write.

        ``only_rdf`` for targets that must be RDF (containers, ACLs, descriptions). Raises
        UnsupportedMediaType, BodyTooLarge, BodyTimeout, BadRequest.
        """
        content_type = operation.content_type or planning.DEFAULT_DESCRIPTION_TYPE
        if identifiers.is_container(operation.target) and only_rdf and not operation.body.announced:
            # Without content, the media type means nothing (P-7, C-8, C-9).
            return ReceivedBody(
                planning.DEFAULT_DESCRIPTION_TYPE, InlineBody(b""), empty=True, rdf=b""
            )
        if documents.is_rdf(content_type):
            content = await operation.body.read(limit_bytes=self._documents.max_bytes)
            body = await self._store.stage_body(content)
            return ReceivedBody(content_type, body, empty=not content, rdf=content)
        if only_rdf:
            raise UnsupportedMediaType(
                resources_codes.ResourceCodes.RDF_REQUIRED, media_type=essence(content_type)
            )
        if isinstance(operation, UploadedOperation):
            size_bytes = operation.body.size_bytes or 0
            body = await self._store.stage_upload(
                operation.draft, size_bytes, content_type=content_type
            )
        else:
            chunks = operation.body.chunks(limit_bytes=self._max_body_bytes)
            body = await self._store.stage_body(chunks, content_type=content_type)
        return ReceivedBody(content_type, body, empty=body.size_bytes == 0)

    def check_size(self, operation: Operation) -> None:
        """Refuse a body whose announced length exceeds its limit. Raises BodyTooLarge."""
        limit_bytes = self._max_body_bytes
        if documents.is_rdf(operation.content_type or planning.DEFAULT_DESCRIPTION_TYPE):
            limit_bytes = min(limit_bytes, self._documents.max_bytes)
        if (operation.body.size_bytes or 0) > limit_bytes:
            raise BodyTooLarge(codes.CoreCodes.TOO_LARGE, limit_bytes=limit_bytes)

    async def discard(self, received: ReceivedBody) -> None:
        """Discard the staged body of a refused write."""
        await self._store.discard(received.body)


_MAX_MEMBERS_IN_MEMORY = 20_000
_TRIPLES_OF_A_MEMBER = 6
_RECENT_ROWS = 10_000
"""The last rows of the change log in which to look for a deleted member."""
_STEP_ROWS = 2_000
"""How many of them one step examines; other requests wait for it."""


class ContentValidator:
    """Validates content for the path at which it will be stored."""

    def __init__(self, context: ResourceContext, identity_changes: IdentityChanges) -> None:
        self._store = context.store
        self._documents = context.documents
        self._identity_changes = identity_changes
        self.write_hooks = context.write_hooks
        self._container_hooks = context.container_hooks

    async def validate(
        self,
        request: ResourceRequest,
        state: TargetState,
        received: ReceivedBody,
        version: Version,
        *,
        posted: bool = False,
    ) -> planning.Content:
        """The content to store at the target, as this version.

        ``posted`` allows a missing final dot in Turtle (R-12). Raises MalformedRdf, BadRequest for
        an unknown context where the content must be parsed, Conflict for the containment of what is
        not in a container, AccessDenied or NotAuthenticated for a change of statements of identity
        that the agent may not make, and Superseded if the current content changed while it was
        compared.
        """
        sent = received.body
        document, after = None, documents.EMPTY_DATASET
        if received.rdf is not None:
            received, document = await self._parse(state, received, received.rdf, posted=posted)
        content = planning.Content(received.content_type, received.body)
        if document is not None:
            content, after = await self._validate_kind(request, state, content, document)
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
    ) -> planning.Content:
        """The content for a document that a patch has produced, in the given media type.

        The document of a container must contain only its own triples. Statements of identity are
        compared with ``before``, if given, instead of what is stored. Raises as :meth:`validate`
        does, and RdfTooLarge for a document beyond the limits.
        """
        path = state.stored_path
        turtle = await self._documents.write(document, media_type, path=path)
        content = planning.Content(media_type, InlineBody(turtle))
        after = document.dataset
        if identifiers.auxiliary_kind(path) is identifiers.Auxiliary.ACL:
            self._check_acl(request, state, content, document)
        await self._identity_changes.check(request, state, after, version, before=before)
        return await self._with_records(state, content, after)

    async def records_of_deletion(self, state: TargetState) -> planning.DerivedRecords:
        """The records to commit with the deletion of the target and of its access rules."""
        derived = await planning.derived_records(
            self.write_hooks, state.stored_path, documents.EMPTY_DATASET
        )
        existing = state.existing
        if existing is not None and existing.kind.is_container:
            dropped = self.records_of_containers([existing.path])
            derived = derived.with_more(planning.DerivedRecords(tuple(dropped)))
        if existing is None or not existing.kind.is_member:
            return derived
        acl = identifiers.acl_of(existing.path)
        if state.metadata(acl) is None:
            return derived
        return derived.with_more(
            await planning.derived_records(self.write_hooks, acl, documents.EMPTY_DATASET)
        )

    def records_of_containers(self, deleted: Iterable[identifiers.ResourcePath]) -> list[Record]:
        """The records to commit with the deletion of these containers."""
        hooks = self._container_hooks
        return [each for path in deleted for hook in hooks for each in hook.of_deletion(path)]

    async def _with_records(
        self, state: TargetState, content: planning.Content, after: Dataset
    ) -> planning.Content:
        path, hooks = state.stored_path, self.write_hooks
        if not planning.has_hook(hooks, path):
            return content
        return replace(content, derived=await planning.derived_records(hooks, path, after))

    async def _parse(
        self, state: TargetState, received: ReceivedBody, rdf: bytes, *, posted: bool
    ) -> tuple[ReceivedBody, Document | None]:
        """The body, repaired where that is allowed, and its document.

        The document is ``None`` if a JSON-LD context is unknown and the content need not be parsed.
        """
        path = state.target
        try:
            return received, await self._documents.parse(rdf, received.content_type, path=path)
        except errors.UnknownContext as unknown:
            if _must_be_parsed(state) and isinstance(unknown, errors.UnavailableContext):
                raise
            if _must_be_parsed(state):
                raise BadRequest(
                    rdf_codes.RdfCodes.UNKNOWN_CONTEXT, address=unknown.url
                ) from unknown
            return received, None
        except errors.MalformedRdf:
            if not posted or not _is_turtle(received):
                raise
            work = partial(repair_missing_final_dot, rdf)
            mended = await self._documents.run(work, size_bytes=len(rdf), path=path)
            if mended is None:
                raise
        received = replace(received, rdf=mended, body=InlineBody(mended))
        return received, await self._documents.parse(mended, received.content_type, path=path)

    async def _validate_kind(
        self,
        request: ResourceRequest,
        state: TargetState,
        content: planning.Content,
        document: Document,
    ) -> tuple[planning.Content, Dataset]:
        """The content to store and its triples, after the checks that the kind of resource
        needs."""
        path = state.stored_path
        if identifiers.auxiliary_kind(path) is identifiers.Auxiliary.ACL:
            self._check_acl(request, state, content, document)
            return content, document.dataset
        if identifiers.is_container(path):
            return await self._validate_container(state, content, document)
        return content, document.dataset

    def _check_acl(
        self,
        request: ResourceRequest,
        state: TargetState,
        content: planning.Content,
        document: Document,
    ) -> None:
        """Refuse an ACL that must not be stored (W-4). Raises Conflict, BadRequest, RdfTooLarge."""
        request.ignored_conditions = ignored_conditions(document.graph)
        check_acl_size(content.body.size_bytes)
        check_storable(
            document.graph,
            subject_url=self._documents.url_of(state.subject),
            of_storage_root=identifiers.storage_root(state.stored_path) == state.subject,
        )

    async def _validate_container(
        self, state: TargetState, content: planning.Content, document: Document
    ) -> tuple[planning.Content, Dataset]:
        """Keep only the container's own triples, and drop those of the server (C-12, C-13).

        Clients send back all that they have read, and meanwhile times, sizes and members may have
        changed. Only a member that neither exists nor existed recently is refused.

        Content sent to the description is stored at the container's path, so it is serialized
        again with relative IRIs for that path (R-7).
        """
        path = state.stored_path
        url = self._documents.url_of(path)
        managed = listing.server_managed(document.graph, container_url=url)
        if managed:
            await self._check_members(path, listing.claimed_members(managed, container_url=url))
            document = document.with_graph(document.graph - managed)
        elif state.target == path:
            return content, document.dataset
        media_type = essence(content.content_type)
        written = await self._documents.write(document, media_type, path=path)
        return planning.Content(media_type, InlineBody(written)), document.dataset

    async def _check_members(
        self, container: identifiers.ResourcePath, names: Collection[str]
    ) -> None:
        """Raises NotContained unless all these members of a container are there or were
        recently."""
        paths = {identifiers.ResourcePath(container + name) for name in names}
        snapshot = await self._store.read_metadata(paths)
        missing = {path for path in paths if not _is_there(snapshot.get(path))}
        for path in sorted(missing):
            if identifiers.auxiliary_kind(path) is not None:
                raise listing.NotContained(self._documents.url_of(path))
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
            raise listing.NotContained(self._documents.url_of(path))

    async def all_server_statements(self, state: TargetState) -> Graph:
        """Everything that the server states about the container at the target.

        Members that are created or deleted during the read may or may not be included; a write
        based on this must have the container's state as a precondition
        (:meth:`ResourceRequest.require_state`). Raises BodyTooLarge if there are too many members.
        """
        path = state.stored_path
        members: list[Metadata] = []
        async for page in reading.pages_of_members(self._store, path):
            members += page
            if len(members) > _MAX_MEMBERS_IN_MEMORY:
                raise BodyTooLarge(
                    "A patch with conditions is applied to at most "
                    f"{_MAX_MEMBERS_IN_MEMORY} members"
                )
        work = partial(_stated, state, self._documents.url_of(path), members)
        size_bytes = len(members) * _TRIPLES_OF_A_MEMBER * documents.BYTES_OF_A_TRIPLE
        return await self._documents.run(work, size_bytes=size_bytes, path=path)


def _stated(state: TargetState, container_url: str, members: Sequence[Metadata]) -> Graph:
    """What the server states about a container and some of its members."""
    existing = state.existing
    return listing.container_statements(
        container_url,
        is_storage=state.is_storage_root,
        modified_ms=0 if existing is None else entity_tags.last_modified_ms(existing),
    ) | listing.member_statements(
        container_url, [reading.listed_member(member) for member in members]
    )


def _is_there(metadata: Metadata | None) -> bool:
    return metadata is not None and metadata.kind.is_member


def _must_be_parsed(state: TargetState) -> bool:
    path = state.stored_path
    return (
        identifiers.is_container(path)
        or identifiers.auxiliary_kind(path) is identifiers.Auxiliary.ACL
    )


def _is_turtle(received: ReceivedBody) -> bool:
    return essence(received.content_type) == TURTLE


_RANDOM_BYTES = 16


class NameProposal:
    """The URL to try for a POST, until one is found that is free."""

    def __init__(
        self,
        operation: Operation,
        *,
        wants_container: bool,
        randomness: clock.Randomness,
    ) -> None:
        """Raises AccessDenied for a Slug that names an auxiliary resource (C-5), and BadRequest for
        a Slug longer than ``max_slug_bytes``."""
        self._container = operation.target
        self._slash = "/" if wants_container else ""
        self._slug = header_fields.proposed_name(operation.slug, wants_container=wants_container)
        self._randomness = randomness
        self._name = self._slug or self._random() + self._slash

    def path(self) -> identifiers.ResourcePath:
        """The member URL to try."""
        return identifiers.ResourcePath(self._container + self._name)

    def propose_another(self) -> None:
        """Propose another name: the slug with a random prefix, which keeps its file extension."""
        ending = self._slash if self._slug is None else f"-{self._slug}"
        self._name = self._random() + ending

    def _random(self) -> str:
        hexadecimal = self._randomness.token_hex(_RANDOM_BYTES)
        parts = (hexadecimal[:8], hexadecimal[8:12], hexadecimal[12:16], hexadecimal[16:20])
        return "-".join((*parts, hexadecimal[20:]))


# Applies patches to stored documents.
#
# The patch is parsed once, before authorization, because its content decides which modes it needs.
# It is applied again for each state that the write is planned on. A container and its description
# are one graph; a patch can change only the part of it that the server does not manage.

_PARSERS: dict[str, Callable[..., Patch]] = {
    N3: patch_parsers.parse_n3_patch,
    SPARQL_UPDATE: patch_parsers.parse_sparql_update,
}

MAX_PATCH_BYTES = 1024 * 1024
"""A patch of this size takes about half a second to parse."""
_LIMITS = limits.RdfLimits(max_bytes=MAX_PATCH_BYTES)

_STEPS_AT_ONCE: Final = 1000
"""Two or three milliseconds; the patches of applications take some hundreds."""

_UNPATCHABLE = "This document cannot be patched"


def check_patch_type(operation: Operation) -> None:
    """Refuse a patch whose media type is not supported (X-10). Depends on the request only.

    Raises BadRequest if there is no Content-Type (P-6), else UnsupportedMediaType.
    """
    if operation.content_type is None:
        raise BadRequest("The Content-Type header is missing")
    media_type = parse_media_type(operation.content_type)
    if media_type.essence not in _PARSERS:
        raise UnsupportedMediaType(f"The Content-Type of a patch must be {' or '.join(_PARSERS)}")
    if not media_type.is_utf_8():
        raise UnsupportedMediaType("The charset of a patch must be UTF-8")


def patch_content(patch: Patch) -> PatchContent:
    """What the patch contains, which decides the modes that it needs (X-20 to X-24)."""
    return PatchContent(
        inserts=patch.has_inserts, deletes=patch.has_deletes, where=patch.has_conditions
    )


class Patches:
    """Reads patches and applies them."""

    def __init__(self, documents: documents.Documents, content_validator: ContentValidator) -> None:
        self._documents = documents
        self._content_validator = content_validator

    async def receive(self, operation: Operation) -> Patch:
        """Read the patch of a request that passed :func:`check_patch_type`.

        Raises MalformedRdf, PatchRefused for a patch that breaks a rule of its format,
        BodyTooLarge and the other errors of receiving a body.
        """
        content = await operation.body.read(limit_bytes=MAX_PATCH_BYTES)
        parse = partial(
            _PARSERS[essence(operation.content_type or "")],
            content,
            base_iri=self._documents.url_of(operation.target),
            limits=_LIMITS,
        )
        return await self._documents.run(parse, size_bytes=len(content), path=operation.target)

    async def apply(
        self, request: ResourceRequest, state: TargetState, patch: Patch, version: Version
    ) -> planning.Content | Metadata:
        """The content to store after the patch, as this version; or the metadata of the existing
        resource, if the patch has no effect (X-17).

        An agent without Read must not learn whether its triples were already there, so its patch
        always stores a new version and is checked as if all its triples were new.

        Raises Conflict if the stored document cannot be patched or the conditions do not hold, what
        :meth:`ContentValidator.validate` raises, and Superseded.
        """
        may_read = request.may_read
        document = await self._current(state, patch, may_read=may_read)
        # The conditions can match triples that the server manages, including the members, and
        # these change without changing the container's own version.
        if patch.reads_managed and state.existing is not None:
            request.require_state(state.existing)
        graph = await self._evaluated(state, patch, document)
        media_type = TURTLE
        if state.existing is not None:
            if may_read and graph is document.graph:
                return state.existing
            media_type = essence(state.existing.content_type)
        patched = document.with_graph(graph)
        before = None
        # Without the triples that the patch inserts, so that all of them are checked as new.
        if not may_read:
            before = document.with_graph(document.graph - patch.inserted).dataset
        content = await self._content_validator.validate_document(
            request, state, patched, media_type, version, before=before
        )
        # Documents are often patched repeatedly, and parsing takes most of the time. The next patch
        # in the queue may also be planned before this version is stored (committer.py).
        self._documents.cache(state.stored_path, version, patched)
        return content

    async def _evaluated(self, state: TargetState, patch: Patch, document: Document) -> Graph:
        """The graph after the patch: that of the document itself if the patch has no effect.

        The sizes do not bound the time that joins take: what takes many steps is evaluated again in
        another process.
        """
        path, size_bytes = state.stored_path, _size_bytes(state, patch)
        managed, container_url = EMPTY_GRAPH, None
        if identifiers.is_container(path):
            container_url = self._documents.url_of(path)
            if patch.reads_managed:
                managed = await self._content_validator.all_server_statements(state)
                size_bytes += len(managed) * documents.BYTES_OF_A_TRIPLE
        others = tuple(document.dataset.named.values())
        if container_url is None:
            work = partial(apply, patch, document.graph, other_graphs=others)
        else:
            work = partial(
                apply_to_container,
                patch,
                document.graph,
                managed=managed,
                container_url=container_url,
            )
        if not patch.has_conditions:
            compare = partial(_compared, work, document.graph)
            return await self._documents.run(compare, size_bytes=size_bytes, path=path)
        if size_bytes < documents.COSTLY_FROM_BYTES:
            with suppress(errors.PatchTooCostly):
                return _compared(partial(work, budget_steps=_STEPS_AT_ONCE), document.graph)
        create = partial(
            tasks.Evaluation.of,
            patch,
            document.graph,
            other_graphs=others,
            container_url=container_url,
            managed=managed,
        )
        task = await self._documents.run(create, size_bytes=size_bytes, path=path)
        pod = identifiers.storage_root(path) or ""
        content = await self._documents.costly.in_process(
            task, pod=pod, wait_s=costly_work.WRITE_WAIT_S
        )
        compare = partial(_compared, partial(read_lines, content), document.graph)
        return await self._documents.run(compare, size_bytes=len(content), path=path)

    async def _current(self, state: TargetState, patch: Patch, *, may_read: bool) -> Document:
        """The document to patch: the stored one, or an empty one if there is none (X-1, X-37).

        Raises Conflict, whose message gives the reason only if the agent ``may_read``.
        """
        existing = state.existing
        if existing is None or (existing.size_bytes == 0 and existing.kind.is_container):
            return Document(Dataset(EMPTY_GRAPH), patch.prefixes)
        if not documents.is_rdf(existing.content_type):
            raise Conflict(
                f"Only RDF can be patched, but this resource is {essence(existing.content_type)}"
                if may_read
                else _UNPATCHABLE
            )
        try:
            document = await self._documents.read_cached(existing)
        except errors.UnavailableContext:  # a temporary failure, and a subclass of UnknownContext
            raise
        except errors.UnknownContext as unknown:
            reason = f"This document cannot be patched: {unknown}" if may_read else _UNPATCHABLE
            raise Conflict(reason) from unknown
        return document.with_prefixes(patch.prefixes)


def _compared(work: Callable[[], Graph], before: Graph) -> Graph:
    """The graph that the work returns; the one before if both are equal. To compare large graphs
    takes as long as to read them, unless they are the same object."""
    after = work()
    return before if after == before else after


def _size_bytes(state: TargetState, patch: Patch) -> int:
    """The approximate size of a document and its patch."""
    existing = state.existing
    triples = sum(len(each.deletes) + len(each.inserts) for each in patch.operations)
    return triples * documents.BYTES_OF_A_TRIPLE + (0 if existing is None else existing.size_bytes)
