"""Applies patches to stored documents (X-1 to X-17, X-30 to X-37).

The patch is parsed once, before authorization, because its content decides which modes it needs. It
is applied again for each state that the write is planned on. A container and its description are
one graph; a patch can change only the part of it that the server does not manage.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from podstead.core.errors import BadRequest, Conflict, UnsupportedMediaType
from podstead.core.identifiers import is_container, storage_root
from podstead.core.media_types import N3, SPARQL_UPDATE, TURTLE, essence, parse_media_type
from podstead.core.operation import Operation
from podstead.rdf.codecs import Document, read_lines
from podstead.rdf.errors import PatchTooCostly, UnavailableContext, UnknownContext
from podstead.rdf.graph import EMPTY_GRAPH, Dataset, Graph
from podstead.rdf.limits import RdfLimits
from podstead.rdf.n3_patch import parse_n3_patch
from podstead.rdf.patching import Patch, apply, apply_to_container
from podstead.rdf.sparql_update import parse_sparql_update
from podstead.rdf.tasks import Evaluation
from podstead.resources.content import ContentValidator
from podstead.resources.costly_work import WRITE_WAIT_S
from podstead.resources.documents import (
    BYTES_OF_A_TRIPLE,
    COSTLY_FROM_BYTES,
    Documents,
    is_rdf,
)
from podstead.resources.outcome import ResourceRequest
from podstead.resources.planning import Content
from podstead.resources.target_state import TargetState
from podstead.storage.records import Metadata, Version
from podstead.wac.modes import PatchContent

_PARSERS: dict[str, Callable[..., Patch]] = {
    N3: parse_n3_patch,
    SPARQL_UPDATE: parse_sparql_update,
}

MAX_PATCH_BYTES = 1024 * 1024
"""A patch of this size takes about half a second to parse."""
_LIMITS = RdfLimits(max_bytes=MAX_PATCH_BYTES)

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

    def __init__(self, documents: Documents, content_validator: ContentValidator) -> None:
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
    ) -> Content | Metadata:
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
        if is_container(path):
            container_url = self._documents.url_of(path)
            if patch.reads_managed:
                managed = await self._content_validator.all_server_statements(state)
                size_bytes += len(managed) * BYTES_OF_A_TRIPLE
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
        if size_bytes < COSTLY_FROM_BYTES:
            with suppress(PatchTooCostly):
                return _compared(partial(work, budget_steps=_STEPS_AT_ONCE), document.graph)
        create = partial(
            Evaluation.of,
            patch,
            document.graph,
            other_graphs=others,
            container_url=container_url,
            managed=managed,
        )
        task = await self._documents.run(create, size_bytes=size_bytes, path=path)
        pod = storage_root(path) or ""
        content = await self._documents.costly.in_process(task, pod=pod, wait_s=WRITE_WAIT_S)
        compare = partial(_compared, partial(read_lines, content), document.graph)
        return await self._documents.run(compare, size_bytes=len(content), path=path)

    async def _current(self, state: TargetState, patch: Patch, *, may_read: bool) -> Document:
        """The document to patch: the stored one, or an empty one if there is none (X-1, X-37).

        Raises Conflict, whose message gives the reason only if the agent ``may_read``.
        """
        existing = state.existing
        if existing is None or (existing.size_bytes == 0 and existing.kind.is_container):
            return Document(Dataset(EMPTY_GRAPH), patch.prefixes)
        if not is_rdf(existing.content_type):
            raise Conflict(
                f"Only RDF can be patched, but this resource is {essence(existing.content_type)}"
                if may_read
                else _UNPATCHABLE
            )
        try:
            document = await self._documents.read_cached(existing)
        except UnavailableContext:  # a temporary failure, and a subclass of UnknownContext
            raise
        except UnknownContext as unknown:
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
    return triples * BYTES_OF_A_TRIPLE + (0 if existing is None else existing.size_bytes)
