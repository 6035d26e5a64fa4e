"""What the pages of one origin share."""

from urllib.parse import urlsplit

from podstead.core.clock import Randomness
from podstead.web.browsers import FORGET_STORAGE, json_response, see_other
from podstead.web.pages.addresses import SECURITY, SIGNED_OUT
from podstead.web.pages.cookies import Cookies, FlashMessage
from podstead.web.pages.guard import PageGuard
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest, People
from podstead.web.registration import Registration
from podstead.web.response import HeaderField, Response


class Site:
    """The pages of one origin: who is signed in, the guard, the cookies and the renderer."""

    def __init__(
        self,
        base_url: str,
        *,
        pods_url: str,
        people: People,
        registration: Registration,
        randomness: Randomness,
    ) -> None:
        """``pods_url`` is the base URL of the pods, which may have another origin."""
        url = urlsplit(base_url)
        self.pods_url = pods_url
        self.registration = registration
        self.base_url = base_url
        self.people = people
        self.randomness = randomness
        self.server_name = url.netloc
        """The name of the server for people."""
        self.cookies = Cookies(secure=url.scheme == "https")
        self.renderer = PageRenderer(
            server_name=self.server_name, base_url=base_url, randomness=randomness
        )
        self.guard = PageGuard(
            origin=base_url,
            people=people,
            cookies=self.cookies,
            renderer=self.renderer,
            randomness=randomness,
        )
        self.forgetting_page = None if pods_url == base_url else f"{pods_url}{SIGNED_OUT}"
        """The page for signing in at the origin of the pods, if that is another one. Its service
        worker forgets there what it has kept for the person, and ends."""
        self.page = self.renderer.page
        self.account_page = self.renderer.account_page
        self.sign_in_page = self.renderer.sign_in_page

    def see_other(
        self, address: str, message: FlashMessage | None = None, *headers: HeaderField
    ) -> Response:
        """A redirect to another page, which shows the message."""
        shown = () if message is None else (self.cookies.set_flash_message(message),)
        return see_other(address, *shown, *headers)

    def signed_out(
        self,
        page: PageRequest,
        *ended: HeaderField,
        deleted: bool = False,
        onward: object = None,
        url: str | None = None,
    ) -> Response:
        """The page after signing out, or the deletion of an account. ``ended`` are the headers that
        end a session, if there was one: then the browser forgets what it has kept, also at the
        origin of the pods. ``onward`` describes the application to which ``url`` leads."""
        return self.sign_in_page(
            page,
            "sign_in/signed_out.html",
            headers=[FORGET_STORAGE, *ended] if ended else [],
            deleted=deleted,
            onward=onward,
            url=url,
            forgetting_page=self.forgetting_page if ended and not deleted else None,
        )

    def done(self, page: PageRequest, message: str, *headers: HeaderField) -> Response:
        """After a change of an account: for browsers, a redirect to the page whose form asked for
        it, which shows the message; for programs, nothing."""
        if not page.wants_page:
            return json_response(204, None, *headers)
        return self.see_other(page.back or SECURITY, FlashMessage(message), *headers)
