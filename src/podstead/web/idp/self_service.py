"""What belongs to an account: sessions, applications, client credentials (A-86).

Programs read and delete them as JSON; the forms of the account page post to the same URLs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from podstead.core.errors import AccessDenied, NotFound
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.codes import IdpCodes
from podstead.idp.credentials import ClientCredentials
from podstead.idp.grants import ConnectedClient, ConnectedClients
from podstead.idp.records import BrowserSession, SecurityEvent
from podstead.idp.sessions import Sessions
from podstead.web.browsers import json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.idp.cookies import Cookies, FlashMessage
from podstead.web.idp.display import machine_time
from podstead.web.idp.login_page import again_path
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.session_guard import ACCOUNT_PATH, LOGIN_PATH, BrowserRequest
from podstead.web.idp.shown_applications import shown_applications
from podstead.web.response import Response
from podstead.web.routes import route

SESSIONS_PATH: Final = f"{ACCOUNT_PATH}/sessions"
GRANTS_PATH: Final = f"{ACCOUNT_PATH}/grants"
EVENTS_PATH: Final = f"{ACCOUNT_PATH}/events"
CREDENTIALS_PATH: Final = f"{ACCOUNT_PATH}/client-credentials"


EventsOf = Callable[[str], Awaitable[Sequence[SecurityEvent]]]
"""The events of an account, the newest first. Raises StorageError."""


class SelfService:
    """Lists and ends what belongs to an account, and creates client credentials."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        connected_clients: ConnectedClients,
        credentials: ClientCredentials,
        cookies: Cookies,
        renderer: Renderer,
        events: EventsOf,
        audit: Audit,
        base_url: str,
        pods_url: str,
    ) -> None:
        self._sessions = sessions
        self._connected_clients = connected_clients
        self._credentials = credentials
        self._cookies = cookies
        self._renderer = renderer
        self._events = events
        self._audit = audit
        self._base_url = base_url
        self._pods_url = pods_url

    # --- sessions -----------------------------------------------------------------------------

    @route(SESSIONS_PATH, "GET", is_page=False)
    async def list_sessions(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated."""
        return json_response(200, {"sessions": await self._sessions_json(browser_request)})

    @route(SESSIONS_PATH + "/{id}", "GET", is_page=False)
    async def get_session(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        return json_response(
            200, _named(await self._sessions_json(browser_request), browser_request.segment)
        )

    @route(SESSIONS_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def end_session(self, browser_request: BrowserRequest) -> Response:
        """Sign one browser out. Raises NotAuthenticated, WrongFormToken, NotFound."""
        await browser_request.submission()
        owner = browser_request.owner()
        for stored in await self._sessions.of_account(owner.account):
            if stored.value.public_id == browser_request.segment:
                await self._sessions.end(stored)
                self._audit.note(AuditEvent.SIGNED_OUT, account_id=owner.account.account_id)
                is_this = stored.key == owner.stored.key
                return (
                    self._signed_out_here(browser_request)
                    if is_this
                    else self._gone(browser_request, "session")
                )
        raise NotFound(WebCodes.NO_SUCH_SESSION)

    # --- applications -------------------------------------------------------------------------

    @route(GRANTS_PATH, "GET", is_page=False)
    async def list_grants(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated."""
        return json_response(200, {"grants": await self._grants_json(browser_request)})

    @route(GRANTS_PATH + "/{id}", "GET", is_page=False)
    async def get_grant(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        return json_response(
            200, _named(await self._grants_json(browser_request), browser_request.segment)
        )

    @route(GRANTS_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def end_grant(self, browser_request: BrowserRequest) -> Response:
        """Disconnect an application, with all registrations that the account page shows as one.
        Raises NotAuthenticated, WrongFormToken, NotFound."""
        await browser_request.submission()
        account_id = browser_request.owner().account.account_id
        connected_clients = await self._connected_clients.of_account(account_id)
        ended = False
        for connection_id in self._shown_as(browser_request.segment, connected_clients):
            client_id = await self._connected_clients.end(account_id, connection_id)
            if client_id is not None:
                ended = True
                self._audit.note(
                    AuditEvent.CONSENT_ENDED, account_id=account_id, client_id=client_id
                )
        if not ended:
            raise NotFound(WebCodes.NO_SUCH_CLIENT)
        return self._gone(browser_request, "disconnected")

    def _shown_as(
        self, shown_id: str, connected_clients: Sequence[ConnectedClient]
    ) -> Sequence[str]:
        """The connection ids that an id on the account page, or in the list for programs, stands
        for."""
        for application in shown_applications(connected_clients, base_url=self._pods_url):
            if application.application_id == shown_id:
                return application.connection_ids
        return (shown_id,)

    # --- changes of how the person signs in ---------------------------------------------------

    @route(EVENTS_PATH, "GET", is_page=False)
    async def list_events(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated."""
        account_id = browser_request.owner().account.account_id
        return json_response(
            200, {"events": [_event_json(each) for each in await self._events(account_id)]}
        )

    # --- client credentials -------------------------------------------------------------------

    @route(CREDENTIALS_PATH, "GET", is_page=False)
    async def list_credentials(self, browser_request: BrowserRequest) -> Response:
        """By id, as clients of other servers expect. Raises NotAuthenticated."""
        account_id = browser_request.owner().account.account_id
        listed = await self._credentials.of(account_id)
        resources = {each.credential_id: self._resource(each.credential_id) for each in listed}
        return json_response(200, {"clientCredentials": resources})

    @route(CREDENTIALS_PATH + "/{id}", "GET", is_page=False)
    async def get_credential(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        for each in await self._credentials.of(browser_request.owner().account.account_id):
            if each.credential_id == browser_request.segment:
                body = {"id": each.credential_id, "name": each.name, "webId": each.web_id}
                return json_response(200, body)
        raise NotFound(IdpCodes.NO_SUCH_CREDENTIALS)

    @route(CREDENTIALS_PATH, "POST", is_page=False)
    async def create_credential(self, browser_request: BrowserRequest) -> Response:
        """Requires a recent sign-in, because credentials outlast the session and the password.

        Raises NotAuthenticated, WrongFormToken, BadRequest, Conflict, and AccessDenied without a
        recent sign-in.
        """
        sent = await browser_request.submission()
        owner = browser_request.owner()
        if not self._sessions.is_recent(owner):
            if browser_request.wants_page:
                return see_other(again_path("credentials", browser_request.back))
            raise AccessDenied(WebCodes.SIGN_IN_AGAIN)
        created = await self._credentials.create(
            owner.owner,
            name=sent.text("name"),
            web_id=sent.text("webId") or None,
            source=browser_request.source,
        )
        credential = created.credential
        if browser_request.wants_page:
            return self._renderer.page_of_person(
                "new_credential.html",
                owner,
                credential=credential,
                secret=created.secret,
                base_url=self._base_url,
                back=browser_request.account_address,
            )
        resource = self._resource(credential.credential_id)
        body = {"id": credential.credential_id, "secret": created.secret, "resource": resource}
        return json_response(201, body, (b"location", resource.encode("ascii")))

    @route(CREDENTIALS_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def end_credential(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, NotFound."""
        await browser_request.submission()
        await self._credentials.delete(
            browser_request.owner().account.account_id,
            browser_request.segment,
            source=browser_request.source,
        )
        return self._gone(browser_request, "credential-removed")

    # --- parts --------------------------------------------------------------------------------

    async def _sessions_json(self, browser_request: BrowserRequest) -> list[dict[str, object]]:
        owner = browser_request.owner()
        listed = await self._sessions.of_account(owner.account)
        current = owner.session.public_id
        return [_session_json(each.value, current=current) for each in listed]

    async def _grants_json(self, browser_request: BrowserRequest) -> list[dict[str, object]]:
        listed = await self._connected_clients.of_account(
            browser_request.owner().account.account_id
        )
        return [_grant_json(each) for each in listed]

    def _gone(self, browser_request: BrowserRequest, flash_message: str) -> Response:
        if browser_request.wants_page:
            return see_other(
                browser_request.account_address,
                self._cookies.set_flash_message(FlashMessage(flash_message)),
            )
        return json_response(204, None)

    def _signed_out_here(self, browser_request: BrowserRequest) -> Response:
        forget = self._cookies.clear_session()
        if browser_request.wants_page:
            return see_other(
                LOGIN_PATH, self._cookies.set_flash_message(FlashMessage("signed-out")), forget
            )
        return json_response(204, None, forget)

    def _resource(self, credential_id: str) -> str:
        return f"{self._base_url}{CREDENTIALS_PATH}/{credential_id}"


def _named(listed: list[dict[str, object]], name: str) -> Mapping[str, object]:
    for each in listed:
        if each["id"] == name:
            return each
    raise NotFound(WebCodes.NO_SUCH_ENTRY)


def _event_json(event: SecurityEvent) -> dict[str, object]:
    return {
        "at": machine_time(event.at_s),
        "what": event.what,
        "subject": event.subject,
        "address": event.address or None,
        "userAgent": event.user_agent,
        "by": event.by or None,
    }


def _session_json(session: BrowserSession, *, current: str) -> dict[str, object]:
    return {
        "id": session.public_id,
        "current": session.public_id == current,
        "since": machine_time(session.created_s),
        "factor": session.factor,
        "lasting": session.lasting,
        "userAgent": session.user_agent,
    }


def _grant_json(connection: ConnectedClient) -> dict[str, object]:
    used_s = connection.last_used_s
    return {
        "id": connection.connection_id,
        "clientId": connection.client_id,
        "clientName": connection.client_name,
        "hosts": list(connection.hosts),
        "scopes": list(connection.scopes),
        "since": machine_time(connection.since_s),
        "lastUsed": None if used_s is None else machine_time(used_s),
    }
