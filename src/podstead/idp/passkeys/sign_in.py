"""Signs in with a passkey (A-118, A-120, A-122).

People do not type a name: the credential id and the user handle identify the account. The server
therefore reveals nothing about an account to anyone without one of its passkeys.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.idp import sign_in
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.challenges import Challenges, IssuedChallenge, challenge_of, suffix_of
from podstead.idp.passkeys.ceremonies import (
    SIGNING_IN,
    Assertion,
    CeremonyVerifier,
    Credential,
    UnknownCredential,
    VerificationFailed,
    base64url_decoded,
    response_of,
)
from podstead.idp.passkeys.service import passkey_key
from podstead.idp.records import ACCOUNTS, PASSKEYS, Account, Passkey
from podstead.idp.sign_in import AccountDisabled
from podstead.storage.record_store import Changes, RecordStore, Versioned

FACTOR: Final = "passkey"


@dataclass(frozen=True, slots=True)
class SignedInByPasskey:
    """The account of a passkey, and the uid of the interaction that asked for it."""

    stored: Versioned[Account]
    uid: str
    """Empty for a sign-in without an application."""
    sign_in_method: str
    """The entry of the passkey (:mod:`podstead.idp.sessions`)."""
    amr: tuple[str, ...]
    """The ``amr`` value for tokens (:mod:`podstead.idp.sign_in`)."""


class PasskeySignIn:
    """Requests signatures and verifies them."""

    def __init__(
        self,
        *,
        records: RecordStore,
        challenges: Challenges,
        verifier: CeremonyVerifier,
        audit: Audit,
    ) -> None:
        self._records = records
        self._challenges = challenges
        self._verifier = verifier
        self._audit = audit

    async def ask(self, *, browser: str, uid: str = "") -> IssuedChallenge:
        """A challenge for a browser, in the interaction with this uid, if any."""
        return await self._challenges.issue(SIGNING_IN, holder=browser, suffix=uid)

    async def verify(
        self, challenge_key: str, credential: Credential, *, browser: str
    ) -> SignedInByPasskey:
        """The account whose passkey has signed the challenge.

        Raises ChallengeInvalid, UnknownCredential, VerificationFailed, AccountDisabled.
        """
        await self._challenges.take(challenge_key, SIGNING_IN, holder=browser)
        stored = await self._find(credential)
        try:
            assertion = await self._check(
                stored.value, credential, bytes.fromhex(challenge_of(challenge_key))
            )
            account = await self._note_use(stored, assertion)
        except (VerificationFailed, AccountDisabled):
            self._note(AuditEvent.SIGN_IN_FAILED, stored.value)
            raise
        self._note(AuditEvent.SIGNED_IN, stored.value)
        return SignedInByPasskey(
            account,
            suffix_of(challenge_key),
            stored.entry,
            sign_in.of_passkey(backup_eligible=assertion.backup_eligible),
        )

    async def _find(self, credential: Credential) -> Versioned[Passkey]:
        credential_id = credential.get("id")
        if not isinstance(credential_id, str):
            raise UnknownCredential
        return await self._read(passkey_key(credential_id))

    async def _check(self, passkey: Passkey, credential: Credential, challenge: bytes) -> Assertion:
        """Verify that the response is from the authenticator that has the passkey. Raises
        VerificationFailed."""
        handle = base64url_decoded(response_of(credential).get("userHandle"))
        expected = base64url_decoded(passkey.user_handle)
        if not handle or not expected or not hmac.compare_digest(handle, expected):
            raise VerificationFailed
        assertion = await self._verifier.verify_assertion(
            credential, challenge=challenge, public_key=passkey.public_key
        )
        if assertion.backup_eligible != passkey.backup_eligible:
            raise VerificationFailed
        return assertion

    async def _note_use(
        self, found: Versioned[Passkey], assertion: Assertion
    ) -> Versioned[Account]:
        """Record the use in the current version of the passkey. If two signatures have the same
        counter, the second is refused, whenever it arrives."""

        async def compute() -> Changes[Versioned[Account] | None]:
            stored = await self._read(found.key)
            account = await self._account(stored.value.account_id)
            now_s = self._records.now_s()
            if not sign_count_increases(stored.value.sign_count, assertion.sign_count):
                suspected = msgspec.structs.replace(stored.value, suspected_s=now_s)
                return Changes(None, [PASSKEYS.replace(stored, suspected)], [stored.unchanged])
            used = msgspec.structs.replace(
                stored.value,
                sign_count=assertion.sign_count,
                backed_up=assertion.backed_up,
                last_used_s=now_s,
            )
            return Changes(
                account, [PASSKEYS.replace(stored, used)], [stored.unchanged, account.unchanged]
            )

        account = await self._records.transact(compute)
        if account is None:
            self._note(AuditEvent.PASSKEY_COPIED, found.value)
            raise VerificationFailed
        return account

    async def _read(self, key: str) -> Versioned[Passkey]:
        stored = await self._records.read(PASSKEYS, key)
        if stored is None:
            raise UnknownCredential
        return stored

    async def _account(self, account_id: str) -> Versioned[Account]:
        stored = await self._records.read(ACCOUNTS, account_id)
        if stored is None:
            raise UnknownCredential
        if stored.value.disabled:
            raise AccountDisabled
        return stored

    def _note(self, event: AuditEvent, passkey: Passkey) -> None:
        self._audit.note(event, account_id=passkey.account_id, factor=FACTOR)


def sign_count_increases(before: int, now: int) -> bool:
    """Whether a signature counter may follow another (WebAuthn L3, 6.1.1). Authenticators without a
    counter always send 0. One that has a counter never sends the same or a lower value, unless the
    passkey has been copied."""
    return now > before or (now == 0 and before == 0)
