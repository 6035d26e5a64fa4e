"""What belongs to an account and can be listed and removed: sessions, applications, credentials.

Each kind is a collection below ``/idp/account``. Programs list, read and delete its entries as
JSON; the forms of the page about security post to the same addresses (A-86).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final, Generic, TypeVar

from podstead.core.codes import ErrorCode
from podstead.core.errors import NotFound
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.client_metadata import is_document_url
from podstead.idp.codes import IdpCodes
from podstead.idp.credentials import ClientCredentials, PodTokens
from podstead.idp.grants import ConnectedClient, ConnectedClients
from podstead.idp.records import BrowserSession, ClientCredential
from podstead.idp.sessions import OpenSession, Sessions
from podstead.idp.sign_in_methods import began_with
from podstead.pods.provision import TokenPolicy, issue_and_record
from podstead.storage.record_store import RecordStore, Versioned
from podstead.storage.records import Record, TokenRecord
from podstead.web.browsers import json_response
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import ACCOUNT, LOGIN, SECURITY
from podstead.web.pages.cookies import SESSION, FlashMessage
from podstead.web.pages.formats import machine_time
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in.authorization import ConsentExtension, places_of
from podstead.web.sign_in.people import PodSessions, end_browser_session

_ID_CHARACTERS: Final = 32


@dataclass(frozen=True, slots=True)
class ShownApplication:
    """An entry of the list, for one registration or several. Times are Unix seconds."""

    application_id: str
    """Its id in URLs: the connection's own id, if it has only one."""
    name: str
    """The name that it gives itself, or the host where it is."""
    places: Sequence[str]
    """Its places, except for what the name says already."""
    also_called: Sequence[str]
    """The names of other registrations at the same place."""
    connection_ids: Sequence[str]
    client_ids: Sequence[str]
    scopes: frozenset[str]
    since_s: int
    last_used_s: int | None


def shown_applications(
    connected_clients: Sequence[ConnectedClient], *, base_url: str
) -> Sequence[ShownApplication]:
    """The entries for the connected clients of an account at the server at ``base_url``, in their
    order, which is by last use."""
    groups: dict[tuple[str, ...], list[ConnectedClient]] = {}
    for client in connected_clients:
        places = tuple(sorted(places_of(client, base_url=base_url)))
        alone = is_document_url(client.client_id) or not places
        key = (client.client_id,) if alone else ("", *places)
        groups.setdefault(key, []).append(client)
    return [
        _application(key, group, places_of(group[0], base_url=base_url))
        for key, group in groups.items()
    ]


def _application(
    key: tuple[str, ...], group: Sequence[ConnectedClient], places: Sequence[str]
) -> ShownApplication:
    names = list(dict.fromkeys(each.client_name for each in group if each.client_name))
    name = names[0] if names else next(iter(places), group[0].client_id)
    used = [each.last_used_s for each in group if each.last_used_s is not None]
    several = hashlib.sha256("\n".join(key).encode()).hexdigest()[:_ID_CHARACTERS]
    return ShownApplication(
        application_id=group[0].connection_id if len(group) == 1 else several,
        name=name,
        places=[each for each in places if each != name],
        also_called=names[1:],
        connection_ids=[each.connection_id for each in group],
        client_ids=[each.client_id for each in group],
        scopes=frozenset(scope for each in group for scope in each.scopes),
        since_s=min(each.since_s for each in group),
        last_used_s=max(used, default=None),
    )


def format_day(unix_s: int) -> str:
    """A day as people write it, such as "3 May 2026" (UTC)."""
    time = datetime.fromtimestamp(unix_s, UTC)
    return f"{time.day} {time:%B %Y}"


Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Removed:
    """What the removal of an entry has done."""

    notice: str
    method: str = ""
    """The sign-in method that was removed; sessions that began with it have ended."""
    body: object = None
    """What programs are told."""


@dataclass(frozen=True, slots=True)
class RemainingCredential:
    """A credential that acts as the person without the password."""

    kind: str
    name: str
    ended_at: str | None
    """The path of the form that removes it; ``None`` if only a change of the profile does."""


@dataclass(frozen=True)
class Collection(Generic[Entry]):
    """One kind of what belongs to an account."""

    below: ClassVar[str]
    """Its address; that of each entry is below it."""
    name: ClassVar[str]
    """What the list is called in JSON."""
    shown_as: ClassVar[str]
    """What the templates call the entries."""
    missing: ClassVar[ErrorCode]
    purpose: ClassVar[str | None] = None
    """The purpose of signing in again, if a removal requires a recent sign-in."""
    credential: ClassVar[str | None] = None
    """What people call an entry, if it stays valid after a new password."""

    site: Site

    async def entries(self, owner: OpenSession) -> Sequence[Entry]:
        """Those of an account. Raises StorageError, and Conflict if they are in a profile that
        cannot be read."""
        raise NotImplementedError

    def key(self, entry: Entry) -> str:
        """The last segment of an entry's address."""
        raise NotImplementedError

    def as_json(self, entry: Entry) -> dict[str, object]:
        """An entry for programs."""
        raise NotImplementedError

    def described(self, entry: Entry, owner: OpenSession) -> dict[str, object]:
        """The same, as its owner sees it in a session."""
        del owner
        return self.as_json(entry)

    async def remove(self, page: PageRequest, key: str) -> Removed:
        """Remove an entry. Raises NotFound, and what else is in the way."""
        raise NotImplementedError

    def title(self, entry: Entry) -> str:
        """What people tell an entry from others by."""
        return self.key(entry)

    def may_remove(self, entry: Entry) -> bool:
        """Whether the entry can be removed here."""
        del entry
        return True

    async def shown(self, owner: OpenSession) -> object:
        """The entries for the page about security; ``None`` if they cannot be read now, so that
        the rest of the page still works."""
        return await self.entries(owner)

    async def remaining(self, owner: OpenSession) -> Sequence[RemainingCredential]:
        """The entries that stay valid after a new password, which ends sessions and grants."""
        shown = await self.shown(owner) if self.credential else None
        entries: Sequence[Entry] = shown or ()  # type: ignore[assignment]
        return [
            RemainingCredential(
                self.credential or "",
                self.title(each),
                f"{self.below}/{self.key(each)}" if self.may_remove(each) else None,
            )
            for each in entries
        ]

    @route("", "GET", is_page=False)
    async def list(self, page: PageRequest) -> Response:
        owner = page.owner()
        listed = [self.described(each, owner) for each in await self.entries(owner)]
        return json_response(200, {self.name: listed})

    @route("/{id}", "GET", is_page=False)
    async def get(self, page: PageRequest) -> Response:
        owner = page.owner()
        for each in await self.entries(owner):
            if self.key(each) == page.segment:
                return json_response(200, self.described(each, owner))
        raise NotFound(self.missing)

    @route("/{id}", "POST", "DELETE", is_page=False)
    async def end(self, page: PageRequest) -> Response:
        """Remove an entry. The browser goes back to the page about security, or to the sign-in page
        if its own session has ended with the entry. Raises NotAuthenticated, WrongFormToken,
        SignInAgain, NotFound, Conflict."""
        await page.submission()
        owner = page.owner() if self.purpose is None else page.recent_owner(self.purpose)
        removed = await self.remove(page, page.segment)
        notice = removed.notice
        cookies = []
        if removed.notice == _SIGNED_OUT or began_with(removed.method, owner.session):
            cookies.append(self.site.cookies.clear(SESSION))
            notice = notice if notice == _SIGNED_OUT else "sign-in-method-removed"
        if not page.wants_page:
            status = 204 if removed.body is None else 200
            return json_response(status, removed.body, *cookies)
        address = LOGIN if cookies else page.back or SECURITY
        return self.site.see_other(address, FlashMessage(notice), *cookies)


_SIGNED_OUT: Final = "signed-out"
SESSIONS_PATH: Final = f"{ACCOUNT}/sessions"


@dataclass(frozen=True)
class SessionCollection(Collection[Versioned[BrowserSession]]):
    """The browsers that are signed in to the account."""

    below = SESSIONS_PATH
    name = "sessions"
    shown_as = "stored_sessions"
    missing = WebCodes.NO_SUCH_ENTRY

    sessions: Sessions
    pod_sessions: PodSessions
    audit: Audit

    async def entries(self, owner: OpenSession) -> Sequence[Versioned[BrowserSession]]:
        return await self.sessions.of_account(owner.account)

    def key(self, entry: Versioned[BrowserSession]) -> str:
        return entry.value.public_id

    def as_json(self, entry: Versioned[BrowserSession]) -> dict[str, object]:
        session = entry.value
        return {
            "id": session.public_id,
            "since": machine_time(session.created_s),
            "factor": session.factor,
            "lasting": session.lasting,
            "userAgent": session.user_agent,
        }

    def described(self, entry: Versioned[BrowserSession], owner: OpenSession) -> dict[str, object]:
        is_current = entry.value.public_id == owner.session.public_id
        return {**self.as_json(entry), "current": is_current}

    async def remove(self, page: PageRequest, key: str) -> Removed:
        owner = page.owner()
        for stored in await self.sessions.of_account(owner.account):
            if stored.value.public_id == key:
                await end_browser_session(
                    OpenSession(stored, owner.owner),
                    self.site.base_url,
                    sessions=self.sessions,
                    pod_sessions=self.pod_sessions,
                    audit=self.audit,
                )
                return Removed(_SIGNED_OUT if stored.key == owner.stored.key else "session")
        raise NotFound(WebCodes.NO_SUCH_SESSION)


@dataclass(frozen=True)
class GrantCollection(Collection[ConnectedClient]):
    """The applications that the person has allowed to act for them."""

    below = f"{ACCOUNT}/grants"
    name = "grants"
    shown_as = "applications"
    missing = WebCodes.NO_SUCH_ENTRY

    connected_clients: ConnectedClients
    audit: Audit

    async def entries(self, owner: OpenSession) -> Sequence[ConnectedClient]:
        return await self.connected_clients.of_account(owner.account.account_id)

    def key(self, entry: ConnectedClient) -> str:
        return entry.connection_id

    def as_json(self, entry: ConnectedClient) -> dict[str, object]:
        used_s = entry.last_used_s
        return {
            "id": entry.connection_id,
            "clientId": entry.client_id,
            "clientName": entry.client_name,
            "hosts": list(entry.hosts),
            "scopes": list(entry.scopes),
            "since": machine_time(entry.since_s),
            "lastUsed": None if used_s is None else machine_time(used_s),
        }

    async def shown(self, owner: OpenSession) -> object:
        return shown_applications(await self.entries(owner), base_url=self.site.pods_url)

    async def remove(self, page: PageRequest, key: str) -> Removed:
        """Disconnect an application, with all registrations that the page shows as one."""
        owner = page.owner()
        account_id = owner.account.account_id
        shown = shown_applications(await self.entries(owner), base_url=self.site.pods_url)
        ids = next((each.connection_ids for each in shown if each.application_id == key), (key,))
        ended = [await self.connected_clients.end(account_id, each) for each in ids]
        for client_id in ended:
            if client_id is not None:
                self.audit.note(
                    AuditEvent.CONSENT_ENDED, account_id=account_id, client_id=client_id
                )
        if not any(ended):
            raise NotFound(WebCodes.NO_SUCH_CLIENT)
        return Removed("disconnected")


@dataclass(frozen=True)
class CredentialCollection(Collection[ClientCredential]):
    """Client credentials for scripts."""

    below = f"{ACCOUNT}/client-credentials"
    name = "clientCredentials"
    shown_as = "credentials"
    missing = IdpCodes.NO_SUCH_CREDENTIALS
    credential = N_("Client credentials")

    credentials: ClientCredentials
    consent: ConsentExtension | None = None

    async def entries(self, owner: OpenSession) -> Sequence[ClientCredential]:
        return await self.credentials.of(owner.account.account_id)

    def key(self, entry: ClientCredential) -> str:
        return entry.credential_id

    def title(self, entry: ClientCredential) -> str:
        return entry.name or entry.credential_id

    def as_json(self, entry: ClientCredential) -> dict[str, object]:
        return {"id": entry.credential_id, "name": entry.name, "webId": entry.web_id}

    @route("", "GET", is_page=False)
    async def list(self, page: PageRequest) -> Response:
        """By id, as clients of other servers expect. Raises NotAuthenticated."""
        listed = await self.entries(page.owner())
        resources = {each.credential_id: self._resource(each) for each in listed}
        return json_response(200, {self.name: resources})

    @route("", "POST", is_page=False)
    async def create(self, page: PageRequest) -> Response:
        """Requires a recent sign-in, because credentials outlast the session and the password.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, BadRequest, Conflict.
        """
        sent = await page.submission()
        owner = page.recent_owner("credentials")

        async def joined(credential: ClientCredential) -> Sequence[Record]:
            if self.consent is None:
                return ()
            return await self.consent.credential_records(owner.account, credential, sent)

        created = await self.credentials.create(
            owner.owner,
            name=sent.text("name"),
            web_id=sent.text("webId") or None,
            source=page.source,
            joined=joined,
        )
        if page.wants_page:
            return self.site.account_page(
                page,
                "account/new_credential.html",
                credential=created.credential,
                secret=created.secret,
                base_url=self.site.base_url,
                back=page.back or SECURITY,
            )
        resource = self._resource(created.credential)
        body = {
            "id": created.credential.credential_id,
            "secret": created.secret,
            "resource": resource,
        }
        return json_response(201, body, (b"location", resource.encode("ascii")))

    def _resource(self, credential: ClientCredential) -> str:
        return f"{self.site.base_url}{self.below}/{credential.credential_id}"

    async def remove(self, page: PageRequest, key: str) -> Removed:
        owner = page.owner()
        await self.credentials.delete(owner.account.account_id, key, source=page.source)
        return Removed("credential-removed")


@dataclass(frozen=True)
class PodTokenCollection(Collection[TokenRecord]):
    """The simple tokens of the person's pod."""

    below = f"{ACCOUNT}/tokens"
    name = "tokens"
    shown_as = "pod_tokens"
    missing = IdpCodes.NO_SUCH_TOKEN
    credential = N_("Token of your pod")

    tokens: PodTokens
    records: RecordStore
    policy: TokenPolicy | None
    """How they are issued; ``None`` if the server accepts none."""
    consent: ConsentExtension | None = None

    @route("", "POST", is_page=False)
    async def create(self, page: PageRequest) -> Response:
        """Requires a recent sign-in, as for client credentials.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, BadRequest, Conflict, and NotFound if
        the server accepts no tokens.
        """
        sent = await page.submission()
        owner = page.recent_owner("credentials")
        pod = await self.records.store.read_pod(owner.account.pod)
        if self.policy is None or pod is None:
            raise NotFound(WebCodes.NO_SUCH_ENTRY)

        async def joined(token: TokenRecord) -> Sequence[Record]:
            noted = await self.tokens.creation_records(owner.account, token, page.source)
            if self.consent is None:
                return noted
            return [*noted, *await self.consent.credential_records(owner.account, token, sent)]

        issued = await issue_and_record(self.policy, pod=pod, records=self.records, joined=joined)
        if page.wants_page:
            return self.site.account_page(
                page, "account/new_token.html", token=issued.token, back=page.back or SECURITY
            )
        return json_response(201, {**self.as_json(issued.record), "token": issued.token})

    async def entries(self, owner: OpenSession) -> Sequence[TokenRecord]:
        return await self.tokens.of(owner.account)

    def key(self, entry: TokenRecord) -> str:
        return entry.token_id

    def as_json(self, entry: TokenRecord) -> dict[str, object]:
        expires_s = entry.expires_s
        return {
            "id": entry.token_id,
            "webId": entry.web_id,
            "issued": machine_time(entry.issued_s),
            "expires": None if expires_s is None else machine_time(expires_s),
        }

    async def remove(self, page: PageRequest, key: str) -> Removed:
        owner = page.owner()
        await self.tokens.revoke(owner.account, key, page.source)
        return Removed("token-revoked")
