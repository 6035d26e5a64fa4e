"""Reads documents for their pages: through the resource service, and no more than is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from podstead.core.caches import BoundedCache
from podstead.core.errors import NotFound
from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import N_QUADS, parse_media_type
from podstead.previews.rendering import ContentRenderer
from podstead.previews.text import MAX_TEXT_BYTES, DecodedText, decode_text
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Dataset
from podstead.resources.outcome import Outcome, Representation
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.web.pages.request import PageRequest

MAX_LINKED_DATA_BYTES: Final = 2 * 1024 * 1024
"""A longer document, as N-Quads, is not shown as cards: it would take seconds."""
_THREAD_FROM_BYTES: Final = 32 * 1024
_CACHED_BYTES: Final = 16 * 1024 * 1024
_CACHED_FAILURES: Final = 1_000
_FAILURE_KEPT_S: Final = 600
"""After how long a version that could not be rendered is tried again: the machine may have been
busy."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ReadText:
    """The text of a document and its metadata at that moment."""

    stored: Metadata | None
    content_type: str
    decoded: DecodedText | None


class DocumentContents:
    """Reads and renders the content of documents, as the person who asks."""

    def __init__(
        self, *, resources: ResourceService, renderer: ContentRenderer, base_url: str
    ) -> None:
        self._resources = resources
        self._renderer = renderer
        self._base_url = base_url
        self._rendered: BoundedCache[tuple[str, ...], str] = BoundedCache(_CACHED_BYTES)
        self._failed: BoundedCache[tuple[str, ...], float] = BoundedCache(_CACHED_FAILURES)

    async def text(
        self, page: PageRequest, target: ResourcePath, accept: str | None = None
    ) -> ReadText:
        """The text of a document; ``decoded`` is ``None`` if it is not text. Raises RequestRefused
        and ServerTrouble."""
        outcome = await self._read(page, target, accept)
        representation = _representation(outcome)
        content = await _beginning(representation, MAX_TEXT_BYTES + 1)
        charset = parse_media_type(representation.content_type).parameter("charset")
        decoded = decode_text(content, charset)
        return ReadText(outcome.metadata, representation.content_type, decoded)

    async def linked_data(
        self, page: PageRequest, target: ResourcePath, work: Callable[[Dataset], _Result]
    ) -> _Result | None:
        """The result of some work on the statements of a document; ``None`` if they are too many.

        Raises RequestRefused and ServerTrouble.
        """
        representation = _representation(await self._read(page, target, N_QUADS))
        content = await _beginning(representation, MAX_LINKED_DATA_BYTES + 1)
        if len(content) > MAX_LINKED_DATA_BYTES:
            return None
        base_iri = self._base_url + target

        def worked() -> _Result:
            return work(parse(content, N_QUADS, base_iri=base_iri).dataset)

        if len(content) < _THREAD_FROM_BYTES:
            return worked()
        return await asyncio.to_thread(worked)

    async def rendered(
        self, page: PageRequest, task: str, arguments: Mapping[str, str], read: ReadText
    ) -> str | None:
        """Safe HTML, from the cache or the renderer's process; ``None`` if it cannot be made.

        Raises Overloaded.
        """
        if read.stored is None or read.decoded is None:
            return None
        key = (
            read.stored.path,
            read.stored.version,
            read.content_type,
            task,
            *(f"{name}={value}" for name, value in sorted(arguments.items())),
        )
        cached = self._rendered.get(key)
        if cached is not None:
            return cached
        now_s = asyncio.get_running_loop().time()
        if now_s - (self._failed.get(key) or -_FAILURE_KEPT_S) < _FAILURE_KEPT_S:
            return None
        made = await self._renderer.render(
            task, arguments, read.decoded.text.encode(), requester=page.requester
        )
        if made is None:
            self._failed.put(key, now_s)
            return None
        html = made.decode()
        self._rendered.put(key, html, weight=2 * len(html))
        return html

    async def _read(self, page: PageRequest, target: ResourcePath, accept: str | None) -> Outcome:
        return await self._resources.handle(page.operation("GET", target, accept=accept))


def _representation(outcome: Outcome) -> Representation:
    if outcome.representation is None:
        raise NotFound
    return outcome.representation


async def _beginning(representation: Representation, limit_bytes: int) -> bytes:
    """The first bytes of a representation."""
    body = representation.body
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body[:limit_bytes]
    pieces = body.chunks(0, limit_bytes) if hasattr(body, "chunks") else body
    read = bytearray()
    async for piece in pieces:
        read += piece
        if len(read) >= limit_bytes:
            break
    return bytes(read[:limit_bytes])
