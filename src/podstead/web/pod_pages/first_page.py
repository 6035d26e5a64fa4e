"""``/``: the first page of the server. What is this, and how does one begin?"""

from __future__ import annotations

from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.registration import Registration
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
        registration: Registration,
    ) -> None:
        """``provider`` is the URL of the identity provider, if there is one, and ``at_provider``
        precedes the addresses of its pages."""
        self._renderer = renderer
        self._version = version
        self._provider = provider
        self._at_provider = at_provider
        self._registration = registration

    async def get(self, page: PageRequest) -> Response:
        """The page."""
        return self._renderer.page(
            page,
            "first_page.html",
            version=self._version,
            provider=self._provider,
            at_provider=self._at_provider,
            registration=self._registration.mode,
            operator=self._registration.about,
        )
