"""``/.pages/uploads/``: resumable uploads of the pages' own script.

They are those of ``/.uploads/``, with the session instead of credentials. Each request carries the
token of the session in ``X-CSRF-Token``.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.web.pages import addresses
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import Endpoint, route
from podstead.web.uploads_endpoint import UploadsEndpoint


@dataclass(frozen=True, slots=True)
class PageUploads:
    """Creates, continues and cancels the uploads of a person."""

    endpoint: UploadsEndpoint

    @route(addresses.UPLOADS, "POST")
    async def create(self, page: PageRequest) -> Response:
        """POST: begin an upload."""
        return await self._answer(page, self.endpoint.create)

    @route(addresses.UPLOADS + "{upload}", "HEAD")
    async def inspect(self, page: PageRequest) -> Response:
        """HEAD: how much has been received."""
        return await self._answer(page, self.endpoint.inspect)

    @route(addresses.UPLOADS + "{upload}", "PATCH")
    async def append(self, page: PageRequest) -> Response:
        """PATCH: receive more."""
        return await self._answer(page, self.endpoint.append)

    @route(addresses.UPLOADS + "{upload}", "DELETE")
    async def cancel(self, page: PageRequest) -> Response:
        """DELETE: give the upload up."""
        return await self._answer(page, self.endpoint.cancel)

    async def _answer(self, page: PageRequest, endpoint: Endpoint) -> Response:
        if page.request.method != "HEAD":
            page.check_token(None)
        return await self.endpoint.answer(endpoint, page.request, page.identity)
