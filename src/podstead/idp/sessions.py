"""Keeps the sessions of browsers that are signed in (A-61).

A session is identified by a secret that only the browser's cookie contains. It expires twelve hours
after the sign-in or, if the person asked to stay signed in, two weeks after its last use and at
most ninety days after the sign-in. Every sign-in creates a new secret, so that nobody who has
planted a cookie in a browser shares the session. A session is valid while its account is enabled,
and only if it began after the last time that all sessions of the account were ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from podstead.idp import records as idp_records
from podstead.idp.accounts import issue_time_s
from podstead.idp.audit import Audit, AuditEvent, RequestSource
from podstead.idp.keys import ProviderKeys
from podstead.idp.security_events import event_records
from podstead.idp.sign_in_methods import method_precondition
from podstead.jose.tokens import InvalidJose, claim_text, read_token, verify_signature
from podstead.storage.record_store import RecordKind, RecordStore, Versioned, secret_key
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

    stored: Versioned[idp_records.BrowserSession]
    owner: Versioned[idp_records.Account]

    @property
    def session(self) -> idp_records.BrowserSession:
        return self.stored.value

    @property
    def account(self) -> idp_records.Account:
        return self.owner.value


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session; ``secret`` is for the browser's cookie."""

    secret: str
    session: idp_records.BrowserSession


class Sessions:
    """Begins, finds and ends sessions."""

    def __init__(self, records: RecordStore, ended_with: Sequence[RecordKind[Any]] = ()) -> None:
        """``ended_with`` are kinds of records of pods that end with all sessions."""
        self._records = records
        self._ended_with = ended_with

    async def begin(
        self,
        account: Versioned[idp_records.Account],
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

        ``amr`` is its value for tokens (:mod:`podstead.idp.sign_in`). ``instead_of``
        is the session that the browser had. If it is of the same account, the new one keeps its
        public id, by which clients recognise it. ``restricted`` marks a factor that anyone who can
        write the profile can give themselves. ``sign_in_method`` is the entry of the factor
        (:mod:`podstead.idp.sessions`), and ``common_password`` says that the password is a
        common one. Raises SignInMethodRemoved if that entry is gone, Overloaded, also if the
        account has changed meanwhile.
        """
        now_s = issue_time_s(account.value, self._records.now_s())
        account_id = account.value.account_id
        goes_on = instead_of is not None and instead_of.session.account_id == account_id
        secret = self._records.randomness.token_hex(_SECRET_BYTES)
        session = idp_records.BrowserSession(
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
        method_exists = await method_precondition(
            self._records, sign_in_method, account_id=account_id
        )
        records = [
            self._put(secret_key(secret), session, now_s),
            idp_records.LAST_SIGN_INS.put(
                account_id, idp_records.LastSignIn(now_s, factor), owner=account_id
            ),
            *await self._surplus(account),
        ]
        if instead_of is not None:
            records.append(idp_records.SESSIONS.drop(instead_of.stored.key))
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
        stored = await self._records.read(idp_records.SESSIONS, secret_key(secret))
        if stored is None:
            return None
        account = await self._records.read(idp_records.ACCOUNTS, stored.value.account_id)
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

    async def of_account(
        self, account: idp_records.Account
    ) -> Sequence[Versioned[idp_records.BrowserSession]]:
        """The valid sessions, the newest first."""
        listed = await self._records.of_owner(idp_records.SESSIONS, account.account_id)
        valid = [each for each in listed if _is_valid(each.value, account)]
        return sorted(valid, key=lambda each: each.value.created_s, reverse=True)

    async def end(
        self, stored: Versioned[idp_records.BrowserSession], joined: Sequence[Record] = ()
    ) -> None:
        """Sign a browser out; the ``joined`` records are part of the write."""
        await self._records.commit([idp_records.SESSIONS.drop(stored.key), *joined])

    async def end_all(self, account: idp_records.Account, joined: Sequence[Record] = ()) -> None:
        """Sign every browser of an account out; the ``joined`` records are part of the write."""
        listed = await self._records.of_owner(idp_records.SESSIONS, account.account_id)
        ended = [idp_records.SESSIONS.drop(each.key) for each in listed]
        for kind in self._ended_with:
            others = await self._records.of_owner(kind, f"/{account.pod}/")
            ended += [kind.drop(each.key) for each in others]
        await self._records.commit([*ended, *joined])

    # --- parts --------------------------------------------------------------------------------

    async def _surplus(self, account: Versioned[idp_records.Account]) -> Sequence[Record]:
        """The records that make room for one more session."""
        newest_first = await self.of_account(account.value)
        return [idp_records.SESSIONS.drop(each.key) for each in newest_first[MAX_SESSIONS - 1 :]]

    async def _renew(self, stored: Versioned[idp_records.BrowserSession], now_s: int) -> None:
        """Extend a session, if that is worth a write. If another request changes or ends the
        session meanwhile, nothing happens."""
        until_s = _end_s(stored.value, now_s)
        if stored.expires_ms is None or until_s * 1000 < stored.expires_ms + RENEWED_AFTER_S * 1000:
            return
        await self._records.try_commit(
            [self._put(stored.key, stored.value, now_s)], [stored.unchanged]
        )

    def _put(self, key: str, session: idp_records.BrowserSession, now_s: int) -> Record:
        return idp_records.SESSIONS.put(
            key, session, owner=session.account_id, expires_ms=_end_s(session, now_s) * 1000
        )


def _is_valid(session: idp_records.BrowserSession, account: idp_records.Account) -> bool:
    """Whether the session began after the last time that all sessions of the account were ended,
    and with a sign-in method that still exists. In an earlier version, a key that only the profile
    named could sign in without permission."""
    if session.restricted and not session.sign_in_method:
        return False
    return session.created_s >= account.valid_after_s


def _end_s(session: idp_records.BrowserSession, now_s: int) -> int:
    """When a session that is used now expires (Unix seconds)."""
    if not session.lasting:
        return session.created_s + SHORT_S
    return min(now_s + IDLE_S, session.created_s + LASTING_S)


# Reads requests to sign out: whom they mean, and where the person may return.
#
# OpenID Connect RP-Initiated Logout 1.0. An ID token of this provider identifies the person. It may
# have expired long ago, as it usually has when people sign out, but it must be from this provider.

MAX_HINT_CHARACTERS: Final = 8192


@dataclass(frozen=True, slots=True)
class IdTokenHint:
    """The session that an ID token of this provider was issued in."""

    account_id: str
    client_id: str
    session_id: str | None

    def means(self, signed_in: OpenSession) -> bool:
        """Whether it was issued in this very session."""
        session = signed_in.session
        return (self.account_id, self.session_id) == (session.account_id, session.public_id)


async def read_id_token_hint(text: str, *, issuer: str, keys: ProviderKeys) -> IdTokenHint | None:
    """Read an ID token as a hint; ``None`` if it is not from this provider."""
    try:
        token = read_token(text, max_characters=MAX_HINT_CHARACTERS)
        key = (await keys.current()).verifier(token.key_id, of_hint=True)
        if key is None:
            return None
        verify_signature(token, key)
    except InvalidJose:
        return None
    claims = token.claims
    account_id, client_id = claim_text(claims, "sub"), claim_text(claims, "azp")
    audience = claims.get("aud")
    # An access token is signed by the same keys, but names one audience that is no client.
    is_identity = isinstance(audience, list) and client_id in audience
    if claims.get("iss") != issuer or account_id is None or client_id is None or not is_identity:
        return None
    return IdTokenHint(account_id, client_id, claim_text(claims, "sid"))


def may_return_to(client: idp_records.Client | None, uri: str | None) -> bool:
    """Whether the client has registered this exact URL for after signing out."""
    return client is not None and uri is not None and uri in client.post_logout_redirect_uris


# Permits the download of a pod as an archive, for a day after a recent sign-in.
#
# The permission belongs to the session in which it was given, so a download that breaks off can be
# continued when the sign-in is no longer recent.

VALID_MS: Final = 24 * 3600 * 1000


class PodExportPermit(msgspec.Struct, frozen=True):
    """The session in which the archive may be downloaded; the key is the account id."""

    session: str


_PERMITS: Final = RecordKind("pod-export", PodExportPermit)


class PodExports:
    """Gives permissions and checks them. Every method raises StorageError."""

    def __init__(self, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    async def allow(self, owner: OpenSession, source: RequestSource) -> None:
        """Allow the export in this session; the caller has checked that the sign-in is recent."""
        account = owner.account
        event, account_id = AuditEvent.POD_EXPORTED, account.account_id
        permit = _PERMITS.put(
            account_id,
            PodExportPermit(owner.stored.key),
            owner=account_id,
            expires_ms=self._records.now_ms() + VALID_MS,
        )
        noted = await event_records(self._records, account_id, event, source)
        await self._records.commit([permit, *noted])
        self._audit.note(event, account_id=account_id, pod=account.pod)

    async def is_allowed(self, owner: OpenSession) -> bool:
        """Whether the export is allowed in this session."""
        stored = await self._records.read(_PERMITS, owner.account.account_id)
        return stored is not None and stored.value.session == owner.stored.key
