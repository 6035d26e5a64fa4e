"""What the pages about files show of their contents: ``/.pages/raw`` has the bytes of a document,
``/.pages/thumbnail`` a small picture, and ``/.pages/events`` tells when something changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, cast
from urllib.parse import quote

from msgspec.structs import replace

from podstead.core.errors import NotFound
from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.identity import Identity
from podstead.core.media_types import essence
from podstead.previews.rendering import ContentRenderer
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.storage.open_body import OpenBody, whole_body
from podstead.storage.records import Metadata, Version
from podstead.web.browsers import VARY_BY_COOKIE, see_other
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import THUMBNAIL, raw_url, shown_name
from podstead.web.pages.request import PageRequest
from podstead.web.request import Request, operation_of
from podstead.web.resource_responses import Responder
from podstead.web.response import HeaderField, Response, content_response
from podstead.web.routes import REST, route

_PDF: Final = "application/pdf"
_SHOWN_FAMILIES: Final = ("image/", "audio/", "video/")
_SHOWN: Final = frozenset({_PDF, "text/plain"})
_RULES: Final = (
    b"default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; "
    b"frame-ancestors 'self'"
)
_REPLACED: Final = frozenset(
    {b"content-security-policy", b"cache-control", b"link", b"updates-via"}
)


@dataclass(frozen=True, slots=True)
class RawContent:
    """Sends documents as they are stored."""

    resources: ResourceService
    responder: Responder

    @route(addresses.RAW + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound, PreconditionFailed,
        RangeNotSatisfiable."""
        target = page.target
        if is_container(target):
            raise NotFound(WebCodes.NO_CONTENT_OF_CONTAINER)
        asked = operation_of(page.request, None)
        operation = replace(asked, target=target, accept=None, origin=None)
        request = ResourceRequest(operation, page.identity)
        outcome = await self.resources.handle(request)
        if outcome.result is Result.MOVED and outcome.location is not None:
            return see_other(raw_url(outcome.location))
        return self._response(page, target, outcome, request)

    def _response(
        self, page: PageRequest, target: ResourcePath, outcome: Outcome, request: ResourceRequest
    ) -> Response:
        response = self.responder.outcome(outcome, request)
        stored = outcome.metadata
        media_type = "" if stored is None else essence(stored.content_type)
        as_download = not is_shown(media_type) or "download" in page.query
        response.headers = [
            *(field for field in response.headers if field[0] not in _REPLACED),
            (b"cache-control", b"private, no-cache"),
            _policy(media_type),
            _disposition(shown_name(target), as_download=as_download),
        ]
        response.vary = b"Cookie"
        response.of_stored_state = False
        return response


def is_shown(media_type: str) -> bool:
    """Whether browsers may show content of a type by itself: they run nothing that is in it."""
    if media_type.endswith("+xml"):  # such as SVG: browsers show it as a document, with scripts
        return False
    return media_type in _SHOWN or media_type.startswith(_SHOWN_FAMILIES)


def _policy(media_type: str) -> HeaderField:
    sandbox = b"" if media_type == _PDF else b"sandbox; "
    return b"content-security-policy", sandbox + _RULES


def _disposition(name: str, *, as_download: bool) -> HeaderField:
    kind = "attachment" if as_download else "inline"
    return b"content-disposition", f"{kind}; filename*=UTF-8''{quote(name, safe='')}".encode()


MAX_PICTURE_BYTES: Final = 40 * 1024 * 1024
_TYPES: Final = frozenset(
    {
        "image/avif",
        "image/bmp",
        "image/gif",
        "image/jpeg",
        "image/png",
        "image/tiff",
        "image/webp",
    }
)
_KEPT: Final = (b"cache-control", b"private, max-age=3600")
_POLICY: Final = (b"content-security-policy", b"default-src 'none'; sandbox")
_NONE: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 48 48" fill="none" stroke="#808080" '
    b'stroke-width="1.2"><path d="M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01"/></svg>'
)
"""Stands in for the thumbnail of a picture that has none."""


class ThumbnailStore(Protocol):
    """Stores thumbnails by the path and the version of the picture."""

    async def get(self, path: ResourcePath, version: Version) -> bytes | None:
        """The thumbnail, empty if the picture has none; ``None`` if it is not here."""

    async def put(self, path: ResourcePath, version: Version, content: bytes) -> None:
        """Store a thumbnail, or by empty content that there is none."""


def has_thumbnail(metadata: Metadata) -> bool:
    """Whether a resource is of a type, and of a size, that thumbnails are made of."""
    return (
        not metadata.kind.is_container
        and metadata.size_bytes <= MAX_PICTURE_BYTES
        and essence(metadata.content_type) in _TYPES
    )


def thumbnail_url(metadata: Metadata) -> str:
    """The address, which changes with the picture."""
    return f"{THUMBNAIL}{metadata.path}?v={metadata.version}"


@dataclass(frozen=True, slots=True)
class Thumbnails:
    """Sends thumbnails to those who may read the picture."""

    resources: ResourceService
    renderer: ContentRenderer
    store: ThumbnailStore

    @route(addresses.THUMBNAIL + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound, Overloaded."""
        target = page.target
        if is_container(target):
            raise NotFound("A folder has no thumbnail")
        outcome = await self.resources.handle(page.operation("HEAD", target))
        stored = outcome.metadata
        if outcome.result is not Result.REPRESENTED or stored is None or not has_thumbnail(stored):
            raise NotFound("This has no thumbnail")
        made = await self.store.get(target, stored.version)
        if made is None:
            made = await self._made(page, stored)
        headers: list[HeaderField] = [_KEPT, _POLICY]
        return content_response(
            made or _NONE,
            "image/webp" if made else "image/svg+xml",
            method=page.request.method,
            headers=headers,
            vary=VARY_BY_COOKIE,
        )

    async def _made(self, page: PageRequest, stored: Metadata) -> bytes:
        read_version = stored.version

        async def content() -> bytes:
            nonlocal read_version
            outcome = await self.resources.handle(page.operation("GET", stored.path))
            representation, metadata = outcome.representation, outcome.metadata
            if representation is None or metadata is None:
                raise NotFound
            read_version = metadata.version
            # It may have been replaced since.
            if not has_thumbnail(metadata) or not representation.verbatim:
                return b""
            body = representation.body
            if isinstance(body, bytes):
                return body
            return b"" if body is None else await whole_body(cast("OpenBody", body))

        made = await self.renderer.render("thumbnail", {}, content, requester=page.requester)
        await self.store.put(stored.path, read_version, made or b"")
        return made or b""


class ChangeStreams(Protocol):
    """Streams of changes, as Server-Sent Events."""

    async def changes(
        self, request: Request, agent: Identity | None, topic: ResourcePath
    ) -> Response:
        """Raises NotAuthenticated, AccessDenied, RateLimited, ServerTrouble."""


@dataclass(frozen=True, slots=True)
class PageEvents:
    """Sends events to pages."""

    streams: ChangeStreams

    @route(addresses.EVENTS + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, RateLimited, ServerTrouble."""
        return await self.streams.changes(page.request, page.identity, page.target)
