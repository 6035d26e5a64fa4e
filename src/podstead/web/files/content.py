"""What the pages about files show of their contents: ``/.pages/raw`` has the bytes of a document,
``/.pages/thumbnail`` a small picture, and ``/.pages/events`` tells when something changes.
"""

from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import quote

from msgspec.structs import replace

from podstead.core.errors import NotFound
from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.identity import Identity
from podstead.core.media_types import essence
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import raw_url, shown_name
from podstead.web.pages.request import PageRequest
from podstead.web.request import Request, operation_of
from podstead.web.resource_responses import Responder
from podstead.web.response import HeaderField, Response
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
        return await self.send(page, page.target)

    async def send(
        self, page: PageRequest, target: ResourcePath, *, leads_on: bool = True
    ) -> Response:
        """The document, to the person of the page; raises as :meth:`get`. ``leads_on`` is whether
        the address without a slash of a container is a redirect to that."""
        if is_container(target):
            raise NotFound(WebCodes.NO_CONTENT_OF_CONTAINER)
        asked = operation_of(page.request, None)
        operation = replace(asked, target=target, accept=None, origin=None)
        request = ResourceRequest(operation, page.identity)
        outcome = await self.resources.handle(request)
        if outcome.result is Result.MOVED and outcome.location is not None:
            if not leads_on:
                raise NotFound
            return see_other(raw_url(outcome.location))
        return self._response(page, target, outcome, request)

    def _response(
        self, page: PageRequest, target: ResourcePath, outcome: Outcome, request: ResourceRequest
    ) -> Response:
        response = self.responder.outcome(outcome, request)
        stored = outcome.metadata
        return as_raw(page, target, response, "" if stored is None else stored.content_type)


def as_raw(
    page: PageRequest, target: ResourcePath, response: Response, content_type: str
) -> Response:
    """A response with the bytes of a document, for the pages: browsers run nothing in it."""
    media_type = essence(content_type)
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
        return await self.streams.changes(page.request, page.identity, page.target)
