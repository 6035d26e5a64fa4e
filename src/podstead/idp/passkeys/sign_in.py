"""Is this the person of the account? Signing in with a passkey (A-118, A-120, A-122).

Nobody says who they are beforehand: the passkey does, by its credential id and user handle. So the
server tells nothing about accounts to who has no passkey of one.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import Overloaded
from podstead.idp import methods
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.challenges import Challenges, ChallengeStore, Issued, challenge_of, suffix_of
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
from podstead.idp.passkeys.keeping import passkey_key
from podstead.idp.records import ACCOUNTS, PASSKEYS, Account, Passkey
from podstead.idp.sign_in import AccountDisabled
from podstead.storage.records import Precondition
from podstead.storage.registry import Versioned
from podstead.storage.writing import commit_entries

FACTOR: Final = "passkey"
_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class SignedInByPasskey:
    """The account that a passkey is of, and the uid of the interaction it was asked for in."""

    kept: Versioned[Account]
    uid: str
    """Empty for signing in without an application."""
    way: str
    """The entry of the passkey (:mod:`podstead.idp.ways`)."""
    amr: tuple[str, ...]
    """What tokens tell of it (:mod:`podstead.idp.methods`)."""


class PasskeySignIn:
    """Asks for signatures and verifies them."""

    def __init__(
        self,
        *,
        store: ChallengeStore,
        challenges: Challenges,
        verifier: CeremonyVerifier,
        audit: Audit,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._store = store
        self._challenges = challenges
        self._verifier = verifier
        self._audit = audit
        self._clock = clock
        self._randomness = randomness

    async def ask(self, *, browser: str, uid: str = "") -> Issued:
        """A challenge for a browser, in the interaction of a uid if there is one. Raises
        Overloaded, StorageError."""
        return await self._challenges.issue(SIGNING_IN, holder=browser, suffix=uid)

    async def verify(
        self, challenge_key: str, credential: Credential, *, browser: str
    ) -> SignedInByPasskey:
        """The account whose passkey has signed the challenge.

        Raises ChallengeInvalid, UnknownCredential, VerificationFailed, AccountDisabled, Overloaded,
        StorageError.
        """
        await self._challenges.take(challenge_key, SIGNING_IN, holder=browser)
        kept = await self._find(credential)
        try:
            assertion = await self._check(
                kept.value, credential, bytes.fromhex(challenge_of(challenge_key))
            )
            account = await self._note_use(kept.key, assertion)
        except (VerificationFailed, AccountDisabled):
            self._note(AuditEvent.SIGN_IN_FAILED, kept.value)
            raise
        self._note(AuditEvent.SIGNED_IN, kept.value)
        return SignedInByPasskey(
            account,
            suffix_of(challenge_key),
            kept.at.entry,
            methods.of_passkey(backup_eligible=assertion.backup_eligible),
        )

    async def _find(self, credential: Credential) -> Versioned[Passkey]:
        credential_id = credential.get("id")
        if not isinstance(credential_id, str):
            raise UnknownCredential
        return await self._read(passkey_key(credential_id))

    async def _check(self, passkey: Passkey, credential: Credential, challenge: bytes) -> Assertion:
        """What only the authenticator of the passkey can answer. Raises VerificationFailed."""
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

    async def _note_use(self, key: str, assertion: Assertion) -> Versioned[Account]:
        """Count the use, against the passkey as it is now: of two signatures with one count the
        second is refused, whenever they come."""
        for _ in range(_ATTEMPTS):
            kept = await self._read(key)
            account = await self._account(kept.value.account_id)
            now_s = self._clock.now_ms() // 1000
            if not counts_up(kept.value.sign_count, assertion.sign_count):
                suspected = msgspec.structs.replace(kept.value, suspected_s=now_s)
                if await self._replace(kept, suspected):
                    self._note(AuditEvent.PASSKEY_COPIED, kept.value)
                    raise VerificationFailed
                continue
            used = msgspec.structs.replace(
                kept.value,
                sign_count=assertion.sign_count,
                backed_up=assertion.backed_up,
                last_used_s=now_s,
            )
            if await self._replace(kept, used, account.at):
                return account
        raise Overloaded("The account is being changed elsewhere; try again")

    async def _read(self, key: str) -> Versioned[Passkey]:
        kept = await PASSKEYS.read(self._store, key, now_ms=self._clock.now_ms())
        if kept is None:
            raise UnknownCredential
        return kept

    async def _account(self, account_id: str) -> Versioned[Account]:
        kept = await ACCOUNTS.read(self._store, account_id, now_ms=self._clock.now_ms())
        if kept is None:
            raise UnknownCredential
        if kept.value.disabled:
            raise AccountDisabled
        return kept

    async def _replace(
        self, kept: Versioned[Passkey], changed: Passkey, *preconditions: Precondition
    ) -> bool:
        return await commit_entries(
            self._store,
            [PASSKEYS.replace(kept, changed)],
            preconditions=[kept.at, *preconditions],
            now_ms=self._clock.now_ms(),
            randomness=self._randomness,
        )

    def _note(self, event: AuditEvent, passkey: Passkey) -> None:
        self._audit.note(event, account_id=passkey.account_id, factor=FACTOR)


def counts_up(before: int, now: int) -> bool:
    """Whether a signature's count may follow another (WebAuthn L3, 6.1.1). Authenticators that do
    not count say 0 always; one that does never says the same or less, unless there are two."""
    return now > before or (now == 0 and before == 0)
