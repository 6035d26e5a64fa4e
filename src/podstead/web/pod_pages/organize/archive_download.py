"""``/.pages/zip/<path>``: a container, or selected members of it, as a ZIP archive."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from podstead.resources.archives import Archives
from podstead.web.browsers import VARY_BY_COOKIE
from podstead.web.pages import addresses
from podstead.web.pages.request import PageRequest
from podstead.web.pod_pages.organize.selection import read_selection
from podstead.web.response import NO_STORE, Response, content_response
from podstead.web.routes import REST, route


@dataclass(frozen=True, slots=True)
class ArchiveDownload:
    """Sends archives."""

    archives: Archives

    @route(addresses.ZIP + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound, MethodNotAllowed, BadRequest."""
        return await self._send(page)

    @route(addresses.ZIP + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """As :meth:`get`, for more selected members than an address has room for. Raises
        WrongFormToken as well."""
        return await self._send(page)

    async def _send(self, page: PageRequest) -> Response:
        selection = await read_selection(page)
        request = page.operation("GET", selection.place)
        only = {item.path for item in selection.items} if selection.names else ()
        archive = await self.archives.open(request, only=only, requester=page.requester)
        name = archive.name.encode("ascii", "replace").decode().replace("?", "_")
        disposition = (
            f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(archive.name, safe='')}"
        )
        return content_response(
            archive.chunks,
            "application/zip",
            method=page.request.method,
            headers=[
                (b"content-disposition", disposition.encode("ascii")),
                (b"content-security-policy", b"sandbox; default-src 'none'"),
                NO_STORE,
            ],
            vary=VARY_BY_COOKIE,
        )
