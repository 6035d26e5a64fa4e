"""Finds the people who are signed in to the pages without an account of the provider, and lists and
ends their sessions.

A session is identified by a secret that only the browser's cookie contains. One that began with the
token of a pod ends with the token, and after twelve hours at the latest; one that began at another
provider, which includes this server's own if it has an origin of its own, ends after eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from podstead.authn.credentials import VerifiedPodToken
from podstead.authn.relying_party.providers import ExternalSignInFailed, IdTokenVerifier
from podstead.authn.relying_party.sign_ins import CompletedSignIn
from podstead.authn.web_ids import LocalWebIds
from podstead.core.errors import NotAuthenticated, RateLimited
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.request_context import requester
from podstead.idp.audit import Audit, AuditEvent
from podstead.storage.pods import valid_tokens
from podstead.storage.record_store import RecordKind, RecordStore, secret_key
from podstead.storage.records import Record, TokenRecord
from podstead.web.codes import WebCodes
from podstead.web.pages.cookies import POD_SESSION, VISITOR_SESSION, Cookies
from podstead.web.pages.request import Person, SignedInBy
from podstead.web.request import Request
from podstead.web.response import HeaderField

if TYPE_CHECKING:  # loaded for the provider only
    from podstead.idp.sessions import OpenSession, Sessions

SESSION_S: Final = 12 * 3600
MAX_SESSIONS: Final = 100
"""How many sessions a pod has at most; the oldest end. Scripts sign in and never out."""
_SECRET_BYTES: Final = 32


class PageSession(msgspec.Struct, frozen=True):
    """A browser that is signed in by a pod token; the key is the hash of its cookie."""

    token_id: str
    web_id: str
    pod_name: str
    pod_root: str
    csrf_token: str
    created_s: int
    issued_s: int
    expires_s: int | None
    user_agent: str = ""


PAGE_SESSIONS: Final = RecordKind("page-session", PageSession)


class TypedTokens(Protocol):
    """Verifies pod tokens."""

    async def verify_typed(self, token: str) -> VerifiedPodToken:
        """What a token says that a person has typed. Raises NotAuthenticated."""

    async def is_still_valid(self, verified: VerifiedPodToken) -> bool:
        """Whether the token would still be accepted. Raises StorageError."""


@dataclass(frozen=True, slots=True)
class PeopleByPodToken:
    """Finds people who have signed in with the token of a pod."""

    records: RecordStore
    tokens: TypedTokens
    cookies: Cookies

    async def sign_in(self, token: str, *, user_agent: str) -> Sequence[HeaderField]:
        """Begin a session; the headers store it in the browser. Raises NotAuthenticated,
        StorageError, Overloaded."""
        verified = await self.tokens.verify_typed(token)
        record = await self.records.store.read_token(verified.token_id)
        pod = None if record is None else await self.records.store.read_pod(record.pod)
        if pod is None:
            raise NotAuthenticated(WebCodes.POD_OF_TOKEN_DELETED, invalid=True)
        now_s = self.records.now_s()
        secret = self.records.randomness.token_hex(_SECRET_BYTES)
        session = PageSession(
            token_id=verified.token_id,
            web_id=verified.web_id,
            pod_name=pod.name,
            pod_root=pod.root,
            csrf_token=self.records.randomness.token_hex(_SECRET_BYTES),
            created_s=now_s,
            issued_s=verified.issued_s,
            expires_s=verified.expires_s,
            user_agent=user_agent,
        )
        until_s = min(now_s + SESSION_S, verified.expires_s or now_s + SESSION_S)
        stored = PAGE_SESSIONS.put(
            secret_key(secret), session, owner=pod.root, expires_ms=until_s * 1000
        )
        await self.records.commit([stored, *await self._surplus(pod.root)])
        return self.cookies.set_page_session(POD_SESSION, secret)

    async def _surplus(self, owner: str) -> Sequence[Record]:
        """The oldest sessions of a pod beyond the limit, with one more to come."""
        listed = await self.records.of_owner(PAGE_SESSIONS, owner)
        oldest = sorted(listed, key=lambda each: each.value.created_s)
        return [
            PAGE_SESSIONS.drop(each.key)
            for each in oldest[: max(0, len(listed) - MAX_SESSIONS + 1)]
        ]

    async def person(self, request: Request) -> Person | None:
        """The person, ``None`` without a valid session. Raises StorageError."""
        secret = self.cookies.secret(request, POD_SESSION)
        if secret is None:
            return None
        stored = await self.records.read(PAGE_SESSIONS, secret_key(secret))
        if stored is None:
            return None
        session = stored.value
        verified = VerifiedPodToken(
            session.token_id, session.web_id, session.issued_s, session.expires_s
        )
        if not await self.tokens.is_still_valid(verified):
            return None
        return Person(
            identity=Identity(
                iri=session.web_id,
                method=AuthenticationMethod.SIMPLE,
                token_id=session.token_id,
                expires_at_s=session.expires_s,
                may_state_identity=True,
            ),
            name=session.pod_name,
            csrf_token=session.csrf_token,
            signed_in_by=SignedInBy.POD_TOKEN,
            pods=(ResourcePath(session.pod_root),),
        )

    async def sign_out(self, request: Request) -> Sequence[HeaderField]:
        """End the session. Raises StorageError, Overloaded."""
        secret = self.cookies.secret(request, POD_SESSION)
        if secret is None:
            return []
        await self.records.commit([PAGE_SESSIONS.drop(secret_key(secret))])
        return self.cookies.clear_page_session(POD_SESSION)


VISITOR_SESSION_S: Final = 8 * 3600
MAX_OF_NETWORK: Final = 100
"""How many sessions one network has at most."""
MAX_IN_ALL: Final = 50_000
_NETWORK_CHARACTERS: Final = 16
_MAX_SESSION_ID_CHARACTERS: Final = 100
_RETRY_AFTER_S: Final = 600


class ExternalSession(msgspec.Struct, frozen=True):
    """A browser that is signed in by another provider.

    The cookie begins with a hash of the network in which the session began. The key is that hash
    and the hash of the cookie, so that the sessions of one network are listed together.
    """

    web_id: str
    issuer: str
    csrf_token: str
    expires_s: int
    user_agent: str = ""
    session_id: str = ""
    """The session at the provider."""


VISITOR_SESSIONS: Final = RecordKind("visitor-session", ExternalSession)


@dataclass(frozen=True, slots=True)
class PeopleByExternalSession:
    """Finds people who have signed in at another provider."""

    records: RecordStore
    id_tokens: IdTokenVerifier
    local: LocalWebIds
    cookies: Cookies

    async def begin(self, signed_in: CompletedSignIn, *, user_agent: str) -> Sequence[HeaderField]:
        """Begin a session; the headers store it in the browser. Raises RateLimited if there are
        too many in all, StorageError, Overloaded."""
        network = secret_key(requester())[:_NETWORK_CHARACTERS]
        secret = network + self.records.randomness.token_hex(_SECRET_BYTES)[len(network) :]
        ending = await self._ending(network)
        expires_s = self.records.now_s() + VISITOR_SESSION_S
        session = ExternalSession(
            web_id=signed_in.web_id,
            issuer=signed_in.issuer,
            csrf_token=self.records.randomness.token_hex(_SECRET_BYTES),
            expires_s=expires_s,
            user_agent=user_agent,
            session_id=signed_in.session_id[:_MAX_SESSION_ID_CHARACTERS],
        )
        stored = VISITOR_SESSIONS.put(
            visitor_key(secret),
            session,
            owner=self._storage_of(signed_in.web_id),
            expires_ms=expires_s * 1000,
        )
        await self.records.commit([stored, *ending])
        return self.cookies.set_page_session(VISITOR_SESSION, secret)

    async def person(self, request: Request) -> Person | None:
        """The person, ``None`` without a valid session. Raises StorageError."""
        secret = self.cookies.secret(request, VISITOR_SESSION)
        if secret is None:
            return None
        stored = await self.records.read(VISITOR_SESSIONS, visitor_key(secret))
        if stored is None:
            return None
        session = stored.value
        try:
            if not await self.id_tokens.is_trusted(session.web_id, session.issuer):
                return None
        except ExternalSignInFailed:
            return None  # nobody is taken for somebody who cannot be looked up now
        pods = await self._pods_of(session.web_id)
        return Person(
            identity=Identity(
                iri=session.web_id,
                method=AuthenticationMethod.SESSION,
                expires_at_s=session.expires_s,
                issuer=session.issuer,
            ),
            name=pods[0].strip("/") if pods else session.web_id.partition("://")[2],
            csrf_token=session.csrf_token,
            signed_in_by=SignedInBy.ELSEWHERE,
            pods=pods,
        )

    async def sign_out(self, request: Request) -> Sequence[HeaderField]:
        """End the session. Raises StorageError, Overloaded."""
        secret = self.cookies.secret(request, VISITOR_SESSION)
        if secret is None:
            return []
        await self.records.commit([VISITOR_SESSIONS.drop(visitor_key(secret))])
        return self.cookies.clear_page_session(VISITOR_SESSION)

    async def _ending(self, network: str) -> Sequence[Record]:
        """The oldest sessions of a network, which a new one replaces. Raises RateLimited."""
        store, now_ms = self.records.store, self.records.now_ms()
        found = await VISITOR_SESSIONS.page(
            store, after=network, now_ms=now_ms, limit=MAX_OF_NETWORK + 1
        )
        own = [each for each in found if each.key.startswith(network)]
        own.sort(key=lambda each: each.value.expires_s)
        room = MAX_OF_NETWORK - 1
        if await VISITOR_SESSIONS.count(store, at_most=MAX_IN_ALL) >= MAX_IN_ALL:
            if not own:
                raise RateLimited(retry_after_s=_RETRY_AFTER_S)
            room = len(own) - 1
        return [VISITOR_SESSIONS.drop(each.key) for each in own[: max(0, len(own) - room)]]

    def _storage_of(self, web_id: str) -> ResourcePath | None:
        """The storage of a WebID of this server, with which its sessions end."""
        path = self.local.path_of(web_id) if self.local.holds(web_id) else None
        return None if path is None else storage_root(path)

    async def _pods_of(self, web_id: str) -> Sequence[ResourcePath]:
        storage = self._storage_of(web_id)
        if storage is None:
            return ()
        pod = await self.records.store.read_pod(storage.strip("/"))
        return (storage,) if pod is not None and pod.owner == web_id else ()


def visitor_key(secret: str) -> str:
    """The key of the session of a cookie."""
    return secret[:_NETWORK_CHARACTERS] + secret_key(secret)


@dataclass(frozen=True, slots=True)
class PodBrowser:
    """A signed-in browser. ``key`` is a hash of its cookie, and ``means`` the id of the token or
    the issuer with which it signed in."""

    key: str
    signed_in_by: SignedInBy
    means: str
    created_s: int
    user_agent: str


@dataclass(frozen=True, slots=True)
class PodSessions:
    """Lists and ends these sessions."""

    records: RecordStore
    cookies: Cookies

    async def of(self, web_id: str, pod: ResourcePath) -> Sequence[PodBrowser]:
        """The sessions of the owner of a pod, the newest first. Raises StorageError."""
        found = [
            PodBrowser(
                each.key,
                SignedInBy.POD_TOKEN,
                each.value.token_id,
                each.value.created_s,
                each.value.user_agent,
            )
            for each in await self.records.of_owner(PAGE_SESSIONS, pod)
            if each.value.web_id == web_id
        ]
        found += [
            PodBrowser(
                each.key,
                SignedInBy.ELSEWHERE,
                each.value.issuer,
                each.value.expires_s - VISITOR_SESSION_S,
                each.value.user_agent,
            )
            for each in await self.records.of_owner(VISITOR_SESSIONS, pod)
            if each.value.web_id == web_id
        ]
        return sorted(found, key=lambda each: each.created_s, reverse=True)

    async def tokens(self, pod: ResourcePath) -> Sequence[TokenRecord]:
        """The valid tokens of a pod. Raises StorageError."""
        records = self.records
        return await valid_tokens(records.store, pod.strip("/"), now_s=records.now_s())

    def current(self, request: Request) -> frozenset[str]:
        """The keys of the sessions of the browser that sent a request."""
        token, visitor = (
            self.cookies.secret(request, name) for name in (POD_SESSION, VISITOR_SESSION)
        )
        found = () if token is None else (secret_key(token),)
        return frozenset(found if visitor is None else (*found, visitor_key(visitor)))

    async def end(self, web_id: str, pod: ResourcePath, key: str) -> None:
        """Sign a browser of the owner out. Raises Overloaded, StorageError."""
        endings = await self.endings(web_id, pod, only=key)
        if endings:
            await self.records.commit(endings)

    async def end_all(self, web_id: str, pod: ResourcePath) -> None:
        """Sign all browsers of the owner out. Raises Overloaded, StorageError."""
        endings = await self.endings(web_id, pod)
        if endings:
            await self.records.commit(endings)

    async def endings_of(self, issuer: str, opened: OpenSession) -> Sequence[Record]:
        """The records that sign the browser of a session at this server's provider out of the
        pages of the pods, where those have another origin. Raises StorageError."""
        account, session_id = opened.account, opened.session.public_id
        return [
            VISITOR_SESSIONS.drop(each.key)
            for each in await self.records.of_owner(VISITOR_SESSIONS, f"/{account.pod}/")
            if (each.value.issuer, each.value.session_id) == (issuer, session_id)
        ]

    async def endings(
        self, web_id: str, pod: ResourcePath, *, only: str | None = None
    ) -> Sequence[Record]:
        """The records that sign all browsers of the owner out, or ``only`` one. Raises
        StorageError."""
        return [
            (PAGE_SESSIONS if each.signed_in_by is SignedInBy.POD_TOKEN else VISITOR_SESSIONS).drop(
                each.key
            )
            for each in await self.of(web_id, pod)
            if only in (None, each.key)
        ]


async def end_browser_session(
    opened: OpenSession,
    issuer: str,
    *,
    sessions: Sessions,
    pod_sessions: PodSessions,
    audit: Audit,
) -> None:
    """Sign a browser out here and, where the pods have another origin, there. Raises StorageError,
    Overloaded."""
    await sessions.end(opened.stored, await pod_sessions.endings_of(issuer, opened))
    audit.note(AuditEvent.SIGNED_OUT, account_id=opened.account.account_id)
