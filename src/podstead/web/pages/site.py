"""What the pages of one origin share."""

from __future__ import annotations

from urllib.parse import urlsplit

from podstead.core.clock import Randomness
from podstead.web.browsers import see_other
from podstead.web.pages.cookies import Cookies, Notice
from podstead.web.pages.guard import Guard
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import People
from podstead.web.response import HeaderField, Response


class Site:
    """The pages of one origin: who is signed in, the guard, the cookies and the renderer."""

    def __init__(self, base_url: str, people: People, randomness: Randomness) -> None:
        url = urlsplit(base_url)
        self.base_url = base_url
        self.people = people
        self.randomness = randomness
        self.server_name = url.netloc
        """The name of the server for people."""
        self.cookies = Cookies(secure=url.scheme == "https")
        self.renderer = PageRenderer(
            server_name=self.server_name, base_url=base_url, randomness=randomness
        )
        self.guard = Guard(
            origin=base_url,
            people=people,
            cookies=self.cookies,
            renderer=self.renderer,
            randomness=randomness,
        )
        self.page = self.renderer.page
        self.account_page = self.renderer.account_page
        self.sign_in_page = self.renderer.sign_in_page

    def see_other(
        self, address: str, notice: Notice | None = None, *headers: HeaderField
    ) -> Response:
        """A redirect to another page, which shows the notice."""
        noticed = () if notice is None else (self.cookies.set_notice(notice),)
        return see_other(address, *noticed, *headers)
