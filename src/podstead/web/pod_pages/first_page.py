"""``/``: the first page of the server. What is this, and how does one begin?"""

from __future__ import annotations

from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.response import Response


class FirstPage:
    """Explains the server to visitors, and leads people to their pods."""

    def __init__(
        self,
        renderer: PageRenderer,
        *,
        version: str,
        provider: str | None,
        at_provider: str,
        registration_open: bool,
    ) -> None:
        """``provider`` is the URL of the identity provider, if there is one, and ``at_provider``
        precedes the addresses of its pages. ``registration_open`` is true if anyone may create a
        pod."""
        self._renderer = renderer
        self._version = version
        self._provider = provider
        self._at_provider = at_provider
        self._registration_open = registration_open

    async def get(self, page: PageRequest) -> Response:
        """The page."""
        return self._renderer.page(
            page,
            "first_page.html",
            version=self._version,
            provider=self._provider,
            at_provider=self._at_provider,
            registration_open=self._registration_open,
        )
