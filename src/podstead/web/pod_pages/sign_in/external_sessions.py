"""Who is signed in to the pages with an identity of another server? Sessions of visitors.

A session acts as the WebID that the person has proven at a provider, for eight hours at most, and
only while the document of the WebID names that provider. Anybody can have any number of WebIDs, so
the sessions of one network are limited in number: a new one ends the oldest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.authn.relying_party.providers import ExternalSignInFailed, IdTokenVerifier
from podstead.authn.relying_party.sign_ins import CompletedSignIn
from podstead.authn.web_ids import LocalWebIds
from podstead.core.errors import RateLimited
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.request_context import requester
from podstead.storage.record_store import RecordKind, RecordStore, secret_key
from podstead.storage.records import Record
from podstead.web.pages.cookies import VISITOR_SESSION, Cookies
from podstead.web.pages.request import Person, SignedInBy
from podstead.web.request import Request
from podstead.web.response import HeaderField

SESSION_S: Final = 8 * 3600
MAX_OF_NETWORK: Final = 100
"""How many sessions one network has at most."""
MAX_IN_ALL: Final = 50_000
_NETWORK_CHARACTERS: Final = 16
_RETRY_AFTER_S: Final = 600
_SECRET_BYTES: Final = 32


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
        expires_s = self.records.now_s() + SESSION_S
        session = ExternalSession(
            web_id=signed_in.web_id,
            issuer=signed_in.issuer,
            csrf_token=self.records.randomness.token_hex(_SECRET_BYTES),
            expires_s=expires_s,
            user_agent=user_agent,
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
