"""``/``: the first page of the server. What is this, and how does one begin?"""

from __future__ import annotations

from podstead.web.pages.cookies import Cookies
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
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
        cookies: Cookies,
    ) -> None:
        """``provider`` is the URL of the identity provider, if there is one, and ``at_provider``
        precedes the addresses of its pages."""
        self._renderer = renderer
        self._version = version
        self._provider = provider
        self._at_provider = at_provider
        self._registration = registration
        self._cookies = cookies

    async def get(self, page: PageRequest) -> Response:
        """The page."""
        is_known = page.person is not None or self._cookies.says_signed_in(page.request)
        return self._renderer.page(
            page,
            "first_page.html",
            offers_sign_in=not is_known,
            version=self._version,
            provider=self._provider,
            at_provider=self._at_provider,
            registration=self._registration.mode,
            operator=self._registration.about,
            is_known=is_known,
        )
