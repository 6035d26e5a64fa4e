"""``/idp/account/export``: a person downloads everything in their pod.

The form requires a recent sign-in and leads to the archive, which can then be downloaded in this
session for a day, in parts if the connection breaks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import NotFound
from podstead.core.header_fields import if_range_holds, select_range
from podstead.idp.sessions import PodExports
from podstead.resources.exporting.archive import PodDownloads
from podstead.web.browsers import json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import ACCOUNT, again_url
from podstead.web.pages.request import PageRequest, SignInAgain
from podstead.web.response import Response, content_response
from podstead.web.routes import route

EXPORT_PATH: Final = f"{ACCOUNT}/export"
_SUFFIX: Final = ".zip"


@dataclass(frozen=True, slots=True)
class ExportPages:
    """Allows downloads, and sends them."""

    exports: PodExports
    downloads: PodDownloads

    @route(EXPORT_PATH, "POST", needs_terms=False)
    async def allow(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain."""
        await page.submission()
        owner = page.recent_owner("export")
        await self.exports.allow(owner, page.source)
        address = f"{EXPORT_PATH}/{owner.account.pod}{_SUFFIX}"
        if page.wants_page:
            return see_other(address)
        return json_response(200, {"archive": address})

    @route(EXPORT_PATH + "/{file}", "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The archive, or a part of it. Raises NotAuthenticated, SignInAgain, NotFound,
        RangeNotSatisfiable, Overloaded, StorageError."""
        owner, request = page.owner(), page.request
        name = owner.account.pod + _SUFFIX
        if page.segment != name:
            raise NotFound(WebCodes.OTHER_POD_NAME)
        if not await self.exports.is_allowed(owner):
            raise SignInAgain(again_url("export"))
        archive = await self.downloads.open(owner.account.pod)
        etag = f'"{archive.tag}"'
        fields = request.fields
        asked = fields.get(b"range") if request.method == "GET" else None
        if not if_range_holds(fields.get(b"if-range"), etag, None):
            asked = None
        part = select_range(asked, archive.size_bytes)
        headers = [
            (b"etag", etag.encode("ascii")),
            (b"accept-ranges", b"bytes"),
            (b"content-disposition", f'attachment; filename="{name}"'.encode("ascii")),
            (b"cache-control", b"private, no-cache"),
        ]
        return content_response(
            archive,
            "application/zip",
            method="GET",
            status=200 if part is None else 206,
            headers=headers,
            size_bytes=archive.size_bytes,
            byte_range=part,
        )
