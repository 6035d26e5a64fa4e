"""``/idp/auth``: an application requests authorization by a person (A-52 to A-57)."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from podstead.core.clock import Clock
from podstead.idp.authorizations import AuthorizationReply, Authorizations
from podstead.idp.client_metadata import redirect_origin
from podstead.idp.records import Client
from podstead.idp.token_issuing import AUTHORIZATION_PATH
from podstead.storage.protocol import RateCounters
from podstead.web.browsers import see_other
from podstead.web.forms import read_form, read_query
from podstead.web.idp.client_display import client_display
from podstead.web.idp.login_page import LoginPage
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.replies import next_response, reply_url
from podstead.web.idp.session_guard import BrowserRequest, Rule
from podstead.web.limits import address_key, take
from podstead.web.response import Response
from podstead.web.routes import route

BEGUN_PER_MINUTE: Final = 600
"""How many authorizations an address may begin, since each is stored for a while."""


class AuthorizationEndpoint:
    """Begins authorizations, and continues them after each step."""

    def __init__(
        self,
        *,
        authorizations: Authorizations,
        login: LoginPage,
        renderer: Renderer,
        counters: RateCounters,
        clock: Clock,
        base_url: str,
        pods_url: str,
    ) -> None:
        self._authorizations = authorizations
        self._counters = counters
        self._clock = clock
        self._login = login
        self._renderer = renderer
        self._base_url = base_url
        self._pods_url = pods_url

    @route(AUTHORIZATION_PATH, "GET", rule=Rule.ANYWHERE)
    async def get(self, browser_request: BrowserRequest) -> Response:
        """Begin an authorization or, without parameters, show the sign-in page. Raises
        UnusableClient, RateLimited."""
        parameters = read_query(browser_request.request)
        if "client_id" not in parameters:
            return await self._login.get(browser_request)
        await self._count(browser_request)
        session = browser_request.open_session.session if browser_request.open_session else None
        following = await self._authorizations.begin(
            parameters, session=session, browser=browser_request.browser
        )
        if (
            isinstance(following, AuthorizationReply)
            and following.stranger
            and self._leads_away(browser_request, following)
        ):
            return self._leaving_page(following, following.stranger)
        return next_response(following, self._renderer)

    def _leads_away(self, browser_request: BrowserRequest, reply: AuthorizationReply) -> bool:
        """Whether a redirect would take a person to a site that they have not just come from. It
        does not if a program sent the request, if it comes from a frame in which an application
        asks whether somebody is signed in (Fetch Metadata section 2.1), or if it leads back to the
        site that the person came from."""
        destination = browser_request.request.fields.get(b"sec-fetch-dest")
        if not browser_request.wants_page or destination not in (None, "document"):
            return False
        came_from = redirect_origin(browser_request.request.fields.get(b"referer") or "")
        # The pods of this server share an origin, but belong to different people.
        known = came_from is not None and came_from not in {self._base_url, self._pods_url}
        return not (known and came_from == redirect_origin(reply.redirect_uri))

    def _leaving_page(self, reply: AuthorizationReply, client: Client) -> Response:
        """The page shown before an error is sent to a site that nobody has agreed to be sent to."""
        by_form = reply.response_mode == "form_post"
        return self._renderer.page(
            "leaving.html",
            form_targets=[reply.redirect_uri] if by_form else [],
            client=client_display(client, reply.redirect_uri, base_url=self._pods_url),
            error=reply.parameters["error"],
            url=reply.redirect_uri if by_form else reply_url(reply),
            parameters=reply.parameters if by_form else None,
        )

    async def _count(self, browser_request: BrowserRequest) -> None:
        await take(
            self._counters,
            f"authorization:{address_key(browser_request.request.client_address)}",
            capacity=BEGUN_PER_MINUTE,
            period_s=60,
            clock=self._clock,
        )

    @route(AUTHORIZATION_PATH, "POST", rule=Rule.ANYWHERE)
    async def post(self, browser_request: BrowserRequest) -> Response:
        """The same with a form, whose fields become a query. Browsers do not send the necessary
        cookies with a form of another site, but they do with the request after a redirect."""
        form = await read_form(browser_request.request)
        return see_other(f"{AUTHORIZATION_PATH}?{urlencode(form, doseq=True)}")

    @route(AUTHORIZATION_PATH + "/{uid}", "GET")
    async def resume(self, browser_request: BrowserRequest) -> Response:
        """Continue the authorization with this uid. Raises NotFound, AccessDenied, BadRequest."""
        pending = await self._authorizations.pending(
            browser_request.segment, browser=browser_request.browser
        )
        session = browser_request.open_session.session if browser_request.open_session else None
        return next_response(await self._authorizations.proceed(pending, session), self._renderer)
