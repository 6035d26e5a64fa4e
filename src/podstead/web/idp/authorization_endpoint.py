"""``/idp/auth``: an application requests authorization by a person (A-52 to A-57)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from podstead.core.clock import Clock
from podstead.idp.authorizations import AuthorizationReply, Authorizations
from podstead.idp.client_metadata import redirect_origin
from podstead.idp.oauth.authorization import UnusableClient
from podstead.idp.records import Client
from podstead.idp.token_issuing import AUTHORIZATION_PATH
from podstead.storage.protocol import RateCounters
from podstead.web.browsers import see_other
from podstead.web.forms import read_form, read_query
from podstead.web.idp.client_display import client_display
from podstead.web.idp.login_page import LoginPage
from podstead.web.idp.replies import next_response, reply_url
from podstead.web.limits import address_key, take
from podstead.web.pages.guard import Rule
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

BEGUN_PER_MINUTE: Final = 600
"""How many authorizations an address may begin, since each is stored for a while."""


@dataclass(frozen=True, slots=True)
class AuthorizationEndpoint:
    """Begins authorizations, and continues them after each step."""

    site: Site
    authorizations: Authorizations
    login: LoginPage
    counters: RateCounters
    clock: Clock

    @route(AUTHORIZATION_PATH, "GET", rule=Rule.ANYWHERE, needs_terms=False, is_shown_again=False)
    async def get(self, page: PageRequest) -> Response:
        """Begin an authorization or, without parameters, show the sign-in page. Raises
        RateLimited."""
        parameters = read_query(page.request)
        if "client_id" not in parameters:
            return await self.login.get(page)
        await self._count(page)
        session = page.open_session.session if page.open_session else None
        try:
            following = await self.authorizations.begin(
                parameters, session=session, browser=page.browser
            )
        except UnusableClient as error:
            return self.site.renderer.refusal(page, error, 400, unusable_client=True)
        if (
            isinstance(following, AuthorizationReply)
            and following.stranger
            and self._leads_away(page, following)
        ):
            return self._leaving_page(page, following, following.stranger)
        return next_response(page, following, self.site.renderer)

    def _leads_away(self, page: PageRequest, reply: AuthorizationReply) -> bool:
        """Whether a redirect would take a person to a site that they have not just come from. It
        does not if a program sent the request, if it comes from a frame in which an application
        asks whether somebody is signed in (Fetch Metadata section 2.1), or if it leads back to the
        site that the person came from."""
        destination = page.request.fields.get(b"sec-fetch-dest")
        if not page.wants_page or destination not in (None, "document"):
            return False
        came_from = redirect_origin(page.request.fields.get(b"referer") or "")
        # The pods of this server share an origin, but belong to different people.
        known = came_from is not None and came_from not in {self.site.base_url, self.site.pods_url}
        return not (known and came_from == redirect_origin(reply.redirect_uri))

    def _leaving_page(
        self, page: PageRequest, reply: AuthorizationReply, client: Client
    ) -> Response:
        """The page shown before an error is sent to a site that nobody has agreed to be sent to."""
        by_form = reply.response_mode == "form_post"
        return self.site.sign_in_page(
            page,
            "leaving.html",
            form_targets=[reply.redirect_uri] if by_form else [],
            client=client_display(client, reply.redirect_uri, base_url=self.site.pods_url),
            error=reply.parameters["error"],
            url=reply.redirect_uri if by_form else reply_url(reply),
            parameters=reply.parameters if by_form else None,
        )

    async def _count(self, page: PageRequest) -> None:
        await take(
            self.counters,
            f"authorization:{address_key(page.request.client_address)}",
            capacity=BEGUN_PER_MINUTE,
            period_s=60,
            clock=self.clock,
        )

    @route(AUTHORIZATION_PATH, "POST", rule=Rule.ANYWHERE, needs_terms=False, is_shown_again=False)
    async def post(self, page: PageRequest) -> Response:
        """The same with a form, whose fields become a query. Browsers do not send the necessary
        cookies with a form of another site, but they do with the request after a redirect."""
        form = await read_form(page.request)
        return see_other(f"{AUTHORIZATION_PATH}?{urlencode(form, doseq=True)}")

    @route(AUTHORIZATION_PATH + "/{uid}", "GET", is_shown_again=False)
    async def resume(self, page: PageRequest) -> Response:
        """Continue the authorization with this uid. Raises NotFound, AccessDenied, BadRequest."""
        pending = await self.authorizations.pending(page.segment, browser=page.browser)
        session = page.open_session.session if page.open_session else None
        return next_response(
            page, await self.authorizations.proceed(pending, session), self.site.renderer
        )
