"""Who is signed in to the pages with an identity of another server? Sessions of visitors.

A session acts as the WebID that the person has proven at a provider, for eight hours at most, and
only while the document of the WebID names that provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from podstead.authn.elsewhere.id_tokens import IdTokens
from podstead.authn.elsewhere.problems import VisitFailed
from podstead.authn.elsewhere.visits import Finished
from podstead.authn.identity_status import LocalWebIds
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.storage.record_store import RecordStore
from podstead.storage.registry import RecordKind, secret_key
from podstead.web.cookies import CookieJar
from podstead.web.pod_pages.people import Person, SignedInBy
from podstead.web.request import Request
from podstead.web.response import HeaderField

SESSION_S: Final = 8 * 3600
SESSION_COOKIE: Final = "podstead-visitor"
_SECRET_BYTES: Final = 32


class VisitorSession(msgspec.Struct, frozen=True):
    """A browser that is signed in by another provider; the key is the hash of its cookie."""

    web_id: str
    issuer: str
    csrf_token: str
    expires_s: int


VISITOR_SESSIONS: Final = RecordKind("visitor-session", VisitorSession)


class PeopleFromElsewhere:
    """Finds people who have signed in at another provider."""

    def __init__(
        self,
        *,
        records: RecordStore,
        id_tokens: IdTokens,
        local: LocalWebIds,
        cookies: CookieJar,
    ) -> None:
        self._records = records
        self._id_tokens = id_tokens
        self._local = local
        self._cookies = cookies

    async def begin(self, signed_in: Finished) -> Sequence[HeaderField]:
        """Begin a session; the headers store it in the browser. Raises StorageError, Overloaded."""
        secret = self._records.randomness.token_hex(_SECRET_BYTES)
        expires_s = self._records.now_s() + SESSION_S
        session = VisitorSession(
            web_id=signed_in.web_id,
            issuer=signed_in.issuer,
            csrf_token=self._records.randomness.token_hex(_SECRET_BYTES),
            expires_s=expires_s,
        )
        kept = VISITOR_SESSIONS.put(
            secret_key(secret),
            session,
            owner=self._storage_of(signed_in.web_id),
            expires_ms=expires_s * 1000,
        )
        await self._records.commit([kept])
        return [self._cookies.set(SESSION_COOKIE, secret, None)]

    async def person(self, request: Request) -> Person | None:
        """The person, ``None`` without a valid session. Raises StorageError."""
        secret = self._cookies.secret(request, SESSION_COOKIE)
        if secret is None:
            return None
        kept = await self._records.read(VISITOR_SESSIONS, secret_key(secret))
        if kept is None:
            return None
        session = kept.value
        try:
            if not await self._id_tokens.is_trusted(session.web_id, session.issuer):
                return None
        except VisitFailed:
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
        secret = self._cookies.secret(request, SESSION_COOKIE)
        if secret is None:
            return []
        await self._records.commit([VISITOR_SESSIONS.drop(secret_key(secret))])
        return [self._cookies.clear(SESSION_COOKIE)]

    def _storage_of(self, web_id: str) -> ResourcePath | None:
        """The storage of a WebID of this server, with which its sessions end."""
        path = self._local.path_of(web_id) if self._local.holds(web_id) else None
        return None if path is None else storage_root(path)

    async def _pods_of(self, web_id: str) -> Sequence[ResourcePath]:
        storage = self._storage_of(web_id)
        if storage is None:
            return ()
        pod = await self._records.store.read_pod(storage.strip("/"))
        return (storage,) if pod is not None and pod.owner == web_id else ()
