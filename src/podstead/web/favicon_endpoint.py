"""``GET /favicon.ico``: the icon that browsers request from every server and show in their tabs."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from podstead.core.identity import Identity
from podstead.web.public_document import public_document
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.routes import Access, route

_MAX_AGE_S: Final = 86_400


@cache
def favicon() -> bytes:
    """The icon, read from the package once."""
    return files("podstead.web").joinpath("static", "favicon.ico").read_bytes()


class FaviconEndpoint:
    """Serves the icon."""

    @route("/favicon.ico", "GET", "HEAD", access=Access.PUBLIC)
    async def get(self, request: Request, _: Identity | None) -> Response:
        """Raises PreconditionFailed."""
        return public_document(request, favicon(), age_s=_MAX_AGE_S, media_type="image/x-icon")
