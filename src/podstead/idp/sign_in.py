"""Signs in with a password (A-93, A-181, A-182).

The response does not reveal whether there is such an account: an unknown account, a wrong password
and an account without a password take the same steps and get the same response.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.clock import Clock
from podstead.core.errors import NotAuthenticated
from podstead.idp.accounts import Accounts, issue_time_s
from podstead.idp.attempts import Attempts, attempt_at
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.known_browsers import KnownBrowsers
from podstead.idp.names import MAX_EMAIL_CHARACTERS
from podstead.idp.passwords import PasswordCheck, PasswordHasher, presented
from podstead.idp.records import Account, BrowserSession
from podstead.storage.record_store import Versioned


class SignInFailed(NotAuthenticated):
    """The name and the password do not match."""

    def __init__(self, message: str = "The name or the password is wrong") -> None:
        super().__init__(message)


class AccountDisabled(SignInFailed):
    """The account is disabled; only somebody who knows its password gets this error."""

    def __init__(self) -> None:
        super().__init__("This account is disabled: ask the operator of this server")


@dataclass(frozen=True, slots=True)
class SignedIn:
    """An account whose owner has been verified.

    ``at_s`` is the Unix time to record in sessions and tokens. Every resulting write has
    ``stored.unchanged`` as a precondition, so that a change of the password in the meantime
    prevents it.
    """

    stored: Versioned[Account]
    at_s: int

    @property
    def account(self) -> Account:
        return self.stored.value


class PasswordSignIn:
    """Compares passwords, within the limits."""

    def __init__(
        self,
        *,
        accounts: Accounts,
        passwords: PasswordHasher,
        attempts: Attempts,
        known_browsers: KnownBrowsers,
        audit: Audit,
        clock: Clock,
    ) -> None:
        self._accounts = accounts
        self._passwords = passwords
        self._attempts = attempts
        self._known_browsers = known_browsers
        self._audit = audit
        self._clock = clock

    async def verify(
        self,
        login: str,
        password: str,
        *,
        address: str,
        marks: str = "",
        session: BrowserSession | None = None,
        noted_as: AuditEvent = AuditEvent.SIGNED_IN,
    ) -> SignedIn:
        """The account of ``login``, an e-mail address or a pod name, if the password is correct.

        ``address`` is the address of the peer (for IPv6, of its network). A browser that has signed
        in to the account before is known by its ``marks`` or by its ``session``. ``noted_as`` is
        the event to log for a correct password. Raises SignInFailed, RateLimited.
        """
        found = None
        if len(login) <= MAX_EMAIL_CHARACTERS:
            found = await self._accounts.find(login)
        device = self._device(found, marks, session)
        attempt = attempt_at(login, found, address=address, device=device)
        await self._attempts.check(attempt)
        typed = presented(password)
        password_hash = None if found is None or typed is None else found.value.password_hash
        verdict = await self._passwords.verify(password_hash, typed or "", network=address)
        if found is None or typed is None or verdict is PasswordCheck.WRONG:
            await self._attempts.failed(attempt)
            self._audit.note(
                AuditEvent.SIGN_IN_FAILED, account_id=attempt.account_id, factor="password"
            )
            raise SignInFailed
        await self._attempts.check(attempt)  # others may have failed while this one was compared
        signed_in = await self._still_so(found)
        await self._attempts.succeeded(attempt)
        if verdict is PasswordCheck.RIGHT_BUT_OUTDATED:
            signed_in = await self._rehashed(signed_in, typed, address)
        self._audit.note(noted_as, account_id=attempt.account_id, factor="password")
        return signed_in

    def _device(
        self, found: Versioned[Account] | None, marks: str, session: BrowserSession | None
    ) -> str | None:
        """The device id of the browser, if it is known for the account."""
        if found is None:
            return None
        if session is not None and session.account_id == found.value.account_id:
            return session.public_id
        return self._known_browsers.device(marks, found.value)

    async def _still_so(self, found: Versioned[Account]) -> SignedIn:
        """The account as it is after the comparison of the password, which takes a while."""
        now_s = self._clock.now_ms() // 1000
        stored = await self._accounts.read(found.value.account_id)
        if stored is None or stored.value.password_hash != found.value.password_hash:
            raise SignInFailed
        if stored.value.disabled:
            raise AccountDisabled
        return SignedIn(stored, issue_time_s(stored.value, now_s))

    async def _rehashed(self, signed_in: SignedIn, password: str, network: str) -> SignedIn:
        await self._accounts.rehash(signed_in.stored, password, network=network)
        stored = await self._accounts.read(signed_in.account.account_id)
        if stored is None or stored.value.disabled:
            raise SignInFailed
        return SignedIn(stored, signed_in.at_s)
