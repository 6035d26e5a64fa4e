"""Adds, uses and removes the second factors of an account.

A second factor is required only after a password: a passkey verifies the person by itself, and a
Nostr key or a certificate is no password. Everything about one account is one record, and each use
of a code replaces it, so no code is used twice. Pure.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from podstead.core.errors import BadRequest, Conflict
from podstead.features.two_factor import codes as two_factor_codes
from podstead.idp.audit import OPERATOR, Audit, EventKind, RequestSource
from podstead.idp.records import Account
from podstead.idp.security_events import event_records
from podstead.idp.sign_in_methods import SignInMethod, second_factor
from podstead.storage.record_store import Changes, RecordStore, Versioned, secret_key
from podstead.storage.records import EntryAtVersion, EntryId, Precondition, Record

_NONE_AT_ALL: Final = -1
_ANY_PASSWORD: Final = "*"  # noqa: S105 - in place of a mark


class WrongCode(BadRequest):
    """The code is wrong, or was used before."""

    code = two_factor_codes.TwoFactorCodes.WRONG_CODE


class SecondFactorRequired(Conflict):
    """The operator demands a second factor, and this is the last one."""

    code = two_factor_codes.TwoFactorCodes.SECOND_FACTOR_REQUIRED


@dataclass(frozen=True, slots=True)
class SecondFactors:
    """The second factors of an account: its record, and whether it has passkeys."""

    record: two_factor_codes.TwoFactor
    has_passkeys: bool
    demanded: bool

    @property
    def asked_for(self) -> bool:
        """Whether a password needs something besides it that the account has."""
        return self.record.is_on or (self.demanded and self.has_passkeys)

    @property
    def missing(self) -> bool:
        """Whether the operator demands a second factor of an account that has none."""
        return self.demanded and not self.asked_for

    @property
    def enough_for_password(self) -> bool:
        """Whether a password alone signs in."""
        return not self.asked_for and not self.demanded


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoFactors:
    """Reads and changes them. Every method raises StorageError and Overloaded.

    ``methods`` are all by which accounts can sign in besides the password; ``demanded`` if
    the operator requires a second factor of everybody with a password.
    """

    records: RecordStore
    methods: Sequence[SignInMethod]
    passwords: two_factor_codes.OneTimePasswords
    audit: Audit
    demanded: bool = False

    async def of(self, account_id: str) -> SecondFactors:
        """The second factors of an account."""
        stored = await self.records.read(two_factor_codes.TWO_FACTORS, account_id)
        record = two_factor_codes.TwoFactor(account_id) if stored is None else stored.value
        has_passkeys = await self._some_passkey(account_id) is not None
        return SecondFactors(record, has_passkeys, self.demanded)

    def new_secret(self) -> str:
        """A secret for an app, which is stored once the person has typed one of its codes."""
        return two_factor_codes.new_secret(self.records.randomness)

    def picture(self, secret: str, account: Account, *, server_name: str) -> str:
        """The secret as a QR code, in SVG."""
        address = self.passwords.address(secret, name=account.pod, issuer=server_name)
        return self.passwords.picture(address)

    async def add_app(
        self,
        account: Versioned[Account],
        secret: str,
        typed: str,
        source: RequestSource,
        *,
        replacing: bool,
    ) -> Sequence[str]:
        """Store the secret of an app after its code was typed; new recovery codes if the account
        has none. Raises WrongCode, and Conflict if there is an app already, unless ``replacing``
        it."""
        account_id, now_s = account.value.account_id, self.records.now_s()
        if not two_factor_codes.is_secret(secret):
            raise BadRequest(two_factor_codes.TwoFactorCodes.NO_AUTHENTICATOR_SECRET)
        step = two_factor_codes.matching_step(
            self.passwords, secret, typed, now_s=now_s, after=_NONE_AT_ALL
        )
        if step is None:
            raise WrongCode
        codes: Sequence[str] = ()

        async def compute() -> Changes[None]:
            nonlocal codes
            record, unchanged = await self._read(account_id)
            if record.is_on and not replacing:
                raise Conflict(two_factor_codes.TwoFactorCodes.SECOND_FACTOR_EXISTS)
            changed = replace(
                record,
                totp_secret=secret,
                totp_created_s=now_s,
                totp_used_s=None,
                last_step=step,
                recovered="",
            )
            codes = (
                ()
                if record.recovery_hashes
                else two_factor_codes.new_recovery_codes(self.records.randomness)
            )
            if codes:
                changed = self._with_codes(changed, codes)
            noted = await self._noting(
                account_id, two_factor_codes.TwoFactorEvents.TOTP_ADDED, source
            )
            return Changes(None, [self._put(changed), *noted], [*unchanged, account.unchanged])

        await self.records.transact(compute)
        self.audit.note(two_factor_codes.TwoFactorEvents.TOTP_ADDED, account_id=account_id)
        return codes

    async def remove_app(self, account: Versioned[Account], source: RequestSource) -> None:
        """Remove the app; recovery codes remain, for a lost password. Raises
        SecondFactorRequired."""

        async def check() -> Sequence[Precondition]:
            if not self.demanded:
                return ()
            passkey = await self._some_passkey(account.value.account_id)
            if passkey is None:
                raise SecondFactorRequired
            return (passkey,)

        await self._change(
            account,
            two_factor_codes.TwoFactorEvents.TOTP_REMOVED,
            source,
            check=check,
            totp_secret=None,
            totp_used_s=None,
        )

    async def require_passkey(
        self, account: Versioned[Account], source: RequestSource, *, required: bool
    ) -> Sequence[str]:
        """Require a passkey besides the password, or stop requiring it; new recovery codes if the
        account has none. Raises BadRequest without a passkey."""
        found = await self.of(account.value.account_id)

        async def check() -> Sequence[Precondition]:
            if not required:
                return ()
            passkey = await self._some_passkey(account.value.account_id)
            if passkey is None:
                raise BadRequest(two_factor_codes.TwoFactorCodes.PASSKEY_NEEDED)
            return (passkey,)

        event = (
            two_factor_codes.TwoFactorEvents.PASSKEY_REQUIRED
            if required
            else two_factor_codes.TwoFactorEvents.PASSKEY_NOT_REQUIRED
        )
        await self._change(account, event, source, check=check, with_passkey=required)
        if not required or found.record.recovery_hashes:
            return ()
        return await self.renew_codes(account, source)

    async def renew_codes(
        self, account: Versioned[Account], source: RequestSource
    ) -> Sequence[str]:
        """New recovery codes; earlier ones are no longer valid."""
        account_id = account.value.account_id
        codes = two_factor_codes.new_recovery_codes(self.records.randomness)
        with_codes = self._with_codes(two_factor_codes.TwoFactor(account_id), codes)
        await self._change(
            account,
            two_factor_codes.TwoFactorEvents.RECOVERY_CODES_CREATED,
            source,
            recovery_hashes=with_codes.recovery_hashes,
            recovery_created_s=with_codes.recovery_created_s,
        )
        return codes

    async def use_code(self, account: Versioned[Account], typed: str) -> None:
        """Use a code of the app. Raises WrongCode, also for one that was used before."""
        now_s = self.records.now_s()

        async def compute() -> Changes[None]:
            record, unchanged = await self._read(account.value.account_id)
            step = None
            if record.totp_secret is not None:
                step = two_factor_codes.matching_step(
                    self.passwords,
                    record.totp_secret,
                    typed,
                    now_s=now_s,
                    after=record.last_step,
                )
            if step is None:
                raise WrongCode
            used = replace(record, last_step=step, totp_used_s=now_s, recovered="")
            return Changes(None, [self._put(used)], [*unchanged, account.unchanged])

        await self.records.transact(compute)

    async def use_recovery_code(
        self,
        account: Versioned[Account],
        typed: str,
        source: RequestSource,
        *,
        for_password: bool = False,
    ) -> None:
        """Use up a recovery code, as a second factor or ``for_password``, a new one: then
        :meth:`note_recovered` follows. Raises WrongCode."""
        account_id = account.value.account_id
        hashed = two_factor_codes.recovery_hash(account_id, typed)

        async def compute() -> Changes[None]:
            record, unchanged = await self._read(account_id)
            if hashed not in record.recovery_hashes:
                raise WrongCode
            if not for_password and not accepts_recovery_codes(record, account.value):
                raise WrongCode
            left = tuple(each for each in record.recovery_hashes if each != hashed)
            noted = await self._noting(
                account_id, two_factor_codes.TwoFactorEvents.RECOVERY_CODE_USED, source
            )
            recovered = _ANY_PASSWORD if for_password else record.recovered
            used = replace(record, recovery_hashes=left, recovered=recovered)
            return Changes(None, [self._put(used), *noted], [*unchanged, account.unchanged])

        await self.records.transact(compute)
        self.audit.note(two_factor_codes.TwoFactorEvents.RECOVERY_CODE_USED, account_id=account_id)

    async def note_recovered(self, account: Versioned[Account]) -> None:
        """Note that the password of an account was set with a recovery code."""

        async def compute() -> Changes[None]:
            record, unchanged = await self._read(account.value.account_id)
            noted = replace(record, recovered=password_fingerprint(account.value))
            return Changes(None, [self._put(noted)], unchanged)

        await self.records.transact(compute)

    async def method_removal(self, account: Account, method: EntryId) -> Sequence[Precondition]:
        """The preconditions for removing a sign-in method, so that a second factor remains if one
        is needed, despite concurrent changes. Raises SecondFactorRequired."""
        record, unchanged = await self._read(account.account_id)
        needed = record.with_passkey or (self.demanded and account.password_hash is not None)
        if not needed or record.totp_secret is not None:
            return unchanged
        other = await self._some_passkey(account.account_id, without=method)
        if other is None:
            raise SecondFactorRequired
        return [*unchanged, other]

    # --- parts --------------------------------------------------------------------------------

    async def _read(self, account_id: str) -> tuple[two_factor_codes.TwoFactor, list[Precondition]]:
        stored = await self.records.read(two_factor_codes.TWO_FACTORS, account_id)
        if stored is None:
            return two_factor_codes.TwoFactor(account_id), [
                two_factor_codes.TWO_FACTORS.absent(account_id)
            ]
        return stored.value, [stored.unchanged]

    async def _change(
        self,
        account: Versioned[Account],
        event: EventKind,
        source: RequestSource,
        check: Callable[[], Awaitable[Sequence[Precondition]]] | None = None,
        **changes: object,
    ) -> None:
        """Change the record. ``check`` may refuse, and returns what else the write depends on."""
        account_id = account.value.account_id

        async def compute() -> Changes[None]:
            record, unchanged = await self._read(account_id)
            further = () if check is None else await check()
            noted = await self._noting(account_id, event, source)
            changed = self._put(replace(record, recovered="", **changes))
            depends_on = [*unchanged, account.unchanged, *further]
            return Changes(None, [changed, *noted], depends_on)

        await self.records.transact(compute)
        self.audit.note(event, account_id=account_id)

    async def _some_passkey(
        self, account_id: str, without: EntryId | None = None
    ) -> EntryAtVersion | None:
        return await second_factor(self.records, self.methods, account_id, without=without)

    async def _noting(
        self, account_id: str, event: EventKind, source: RequestSource
    ) -> Sequence[Record]:
        return await event_records(self.records, account_id, event, source)

    def _put(self, record: two_factor_codes.TwoFactor) -> Record:
        return two_factor_codes.TWO_FACTORS.put(record.account_id, record, owner=record.account_id)

    def _with_codes(
        self, record: two_factor_codes.TwoFactor, codes: Sequence[str]
    ) -> two_factor_codes.TwoFactor:
        hashed = tuple(two_factor_codes.recovery_hash(record.account_id, code) for code in codes)
        return replace(record, recovery_hashes=hashed, recovery_created_s=self.records.now_s())


def password_fingerprint(account: Account) -> str:
    """A mark of the password, which changes with it."""
    return secret_key(f"{account.account_id} {account.password_hash}")


def accepts_recovery_codes(record: two_factor_codes.TwoFactor, account: Account) -> bool:
    """Whether recovery codes are a second factor: not with a password that was set by one of them,
    since somebody who finds the sheet has all of them."""
    if not record.recovery_hashes:
        return False
    return record.recovered not in (_ANY_PASSWORD, password_fingerprint(account))


async def reset_records(records: RecordStore, account_id: str) -> Sequence[Record]:
    """The records by which an operator resets the second factor of an account."""
    event = two_factor_codes.TwoFactorEvents.RESET
    return [
        two_factor_codes.TWO_FACTORS.drop(account_id),
        *await event_records(records, account_id, event, OPERATOR),
    ]
