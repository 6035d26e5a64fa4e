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
from podstead.web.idp.display import machine_time
from podstead.web.idp.shown_applications import shown_applications
from podstead.web.pages.addresses import ACCOUNT, LOGIN, SECURITY, again_url
from podstead.web.pages.cookies import SESSION, Cookies, Notice
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

SESSIONS_PATH: Final = f"{ACCOUNT}/sessions"
GRANTS_PATH: Final = f"{ACCOUNT}/grants"
EVENTS_PATH: Final = f"{ACCOUNT}/events"
CREDENTIALS_PATH: Final = f"{ACCOUNT}/client-credentials"


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
        renderer: PageRenderer,
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
    async def list_sessions(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated."""
        return json_response(200, {"sessions": await self._sessions_json(page)})

    @route(SESSIONS_PATH + "/{id}", "GET", is_page=False)
    async def get_session(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        return json_response(200, _named(await self._sessions_json(page), page.segment))

    @route(SESSIONS_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def end_session(self, page: PageRequest) -> Response:
        """Sign one browser out. Raises NotAuthenticated, WrongFormToken, NotFound."""
        await page.submission()
        owner = page.owner()
        for stored in await self._sessions.of_account(owner.account):
            if stored.value.public_id == page.segment:
                await self._sessions.end(stored)
                self._audit.note(AuditEvent.SIGNED_OUT, account_id=owner.account.account_id)
                is_this = stored.key == owner.stored.key
                return self._signed_out_here(page) if is_this else self._gone(page, "session")
        raise NotFound(WebCodes.NO_SUCH_SESSION)

    # --- applications -------------------------------------------------------------------------

    @route(GRANTS_PATH, "GET", is_page=False)
    async def list_grants(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated."""
        return json_response(200, {"grants": await self._grants_json(page)})

    @route(GRANTS_PATH + "/{id}", "GET", is_page=False)
    async def get_grant(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        return json_response(200, _named(await self._grants_json(page), page.segment))

    @route(GRANTS_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def end_grant(self, page: PageRequest) -> Response:
        """Disconnect an application, with all registrations that the account page shows as one.
        Raises NotAuthenticated, WrongFormToken, NotFound."""
        await page.submission()
        account_id = page.owner().account.account_id
        connected_clients = await self._connected_clients.of_account(account_id)
        ended = False
        for connection_id in self._shown_as(page.segment, connected_clients):
            client_id = await self._connected_clients.end(account_id, connection_id)
            if client_id is not None:
                ended = True
                self._audit.note(
                    AuditEvent.CONSENT_ENDED, account_id=account_id, client_id=client_id
                )
        if not ended:
            raise NotFound(WebCodes.NO_SUCH_CLIENT)
        return self._gone(page, "disconnected")

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
    async def list_events(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated."""
        account_id = page.owner().account.account_id
        return json_response(
            200, {"events": [_event_json(each) for each in await self._events(account_id)]}
        )

    # --- client credentials -------------------------------------------------------------------

    @route(CREDENTIALS_PATH, "GET", is_page=False)
    async def list_credentials(self, page: PageRequest) -> Response:
        """By id, as clients of other servers expect. Raises NotAuthenticated."""
        account_id = page.owner().account.account_id
        listed = await self._credentials.of(account_id)
        resources = {each.credential_id: self._resource(each.credential_id) for each in listed}
        return json_response(200, {"clientCredentials": resources})

    @route(CREDENTIALS_PATH + "/{id}", "GET", is_page=False)
    async def get_credential(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        for each in await self._credentials.of(page.owner().account.account_id):
            if each.credential_id == page.segment:
                body = {"id": each.credential_id, "name": each.name, "webId": each.web_id}
                return json_response(200, body)
        raise NotFound(IdpCodes.NO_SUCH_CREDENTIALS)

    @route(CREDENTIALS_PATH, "POST", is_page=False)
    async def create_credential(self, page: PageRequest) -> Response:
        """Requires a recent sign-in, because credentials outlast the session and the password.

        Raises NotAuthenticated, WrongFormToken, BadRequest, Conflict, and AccessDenied without a
        recent sign-in.
        """
        sent = await page.submission()
        owner = page.owner()
        if not self._sessions.is_recent(owner):
            if page.wants_page:
                return see_other(again_url("credentials", page.back))
            raise AccessDenied(WebCodes.SIGN_IN_AGAIN)
        created = await self._credentials.create(
            owner.owner,
            name=sent.text("name"),
            web_id=sent.text("webId") or None,
            source=page.source,
        )
        credential = created.credential
        if page.wants_page:
            return self._renderer.account_page(
                page,
                "new_credential.html",
                credential=credential,
                secret=created.secret,
                base_url=self._base_url,
                back=page.back or SECURITY,
            )
        resource = self._resource(credential.credential_id)
        body = {"id": credential.credential_id, "secret": created.secret, "resource": resource}
        return json_response(201, body, (b"location", resource.encode("ascii")))

    @route(CREDENTIALS_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def end_credential(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, NotFound."""
        await page.submission()
        await self._credentials.delete(
            page.owner().account.account_id,
            page.segment,
            source=page.source,
        )
        return self._gone(page, "credential-removed")

    # --- parts --------------------------------------------------------------------------------

    async def _sessions_json(self, page: PageRequest) -> list[dict[str, object]]:
        owner = page.owner()
        listed = await self._sessions.of_account(owner.account)
        current = owner.session.public_id
        return [_session_json(each.value, current=current) for each in listed]

    async def _grants_json(self, page: PageRequest) -> list[dict[str, object]]:
        listed = await self._connected_clients.of_account(page.owner().account.account_id)
        return [_grant_json(each) for each in listed]

    def _gone(self, page: PageRequest, flash_message: str) -> Response:
        if page.wants_page:
            return see_other(
                page.back or SECURITY,
                self._cookies.set_notice(Notice(flash_message)),
            )
        return json_response(204, None)

    def _signed_out_here(self, page: PageRequest) -> Response:
        forget = self._cookies.clear(SESSION)
        if page.wants_page:
            return see_other(LOGIN, self._cookies.set_notice(Notice("signed-out")), forget)
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
