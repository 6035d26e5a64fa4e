"""Who is signed in to the pages without an account of the provider? Sessions of the pages.

A session is identified by a secret that only the browser's cookie contains. It acts with the
credential that began it and ends with it: a pod token that is revoked or expires, or whose pod is
deleted, ends its sessions. It expires twelve hours after the sign-in at the latest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from podstead.authn.credentials import VerifiedPodToken
from podstead.core.errors import NotAuthenticated
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.storage.record_store import RecordKind, RecordStore, secret_key
from podstead.storage.records import Record
from podstead.web.codes import WebCodes
from podstead.web.pages.cookies import POD_SESSION, Cookies
from podstead.web.pages.request import Person, SignedInBy
from podstead.web.request import Request
from podstead.web.response import HeaderField

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
