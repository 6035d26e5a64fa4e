"""Signs in with a password (A-93, A-181, A-182).

The response does not reveal whether there is such an account: an unknown account, a wrong password
and an account without a password take the same steps and get the same response.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import msgspec

from podstead.core.clock import Clock, Randomness
from podstead.core.codes import ErrorCode
from podstead.core.errors import NotAuthenticated, RateLimited
from podstead.idp import records as idp_records
from podstead.idp.accounts import Accounts, issue_time_s
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.codes import IdpCodes
from podstead.idp.passwords import PasswordCheck, PasswordHasher, normalized_password
from podstead.storage import record_store
from podstead.storage.records import Record

Compared = TypeVar("Compared")

# Limits failed attempts at passwords, with counters shared by all workers.
#
# An attempt is counted as a failure before its password is compared, and no longer once that turned
# out to be correct. Many guesses sent at once are therefore compared no more often than guesses
# sent one after another, and scripts may sign in as often as they like. So that correct passwords
# sent at once do not exceed a limit, a worker compares those with one name one after another.
#
# An account is never locked permanently, since anybody could cause that. After several consecutive
# failures with one name, the next attempt with that name has to wait, for at most a minute; many
# failures within an hour block the name for a quarter of an hour. Names are counted as they were
# typed, whether or not an account has them, so that nobody can find out that an e-mail address and
# a pod name belong to one account. A browser that has signed in to the account before is delayed by
# its own failures only (:mod:`podstead.idp.sign_in`).

MAX_DELAY_S: Final = 60
HOUR_S: Final = 3600
PAUSE_S: Final = 900
MAX_WAITING: Final = 32
"""How many attempts with one name a worker has under way at most."""
_WRITE_ATTEMPTS: Final = 100
"""How often a failure is written before the other workers that write to it are too many."""
_MINUTE_S: Final = 60


@dataclass(frozen=True, slots=True)
class FailureLimits:
    """How many sign-ins with a password may fail; 0 means no limit (A-181)."""

    per_minute_of_account: int = 10
    """From one address with one name."""
    per_minute: int = 60
    """From one address."""
    in_a_row: int = 5
    """With one name, or from one known browser, before the next attempt has to wait."""
    per_hour: int = 100
    """With one name, or from one known browser, before further attempts are blocked for a while."""


class Failures(msgspec.Struct, frozen=True):
    """The recent failures with one name, or from one known browser. Times are Unix seconds."""

    in_a_row: int = 0
    last_s: int = 0
    hour_began_s: int = 0
    in_hour: int = 0
    paused_until_s: int = 0


FAILURES: Final = record_store.RecordKind("failures", Failures)
NONE_YET: Final = Failures()


def seconds_to_wait(failures: Failures, limits: FailureLimits, *, now_s: int) -> int:
    """How many seconds the next attempt has to wait; 0 if it need not."""
    until_s = failures.paused_until_s
    if limits.in_a_row and failures.in_a_row >= limits.in_a_row:
        doublings = min(failures.in_a_row - limits.in_a_row, MAX_DELAY_S.bit_length())
        until_s = max(until_s, failures.last_s + min(2**doublings, MAX_DELAY_S))
    # If the clock was set back, the wait must not exceed the longest one.
    return min(max(until_s - now_s, 0), PAUSE_S)


def after_failure(failures: Failures, limits: FailureLimits, *, now_s: int) -> Failures:
    """The failures after one more."""
    in_this_hour = 0 <= now_s - failures.hour_began_s < HOUR_S
    in_hour = failures.in_hour + 1 if in_this_hour else 1
    pauses = 0 < limits.per_hour <= in_hour
    return Failures(
        in_a_row=failures.in_a_row + 1,
        last_s=now_s,
        hour_began_s=failures.hour_began_s if in_this_hour else now_s,
        in_hour=0 if pauses else in_hour,
        paused_until_s=now_s + PAUSE_S if pauses else failures.paused_until_s,
    )


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to sign in: which account, and from where.

    ``subject`` is what failures are counted for: the name as typed, whether or not an account has
    it (A-182), or a browser that has signed in to the account before. ``address`` is the address of
    the peer (for IPv6, of its network). It is ``None`` for such a browser, which is not responsible
    for others at its address.
    """

    subject: str
    address: str | None
    account_id: str | None


def attempt_at(
    login: str,
    account: record_store.Versioned[idp_records.Account] | None,
    *,
    address: str,
    device: str | None = None,
) -> Attempt:
    """The attempt with a login as typed, and the account that has it, if any. ``device`` identifies
    a browser that has signed in to that account before."""
    account_id = None if account is None else account.value.account_id
    if device is not None and account_id is not None:
        return Attempt(record_store.secret_key(f"{account_id} {device}"), None, account_id)
    return Attempt(record_store.secret_key(idp_records.name_key(login)), address, account_id)


class Turns(Protocol):
    """Lets what is done under one key be done one after another."""

    def count(self, key: str) -> int:
        """How many have a turn or wait for one."""

    def take(self, key: str) -> AbstractAsyncContextManager[None]:
        """Wait for a turn, which lasts until the context is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Counts failures, and refuses attempts that must wait."""

    records: record_store.RecordStore
    limits: FailureLimits
    audit: Audit
    turns: Turns

    async def counted(
        self, attempt: Attempt, compare: Callable[[], Awaitable[Compared]]
    ) -> Compared:
        """The result of ``compare``. The attempt counts as a failure while it runs, and for good if
        it raises; otherwise, the consecutive failures end. Raises RateLimited, before anything is
        compared, and what ``compare`` raises."""
        if self.turns.count(attempt.subject) >= MAX_WAITING:
            raise RateLimited(retry_after_s=1)
        async with self.turns.take(attempt.subject):
            taken: list[tuple[str, int]] = []
            try:
                for bucket, capacity in self._buckets(attempt):
                    wait_s = await self.records.take(bucket, capacity=capacity, period_s=_MINUTE_S)
                    if wait_s is not None:
                        raise RateLimited(retry_after_s=wait_s)
                    taken.append((bucket, capacity))
                before, noted = await self._note(attempt)
            except RateLimited:
                await self._give_back(taken)
                raise
            try:
                result = await compare()
            except Exception:
                if noted.paused_until_s > before.paused_until_s:
                    self.audit.note(AuditEvent.SIGN_IN_PAUSED, account_id=attempt.account_id)
                raise
            await self._give_back(taken)
            await self._forgive(attempt, before, noted)
            return result

    async def _give_back(self, taken: Sequence[tuple[str, int]]) -> None:
        for bucket, capacity in taken:
            await self.records.store.give_back(bucket, per_s=capacity / _MINUTE_S)

    async def _note(self, attempt: Attempt) -> tuple[Failures, Failures]:
        """Record a failure: what there was before, and what there is with it."""
        if not self.limits.in_a_row and not self.limits.per_hour:
            return NONE_YET, NONE_YET

        async def compute() -> record_store.Changes[tuple[Failures, Failures]]:
            now_ms = self.records.now_ms()
            stored = await self.records.read(FAILURES, attempt.subject)
            before = NONE_YET if stored is None else stored.value
            wait_s = seconds_to_wait(before, self.limits, now_s=now_ms // 1000)
            if wait_s:
                raise RateLimited(retry_after_s=wait_s)
            noted = after_failure(before, self.limits, now_s=now_ms // 1000)
            record = FAILURES.put(
                attempt.subject,
                noted,
                owner=attempt.account_id,
                expires_ms=now_ms + HOUR_S * 1000,
            )
            unchanged = FAILURES.absent(attempt.subject) if stored is None else stored.unchanged
            return record_store.Changes((before, noted), [record], [unchanged])

        try:
            return await self.records.transact(compute, attempts=_WRITE_ATTEMPTS)
        except record_store.Contention as contention:
            # Too many fail at once for this one to be recorded: treat it as not made.
            raise RateLimited(retry_after_s=1) from contention

    async def _forgive(self, attempt: Attempt, before: Failures, noted: Failures) -> None:
        """Take back the failure that was noted, and reset the count of consecutive failures."""

        async def compute() -> record_store.Changes[None]:
            stored = await self.records.read(FAILURES, attempt.subject)
            if stored is None:
                return record_store.Changes(None)
            left = before
            if stored.value != noted:  # others have failed meanwhile
                in_hour = max(stored.value.in_hour - 1, 0)
                left = msgspec.structs.replace(stored.value, in_hour=in_hour)
            left = msgspec.structs.replace(left, in_a_row=0)
            record: Record = FAILURES.replace(stored, left)
            if left == NONE_YET:
                record = FAILURES.drop(stored.key)
            return record_store.Changes(None, [record], [stored.unchanged])

        with suppress(
            record_store.Contention
        ):  # it is then a failure too many, which the next success ends
            await self.records.transact(compute, attempts=_WRITE_ATTEMPTS)

    def _buckets(self, attempt: Attempt) -> list[tuple[str, int]]:
        if attempt.address is None:
            return []
        limits = self.limits
        buckets = [
            (f"sign-in:{attempt.address}:{attempt.subject}", limits.per_minute_of_account),
            (f"sign-in:{attempt.address}", limits.per_minute),
        ]
        return [(bucket, capacity) for bucket, capacity in buckets if capacity]


# Recognizes browsers that have signed in to an account before, by signed marks in a cookie.
#
# A browser with a mark for an account is delayed by its own failures only, so that strangers who
# guess passwords cannot lock out the owner (OWASP, "Slow Down Online Guessing Attacks with Device
# Cookies"). A mark proves nothing else and signs nobody in. It does not name the account: whether
# it belongs to an account can be checked only for a given account.

MARK_S: Final = 180 * 24 * 3600
"""How long a browser is known after its last sign-in."""
MAX_MARKS: Final = 4
"""For how many accounts one browser is known; the oldest mark is dropped first."""
BETWEEN: Final = "~"
_DEVICE_BYTES: Final = 16
_DEVICE_CHARACTERS: Final = 2 * _DEVICE_BYTES
_PURPOSE: Final = b"podstead: browsers that signed in before"


@dataclass(frozen=True, slots=True)
class _Mark:
    device: str
    made_s: int
    signature: str
    text: str


class KnownBrowsers:
    """Creates and recognizes marks."""

    def __init__(self, keys: Sequence[bytes], *, clock: Clock, randomness: Randomness) -> None:
        """The first of the ``keys`` signs, and all of them verify. Without keys no browser is
        known."""
        self._keys = [hmac.digest(key, _PURPOSE, "sha256") for key in keys]
        self._clock = clock
        self._randomness = randomness

    def device(self, marks: str, account: idp_records.Account) -> str | None:
        """The device id of the browser that sent the marks, if it is known for the account;
        ``None`` if it has not signed in to it, or not since the password was changed."""
        mark = self._message_id(marks, account)
        now_s = self._clock.now_ms() // 1000
        if mark is None or mark.made_s < account.valid_after_s or mark.made_s + MARK_S <= now_s:
            return None
        return mark.device

    def signed_in(self, marks: str, account: idp_records.Account) -> str | None:
        """The marks for the browser to keep after a sign-in; ``None`` without keys."""
        if not self._keys:
            return None
        before = self._message_id(marks, account)
        others = [each.text for each in _read(marks) if before is None or each != before]
        device = self._randomness.token_hex(_DEVICE_BYTES)
        made_s = issue_time_s(account, self._clock.now_ms() // 1000)
        new = f"{device}.{made_s}.{_sign(self._keys[0], account, device, made_s)}"
        return BETWEEN.join([new, *others][:MAX_MARKS])

    def _message_id(self, marks: str, account: idp_records.Account) -> _Mark | None:
        for mark in _read(marks):
            for key in self._keys:
                expected = _sign(key, account, mark.device, mark.made_s)
                if hmac.compare_digest(mark.signature.encode(), expected.encode()):
                    return mark
        return None


def _read(marks: str) -> Iterator[_Mark]:
    for text in marks.split(BETWEEN)[:MAX_MARKS]:
        device, _, rest = text.partition(".")
        made, _, signature = rest.partition(".")
        if len(device) == _DEVICE_CHARACTERS and made.isascii() and made.isdigit():
            yield _Mark(device, int(made[:12]), signature, text)


def _sign(key: bytes, account: idp_records.Account, device: str, made_s: int) -> str:
    content = f"{account.account_id}.{device}.{made_s}".encode()
    return hmac.new(key, content, hashlib.sha256).hexdigest()


class SignInFailed(NotAuthenticated):
    """The name and the password do not match."""

    code: ErrorCode | None = IdpCodes.SIGN_IN_FAILED


class AccountDisabled(SignInFailed):
    """The account is disabled; only somebody who knows its password gets this error."""

    code = IdpCodes.ACCOUNT_DISABLED


@dataclass(frozen=True, slots=True)
class SignedIn:
    """An account whose owner has been verified.

    ``at_s`` is the Unix time to record in sessions and tokens. Every resulting write has
    ``stored.unchanged`` as a precondition, so that a change of the password in the meantime
    prevents it.
    """

    stored: record_store.Versioned[idp_records.Account]
    at_s: int

    @property
    def account(self) -> idp_records.Account:
        return self.stored.value


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordSignIn:
    """Compares passwords, within the limits."""

    accounts: Accounts
    passwords: PasswordHasher
    attempts: Attempts
    known_browsers: KnownBrowsers
    audit: Audit
    clock: Clock

    async def verify(
        self,
        login: str,
        password: str,
        *,
        address: str,
        marks: str = "",
        session: idp_records.BrowserSession | None = None,
        noted_as: AuditEvent = AuditEvent.SIGNED_IN,
    ) -> SignedIn:
        """The account of ``login``, an e-mail address or a pod name, if the password is correct.

        ``address`` is the address of the peer (for IPv6, of its network). A browser that has signed
        in to the account before is known by its ``marks`` or by its ``session``. ``noted_as`` is
        the event to log for a correct password. Raises SignInFailed, RateLimited.
        """
        found = None
        if len(login) <= idp_records.MAX_EMAIL_CHARACTERS:
            found = await self.accounts.find(login)
        device = self._device(found, marks, session)
        attempt = attempt_at(login, found, address=address, device=device)
        account, typed, verdict = await self.attempts.counted(
            attempt, lambda: self._compare(found, password, address)
        )
        signed_in = await self._still_so(account)
        if verdict is PasswordCheck.RIGHT_BUT_OUTDATED:
            signed_in = await self._rehashed(signed_in, typed, address)
        self.audit.note(noted_as, account_id=attempt.account_id, factor="password")
        return signed_in

    async def _compare(
        self, found: record_store.Versioned[idp_records.Account] | None, password: str, address: str
    ) -> tuple[record_store.Versioned[idp_records.Account], str, PasswordCheck]:
        """The account and its password in normalized form. Raises SignInFailed."""
        typed = normalized_password(password)
        password_hash = None if found is None or typed is None else found.value.password_hash
        verdict = await self.passwords.verify(password_hash, typed or "", network=address)
        if found is None or typed is None or verdict is PasswordCheck.WRONG:
            account_id = None if found is None else found.value.account_id
            self.audit.note(AuditEvent.SIGN_IN_FAILED, account_id=account_id, factor="password")
            raise SignInFailed
        return found, typed, verdict

    def _device(
        self,
        found: record_store.Versioned[idp_records.Account] | None,
        marks: str,
        session: idp_records.BrowserSession | None,
    ) -> str | None:
        """The device id of the browser, if it is known for the account."""
        if found is None:
            return None
        if session is not None and session.account_id == found.value.account_id:
            return session.public_id
        return self.known_browsers.device(marks, found.value)

    async def _still_so(self, found: record_store.Versioned[idp_records.Account]) -> SignedIn:
        """The account as it is after the comparison of the password, which takes a while."""
        now_s = self.clock.now_ms() // 1000
        stored = await self.accounts.read(found.value.account_id)
        if stored is None or stored.value.password_hash != found.value.password_hash:
            raise SignInFailed
        if stored.value.disabled:
            raise AccountDisabled
        return SignedIn(stored, issue_time_s(stored.value, now_s))

    async def _rehashed(self, signed_in: SignedIn, password: str, network: str) -> SignedIn:
        await self.accounts.rehash(signed_in.stored, password, network=network)
        stored = await self.accounts.read(signed_in.account.account_id)
        if stored is None or stored.value.disabled:
            raise SignInFailed
        return SignedIn(stored, signed_in.at_s)


# Maps sign-ins to the ``amr`` values of tokens (RFC 8176; ).
#
# The ``amr`` claim states only what this server has verified, never what it assumes.

PASSWORD: Final = ("pwd",)
PASSWORD_AND_CODE: Final = ("pwd", "otp", "mfa")
"""A password, and a one-time code of an authenticator app or from the recovery codes."""


# Records the last sign-in to each account, for the operator's list of accounts.
#
# A session records it when it begins. A script that signs in for every request need not have it
# written for every request, so the time of its sign-ins is exact to an hour.

_EXACT_TO_S: Final = 3600


class LastSignIns:
    """Records sign-ins without a session."""

    def __init__(self, records: record_store.RecordStore) -> None:
        self._records = records

    async def note(
        self, account: record_store.Versioned[idp_records.Account], *, factor: str
    ) -> None:
        """Record a sign-in unless one was recorded within the last hour."""
        account_id = account.value.account_id
        stored = await self._records.read(idp_records.LAST_SIGN_INS, account_id)
        now_s = self._records.now_s()
        if stored is not None and now_s - stored.value.at_s < _EXACT_TO_S:
            return
        noted = idp_records.LAST_SIGN_INS.put(
            account_id, idp_records.LastSignIn(now_s, factor), owner=account_id
        )
        unchanged = (
            idp_records.LAST_SIGN_INS.absent(account_id) if stored is None else stored.unchanged
        )
        await self._records.try_commit([noted], [unchanged, account.unchanged])
