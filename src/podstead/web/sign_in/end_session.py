"""``/idp/session/end``: an application or a person ends a session (A-84).

OpenID Connect RP-Initiated Logout 1.0. With an ID token of this very session the session ends at
once, and the person returns to the application. Otherwise a page asks first and names the place
that it would redirect to, since any site can send a browser here.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from podstead.idp.audit import Audit
from podstead.idp.clients import ClientDirectory
from podstead.idp.grants import ConnectedClients
from podstead.idp.keys import ProviderKeys
from podstead.idp.records import Client
from podstead.idp.sessions import OpenSession, Sessions, may_return_to, read_id_token_hint
from podstead.idp.token_issuing import END_SESSION_PATH
from podstead.web.browsers import FORGET_STORAGE, see_other
from podstead.web.forms import Fields, FormSubmission, only, read_form, read_query
from podstead.web.pages.cookies import SESSION
from podstead.web.pages.guard import Rule
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in.authorization import ClientDisplay, client_display
from podstead.web.sign_in.people import PodSessions, end_browser_session

CONFIRMATION_PATH: Final = f"{END_SESSION_PATH}/confirm"


@dataclass(frozen=True, slots=True)
class _Return:
    """The URL to send the person to afterwards, and the application that asked for it."""

    client: Client | None
    uri: str | None
    state: str | None

    def display(self, base_url: str) -> ClientDisplay | None:
        """Its description on a page of the server at ``base_url``; ``None`` if there is no
        redirect."""
        if self.client is None or self.uri is None:
            return None
        return client_display(self.client, self.uri, base_url=base_url)

    @property
    def url(self) -> str | None:
        """The URL, with the state that the application gave."""
        if self.uri is None or self.state is None:
            return self.uri
        joined = "&" if "?" in self.uri else "?"
        return f"{self.uri}{joined}{urlencode({'state': self.state})}"


@dataclass(frozen=True, slots=True)
class EndSessionPages:
    """Asks, ends the session, and redirects to the application where that is allowed."""

    site: Site
    keys: ProviderKeys
    clients: ClientDirectory
    sessions: Sessions
    pod_sessions: PodSessions
    connected_clients: ConnectedClients
    audit: Audit

    @route(END_SESSION_PATH, "GET", rule=Rule.ANYWHERE, needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """Sign out if the ID token is from this session, otherwise ask. Raises BadRequest."""
        query = read_query(page.request)
        hint_text = only(query, "id_token_hint")
        hint = None
        if hint_text is not None:
            hint = await read_id_token_hint(hint_text, issuer=self.site.base_url, keys=self.keys)
        client_id = only(query, "client_id")
        if hint is not None and client_id not in (None, hint.client_id):
            hint = None
        onward = await self._onward(query, hint.client_id if hint else client_id)
        session = page.open_session
        if session is None:
            return self._signed_out_before(page, onward)
        if hint is not None and hint.means(session):
            return await self._end(page, session, onward)
        return self.site.sign_in_page(
            page,
            "sign_in/sign_out.html",
            form_targets=[onward.uri] if onward.uri else [],
            action=CONFIRMATION_PATH,
            account=session.account,
            csrf_token=session.session.csrf_token,
            client=onward.client,
            onward=onward.display(self.site.pods_url),
            post_logout_redirect_uri=onward.uri,
            state=onward.state,
        )

    @route(END_SESSION_PATH, "POST", rule=Rule.ANYWHERE, needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """The same with a form, which redirects to the request above (see ``/idp/auth``)."""
        form = await read_form(page.request)
        return see_other(f"{END_SESSION_PATH}?{urlencode(form, doseq=True)}")

    @route(CONFIRMATION_PATH, "POST")
    async def confirm(self, page: PageRequest) -> Response:
        """The person agrees. Raises WrongFormToken, BadRequest."""
        session = page.open_session
        if session is None:
            return self._signed_out_before(page, _Return(None, None, None))
        sent = await page.submission()
        if sent.ticked("applications"):
            await self.connected_clients.end_of_session(
                session.account.account_id, session.session.public_id
            )
        fields = {
            name: [sent.text(name)]
            for name in ("post_logout_redirect_uri", "state")
            if sent.text(name)
        }
        return await self._end(page, session, await self._onward(fields, _client_id(sent)))

    async def _onward(self, fields: Fields, client_id: str | None) -> _Return:
        client = None if client_id is None else await self.clients.find(client_id)
        uri = only(fields, "post_logout_redirect_uri")
        if not may_return_to(client, uri):
            uri = None
        return _Return(client, uri, only(fields, "state"))

    async def _end(self, page: PageRequest, session: OpenSession, onward: _Return) -> Response:
        await end_browser_session(
            session,
            self.site.base_url,
            sessions=self.sessions,
            pod_sessions=self.pod_sessions,
            audit=self.audit,
        )
        ended = self.site.cookies.clear(SESSION)
        if onward.url is not None:  # allowed by an ID token of the session, or a page that named it
            return see_other(onward.url, FORGET_STORAGE, ended)
        return self.site.signed_out(page, ended)

    def _signed_out_before(self, page: PageRequest, onward: _Return) -> Response:
        """For a browser that is not signed in. Any site can send a browser here, and anybody can
        register an application, so the page names the URL and does not redirect by itself (RFC 9700
        section 4.11.2)."""
        return self.site.signed_out(page, onward=onward.display(self.site.pods_url), url=onward.url)


def _client_id(sent: FormSubmission) -> str | None:
    return sent.text("client_id") or None
