"""Which browsers act for the owner of a pod without a session of an account?

They have signed in with the token of the pod, or at a provider elsewhere, which includes this
server's own if it has an origin of its own. Owners see these sessions beside those of the account,
and end them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.core.identifiers import ResourcePath
from podstead.storage.pods import valid_tokens
from podstead.storage.record_store import RecordStore, secret_key
from podstead.storage.records import Record, TokenRecord
from podstead.web.pages.cookies import POD_SESSION, VISITOR_SESSION, Cookies
from podstead.web.pages.request import SignedInBy
from podstead.web.pod_pages.page_sessions import PAGE_SESSIONS
from podstead.web.pod_pages.sign_in.external_sessions import SESSION_S as VISITOR_SESSION_S
from podstead.web.pod_pages.sign_in.external_sessions import VISITOR_SESSIONS, visitor_key
from podstead.web.request import Request


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
