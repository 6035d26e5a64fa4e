"""``GET /favicon.ico``: the icon that browsers ask every server for and show beside its pages."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from podstead.core.agents import Agent
from podstead.web.public_document import public_document
from podstead.web.request import Request
from podstead.web.response import Response

_MAX_AGE_S: Final = 86_400


class FaviconEndpoint:
    """Answers with the icon, which is read once, when the server starts."""

    def __init__(self) -> None:
        self._content = files("podstead.web").joinpath("static", "favicon.ico").read_bytes()

    async def get(self, request: Request, _: Agent) -> Response:
        """Raises PreconditionFailed."""
        return public_document(request, self._content, age_s=_MAX_AGE_S, media_type="image/x-icon")
