"""The second step of a sign-in with a password: a code, within the limits for guessing.

The first step leaves a record that belongs to one browser, and is valid for ten minutes and for a
few wrong codes. Guesses are limited for each account and address as those of passwords are
(:mod:`podstead.idp.sign_in`), but counted separately: somebody who knows the password delays only
browsers unknown to the account, never those of the owner. Pure.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from podstead.core.errors import AccessDenied
from podstead.features.two_factor import codes
from podstead.features.two_factor.service import TwoFactors, WrongCode, password_fingerprint
from podstead.idp.accounts import Accounts, issue_time_s
from podstead.idp.audit import Audit, AuditEvent, RequestSource
from podstead.idp.records import Account
from podstead.idp.security_events import event_records
from podstead.idp.sign_in import Attempts, KnownBrowsers, attempt_at
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.storage.records import EntryId, Precondition

SECOND_FACTOR_PATH: Final = "/idp/second-factor"
SET_UP_PATH: Final = "/idp/second-factor/set-up"
HALF_SIGN_IN_S: Final = 600
MAX_FAILURES: Final = 5
"""The number of wrong codes after which the password must be typed again."""


class NoPendingSecondFactor(AccessDenied):
    """This browser has not sent a correct password within the last minutes."""

    code = codes.TwoFactorCodes.PASSWORD_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeStep:
    """Begins and finishes the second step."""

    records: RecordStore
    accounts: Accounts
    two_factors: TwoFactors
    attempts: Attempts
    known_browsers: KnownBrowsers
    audit: Audit

    async def begin(
        self,
        account: Account,
        *,
        browser: str,
        path: str,
        lasting: bool = False,
        uid: str = "",
        common_password: bool = False,
        by_recovery: bool = False,
    ) -> str | None:
        """After the correct password, where the browser continues; ``None`` if it is enough."""
        found = await self.two_factors.of(account.account_id)
        if found.enough_for_password:
            return None
        now_s = self.records.now_s()
        half = codes.PendingSecondFactor(
            account_id=account.account_id,
            verified_s=issue_time_s(account, now_s),
            password_mark=password_fingerprint(account),
            lasting=lasting,
            path=path,
            uid=uid,
            common_password=common_password,
            by_recovery=by_recovery,
        )
        expires_ms = (now_s + HALF_SIGN_IN_S) * 1000
        put = codes.PENDING_SECOND_FACTORS.put(
            secret_key(browser), half, owner=account.account_id, expires_ms=expires_ms
        )
        await self.records.commit([put])
        return SET_UP_PATH if found.missing else SECOND_FACTOR_PATH

    async def is_needed(self, account_id: str) -> bool:
        """Whether an account needs more than its password."""
        return not (await self.two_factors.of(account_id)).enough_for_password

    async def method_removal(self, account: Account, method: EntryId) -> Sequence[Precondition]:
        """See :meth:`TwoFactors.method_removal`."""
        return await self.two_factors.method_removal(account, method)

    async def find(
        self, browser: str
    ) -> tuple[Versioned[codes.PendingSecondFactor], Versioned[Account]]:
        """The sign-in that a browser has begun, and its account. Raises NoPendingSecondFactor."""
        stored = await self.records.read(codes.PENDING_SECOND_FACTORS, secret_key(browser))
        account = None if stored is None else await self.accounts.read(stored.value.account_id)
        if (
            stored is None
            or account is None
            or account.value.disabled
            or stored.value.verified_s < account.value.valid_after_s
            or not hmac.compare_digest(
                stored.value.password_mark, password_fingerprint(account.value)
            )
        ):
            raise NoPendingSecondFactor
        return stored, account

    async def verify(
        self, browser: str, typed: str, *, recovery: bool, marks: str, source: RequestSource
    ) -> tuple[codes.PendingSecondFactor, Versioned[Account]]:
        """Finish the sign-in with a code of the app or a recovery code.

        Raises NoPendingSecondFactor, WrongCode and RateLimited.
        """
        stored, account = await self.find(browser)
        account_id = account.value.account_id
        device = self.known_browsers.device(marks, account.value)
        attempt = attempt_at(
            f"second factor of {account_id}",
            account,
            address=source.network,
            device=None if device is None else f"second factor {device}",
        )

        async def compare() -> None:
            if not recovery:
                await self.two_factors.use_code(account, typed)
            elif stored.value.by_recovery:
                raise WrongCode
            else:
                await self.two_factors.use_recovery_code(account, typed, source)

        try:
            await self.attempts.counted(attempt, compare)
        except WrongCode:
            await self._failed(stored, source)
            raise
        await self.end(stored)
        return stored.value, account

    async def end(self, stored: Versioned[codes.PendingSecondFactor]) -> None:
        """End the step, once it is done. Raises Overloaded if another request was first."""
        await self.records.commit(
            [codes.PENDING_SECOND_FACTORS.drop(stored.key)], [stored.unchanged]
        )

    async def _failed(
        self, stored: Versioned[codes.PendingSecondFactor], source: RequestSource
    ) -> None:
        account_id, failures = stored.value.account_id, stored.value.failures + 1
        self.audit.note(AuditEvent.SIGN_IN_FAILED, account_id=account_id, factor="second factor")
        if failures < MAX_FAILURES:
            changed = replace(stored.value, failures=failures)
            await self.records.try_commit(
                [codes.PENDING_SECOND_FACTORS.replace(stored, changed)], [stored.unchanged]
            )
            return
        event = codes.TwoFactorEvents.FAILED
        noted = await event_records(self.records, account_id, event, source)
        if await self.records.try_commit(
            [codes.PENDING_SECOND_FACTORS.drop(stored.key), *noted], [stored.unchanged]
        ):
            self.audit.note(event, account_id=account_id)
