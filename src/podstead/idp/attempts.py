"""Limits failed attempts at passwords, with counters shared by all workers (A-180, A-181).

Only failures are counted, so scripts may sign in as often as they like. A limit is checked before a
password is compared and again afterwards, and the result is returned only once its failure has been
recorded. Many guesses sent at once therefore get no more answers than guesses sent one after
another.

An account is never locked permanently, since anybody could cause that. After several consecutive
failures with one name, the next attempt with that name has to wait, for at most a minute; many
failures within an hour block the name for a quarter of an hour. Names are counted as they were
typed, whether or not an account has them, so that nobody can find out that an e-mail address and a
pod name belong to one account. A browser that has signed in to the account before is delayed by its
own failures only (:mod:`podstead.idp.known_browsers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.errors import RateLimited
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.names import name_key
from podstead.idp.records import Account
from podstead.storage.record_store import (
    Changes,
    Contention,
    RecordKind,
    RecordStore,
    Versioned,
    secret_key,
)

MAX_DELAY_S: Final = 60
HOUR_S: Final = 3600
PAUSE_S: Final = 900
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


FAILURES: Final = RecordKind("failures", Failures)
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
    login: str, account: Versioned[Account] | None, *, address: str, device: str | None = None
) -> Attempt:
    """The attempt with a login as typed, and the account that has it, if any. ``device`` identifies
    a browser that has signed in to that account before."""
    account_id = None if account is None else account.value.account_id
    if device is not None and account_id is not None:
        return Attempt(secret_key(f"{account_id} {device}"), None, account_id)
    return Attempt(secret_key(name_key(login)), address, account_id)


class Attempts:
    """Checks and records failures."""

    def __init__(
        self,
        *,
        records: RecordStore,
        limits: FailureLimits,
        audit: Audit,
    ) -> None:
        self._records = records
        self._limits = limits
        self._audit = audit

    async def check(self, attempt: Attempt) -> None:
        """Refuse an attempt that must wait. Raises RateLimited."""
        now_ms = self._records.now_ms()
        for bucket, capacity in self._buckets(attempt):
            wait_s = await self._records.store.wait_s(
                bucket, capacity=capacity, per_s=capacity / _MINUTE_S, now_ms=now_ms
            )
            if wait_s is not None:
                raise RateLimited(retry_after_s=wait_s)
        await self._read(attempt)

    async def failed(self, attempt: Attempt) -> None:
        """Record a failure. If this raises RateLimited, the result of the attempt must not be
        returned.

        Raises RateLimited.
        """
        for bucket, capacity in self._buckets(attempt):
            wait_s = await self._records.take(bucket, capacity=capacity, period_s=_MINUTE_S)
            if wait_s is not None:
                raise RateLimited(retry_after_s=wait_s)
        await self._note(attempt)

    async def succeeded(self, attempt: Attempt) -> None:
        """Reset the count of consecutive failures."""
        stored = await self._records.read(FAILURES, attempt.subject)
        if stored is None or stored.value.in_a_row == 0:
            return
        forgiven = msgspec.structs.replace(stored.value, in_a_row=0)
        await self._records.try_commit([FAILURES.replace(stored, forgiven)], [stored.unchanged])

    async def _note(self, attempt: Attempt) -> None:
        if not self._limits.in_a_row and not self._limits.per_hour:
            return

        async def compute() -> Changes[bool]:
            now_ms = self._records.now_ms()
            stored = await self._read(attempt)
            before = NONE_YET if stored is None else stored.value
            noted = after_failure(before, self._limits, now_s=now_ms // 1000)
            record = FAILURES.put(
                attempt.subject,
                noted,
                owner=attempt.account_id,
                expires_ms=now_ms + HOUR_S * 1000,
            )
            unchanged = FAILURES.absent(attempt.subject) if stored is None else stored.unchanged
            return Changes(noted.paused_until_s > before.paused_until_s, [record], [unchanged])

        try:
            pauses = await self._records.transact(compute)
        except Contention as contention:
            # Too many fail at once for this one to be recorded: treat it as not made.
            raise RateLimited(retry_after_s=1) from contention
        if pauses:
            self._audit.note(AuditEvent.SIGN_IN_PAUSED, account_id=attempt.account_id)

    async def _read(self, attempt: Attempt) -> Versioned[Failures] | None:
        now_ms = self._records.now_ms()
        stored = await self._records.read(FAILURES, attempt.subject)
        if stored is not None:
            wait_s = seconds_to_wait(stored.value, self._limits, now_s=now_ms // 1000)
            if wait_s:
                raise RateLimited(retry_after_s=wait_s)
        return stored

    def _buckets(self, attempt: Attempt) -> list[tuple[str, int]]:
        if attempt.address is None:
            return []
        limits = self._limits
        buckets = [
            (f"sign-in:{attempt.address}:{attempt.subject}", limits.per_minute_of_account),
            (f"sign-in:{attempt.address}", limits.per_minute),
        ]
        return [(bucket, capacity) for bucket, capacity in buckets if capacity]
