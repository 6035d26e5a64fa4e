"""``/``: the first page of the server. What is this, and how does one begin?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response


@dataclass(frozen=True, slots=True)
class FirstPage:
    """Explains the server to visitors, and leads people to their pods.

    ``provider`` is the URL of the identity provider, if there is one, and ``at_provider``
    precedes the addresses of its pages.
    """

    site: Site
    version: str
    provider: str | None
    at_provider: str

    async def get(self, page: PageRequest) -> Response:
        """The page."""
        is_known = page.person is not None or self.site.cookies.says_signed_in(page.request)
        return self.site.page(
            page,
            "first_page.html",
            offers_sign_in=not is_known,
            version=self.version,
            provider=self.provider,
            at_provider=self.at_provider,
            registration=self.site.registration.mode,
            operator=self.site.registration.about,
            is_known=is_known,
        )
