"""Keeps the sessions of browsers that are signed in (A-61).

A session is identified by a secret that only the browser's cookie contains. It expires twelve hours
after the sign-in or, if the person asked to stay signed in, two weeks after its last use and at
most ninety days after the sign-in. Every sign-in creates a new secret, so that nobody who has
planted a cookie in a browser shares the session. A session is valid while its account is enabled,
and only if it began after the last time that all sessions of the account were ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.idp.accounts import issue_time_s
from podstead.idp.records import (
    ACCOUNTS,
    LAST_SIGN_INS,
    SESSIONS,
    Account,
    BrowserSession,
    LastSignIn,
)
from podstead.idp.sign_in_methods import precondition_on
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.storage.records import Record

SHORT_S: Final = 12 * 3600
IDLE_S: Final = 14 * 24 * 3600
LASTING_S: Final = 90 * 24 * 3600
RENEWED_AFTER_S: Final = 24 * 3600
"""How much of the idle time must pass before the use of a session is worth a write."""
RECENT_S: Final = 10 * 60
"""How long ago a person may have signed in to change how they sign in, or to delete the account
(A-86)."""

MAX_SESSIONS: Final = 100
"""How many sessions an account has at most; the oldest end. Scripts sign in and never out."""

_SECRET_BYTES: Final = 32
_PUBLIC_ID_BYTES: Final = 16
_MAX_USER_AGENT_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A valid session, with its account."""

    stored: Versioned[BrowserSession]
    owner: Versioned[Account]

    @property
    def session(self) -> BrowserSession:
        return self.stored.value

    @property
    def account(self) -> Account:
        return self.owner.value


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session; ``secret`` is for the browser's cookie."""

    secret: str
    session: BrowserSession


class Sessions:
    """Begins, finds and ends sessions."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def begin(
        self,
        account: Versioned[Account],
        *,
        factor: str,
        lasting: bool,
        user_agent: str,
        amr: tuple[str, ...] = (),
        instead_of: OpenSession | None = None,
        restricted: bool = False,
        sign_in_method: str = "",
        common_password: bool = False,
    ) -> NewSession:
        """Sign a browser in with a factor that was just verified for this version of the account.

        ``amr`` is its value for tokens (:mod:`podstead.idp.authentication_methods`). ``instead_of``
        is the session that the browser had. If it is of the same account, the new one keeps its
        public id, by which clients recognise it. ``restricted`` marks a factor that anyone who can
        write the profile can give themselves. ``sign_in_method`` is the entry of the factor
        (:mod:`podstead.idp.sign_in_methods`), and ``common_password`` says that the password is a
        common one. Raises SignInMethodRemoved if that entry is gone, Overloaded, also if the
        account has changed meanwhile.
        """
        now_s = issue_time_s(account.value, self._records.now_s())
        account_id = account.value.account_id
        goes_on = instead_of is not None and instead_of.session.account_id == account_id
        secret = self._records.randomness.token_hex(_SECRET_BYTES)
        session = BrowserSession(
            account_id=account_id,
            authenticated_s=now_s,
            created_s=now_s,
            factor=factor,
            csrf_token=self._records.randomness.token_hex(_SECRET_BYTES),
            lasting=lasting,
            user_agent=user_agent[:_MAX_USER_AGENT_CHARACTERS],
            public_id=(
                instead_of.session.public_id
                if goes_on and instead_of is not None
                else self._records.randomness.token_hex(_PUBLIC_ID_BYTES)
            ),
            amr=amr,
            restricted=restricted,
            sign_in_method=sign_in_method,
            common_password=common_password,
        )
        method_exists = await precondition_on(self._records, sign_in_method, account_id=account_id)
        records = [
            self._put(secret_key(secret), session, now_s),
            LAST_SIGN_INS.put(account_id, LastSignIn(now_s, factor), owner=account_id),
            *await self._surplus(account),
        ]
        if instead_of is not None:
            records.append(SESSIONS.drop(instead_of.stored.key))
        await self._records.commit(
            records,
            [account.unchanged, *method_exists],
            busy="The account was changed during sign-in; try again",
        )
        return NewSession(secret, session)

    async def read(self, secret: str | None) -> OpenSession | None:
        """The session of a cookie, ``None`` if it is not valid; using it extends it."""
        if secret is None:
            return None
        now_ms = self._records.now_ms()
        stored = await self._records.read(SESSIONS, secret_key(secret))
        if stored is None:
            return None
        account = await self._records.read(ACCOUNTS, stored.value.account_id)
        if account is None or account.value.disabled:
            return None
        if not _is_valid(stored.value, account.value):
            return None
        await self._renew(stored, now_ms // 1000)
        return OpenSession(stored, account)

    def is_recent(self, signed_in: OpenSession) -> bool:
        """Whether the person has signed in recently (A-86), with a factor that is sufficient for
        changing the account (A-130)."""
        if signed_in.session.restricted:
            return False
        now_s = self._records.now_s()
        return now_s - signed_in.session.authenticated_s <= RECENT_S

    async def of_account(self, account: Account) -> Sequence[Versioned[BrowserSession]]:
        """The valid sessions, the newest first."""
        listed = await self._records.of_owner(SESSIONS, account.account_id)
        valid = [each for each in listed if _is_valid(each.value, account)]
        return sorted(valid, key=lambda each: each.value.created_s, reverse=True)

    async def end(self, stored: Versioned[BrowserSession]) -> None:
        """Sign a browser out."""
        await self._records.commit([SESSIONS.drop(stored.key)])

    async def end_all(self, account: Account, joined: Sequence[Record] = ()) -> None:
        """Sign every browser of an account out; the ``joined`` records are part of the write."""
        listed = await self._records.of_owner(SESSIONS, account.account_id)
        await self._records.commit([*(SESSIONS.drop(each.key) for each in listed), *joined])

    # --- parts --------------------------------------------------------------------------------

    async def _surplus(self, account: Versioned[Account]) -> Sequence[Record]:
        """The records that make room for one more session."""
        newest_first = await self.of_account(account.value)
        return [SESSIONS.drop(each.key) for each in newest_first[MAX_SESSIONS - 1 :]]

    async def _renew(self, stored: Versioned[BrowserSession], now_s: int) -> None:
        """Extend a session, if that is worth a write. If another request changes or ends the
        session meanwhile, nothing happens."""
        until_s = _end_s(stored.value, now_s)
        if stored.expires_ms is None or until_s * 1000 < stored.expires_ms + RENEWED_AFTER_S * 1000:
            return
        await self._records.try_commit(
            [self._put(stored.key, stored.value, now_s)], [stored.unchanged]
        )

    def _put(self, key: str, session: BrowserSession, now_s: int) -> Record:
        return SESSIONS.put(
            key, session, owner=session.account_id, expires_ms=_end_s(session, now_s) * 1000
        )


def _is_valid(session: BrowserSession, account: Account) -> bool:
    """Whether the session began after the last time that all sessions of the account were ended,
    and with a sign-in method that still exists. In an earlier version, a key that only the profile
    named could sign in without permission."""
    if session.restricted and not session.sign_in_method:
        return False
    return session.created_s >= account.valid_after_s


def _end_s(session: BrowserSession, now_s: int) -> int:
    """When a session that is used now expires (Unix seconds)."""
    if not session.lasting:
        return session.created_s + SHORT_S
    return min(now_s + IDLE_S, session.created_s + LASTING_S)
