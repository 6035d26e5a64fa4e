"""Adds, lists, renames and removes the passkeys of an account (A-117, A-121, A-124).

The person is signed in; the pages check that they signed in recently. An account always keeps at
least one factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.errors import BadRequest, Conflict, NotFound
from podstead.idp.audit import Audit, AuditEvent, RequestSource
from podstead.idp.challenges import Challenges, IssuedChallenge, challenge_of
from podstead.idp.codes import IdpCodes
from podstead.idp.passkeys.ceremonies import (
    ADDING,
    CeremonyVerifier,
    CreatedKey,
    Credential,
    base64url_encoded,
    response_of,
)
from podstead.idp.records import PASSKEYS, Account, Challenge, Passkey
from podstead.idp.security_events import event_records
from podstead.idp.sessions import OpenSession
from podstead.idp.sign_in_methods import end_records, remaining_factor
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.storage.records import Precondition, Record

MAX_PER_ACCOUNT: Final = 50
MAX_NAME_CHARACTERS: Final = 64
TRANSPORTS: Final = frozenset({"ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb"})
"""The known transports of authenticators (WebAuthn L3, 5.8.4); others are ignored."""
_HANDLE_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class CreationOffer:
    """The permission to add a passkey, with what the browser needs for it."""

    issued: IssuedChallenge
    user_handle: str
    present: Sequence[Passkey]
    """The passkeys of the account, whose authenticators must not create a second one."""


class Passkeys:
    """Adds, lists, renames and removes passkeys."""

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

    async def of_account(self, account_id: str) -> Sequence[Versioned[Passkey]]:
        """The passkeys of an account, oldest first."""
        stored = await self._records.of_owner(PASSKEYS, account_id)
        return sorted(stored, key=lambda each: (each.value.created_s, each.key))

    # --- adding -------------------------------------------------------------------------------

    async def offer(self, signed_in: OpenSession) -> CreationOffer:
        """Begin to add a passkey. Raises Conflict for too many."""
        account_id = signed_in.account.account_id
        present = [each.value for each in await self.of_account(account_id)]
        if len(present) >= MAX_PER_ACCOUNT:
            raise Conflict(IdpCodes.TOO_MANY_PASSKEYS, number=MAX_PER_ACCOUNT)
        handle = present[0].user_handle if present else self._new_handle()
        issued = await self._challenges.issue(
            ADDING, holder=signed_in.stored.key, account_id=account_id, user_handle=handle
        )
        return CreationOffer(issued, handle, present)

    async def add(
        self,
        signed_in: OpenSession,
        *,
        challenge_key: str,
        credential: Credential,
        name: str,
        source: RequestSource,
    ) -> Passkey:
        """Store the passkey that a browser has created for an offer to this session.

        Raises ChallengeInvalid, VerificationFailed, BadRequest for a name that is too long,
        Conflict for a passkey that is already registered.
        """
        account = signed_in.owner
        taken = await self._challenges.take(
            challenge_key,
            ADDING,
            holder=signed_in.stored.key,
            account_id=account.value.account_id,
        )
        label = usable_name(name)
        created = await self._verifier.verify_creation(
            credential, challenge=bytes.fromhex(challenge_of(challenge_key))
        )
        passkey = self._made(account.value, taken, created, credential, label)
        await self._keep(account, passkey, source)
        self._audit.note(
            AuditEvent.PASSKEY_ADDED, account_id=passkey.account_id, aaguid=passkey.aaguid
        )
        return passkey

    # --- looking after them -------------------------------------------------------------------

    async def rename(self, account_id: str, key: str, name: str) -> None:
        """Rename a passkey. Raises NotFound and BadRequest."""
        label = usable_name(name)
        if not label:
            raise BadRequest(IdpCodes.PASSKEY_WITHOUT_NAME)
        stored = await self._existing(account_id, key)
        changed = msgspec.structs.replace(stored.value, name=label)
        await self._records.commit([PASSKEYS.replace(stored, changed)], [stored.unchanged])

    async def remove(
        self,
        account: Versioned[Account],
        key: str,
        source: RequestSource,
        *,
        preconditions: Sequence[Precondition] = (),
    ) -> str:
        """Remove a passkey if the preconditions hold, and end the sessions and grants that began
        with it. Returns the sign-in method that was removed
        (:mod:`podstead.idp.sessions`).

        Raises NotFound and LastFactor.
        """
        account_id = account.value.account_id
        stored = await self._existing(account_id, key)
        stays = await remaining_factor(self._records, account, without=stored.unchanged)
        method = stored.entry
        removal = [
            PASSKEYS.drop(key),
            *await end_records(self._records, account_id, method),
            *await self._noting(AuditEvent.PASSKEY_REMOVED, stored.value, source),
        ]
        depends_on = [account.unchanged, stored.unchanged, stays, *preconditions]
        await self._records.commit(removal, depends_on)
        # Sessions and grants that began with it during the removal:
        await self._records.commit(await end_records(self._records, account_id, method))
        self._audit.note(
            AuditEvent.PASSKEY_REMOVED, account_id=account_id, aaguid=stored.value.aaguid
        )
        return method

    # --- parts --------------------------------------------------------------------------------

    def _new_handle(self) -> str:
        return base64url_encoded(bytes.fromhex(self._records.randomness.token_hex(_HANDLE_BYTES)))

    def _made(
        self,
        account: Account,
        taken: Challenge,
        created: CreatedKey,
        credential: Credential,
        name: str,
    ) -> Passkey:
        return Passkey(
            credential_id=base64url_encoded(created.credential_id),
            account_id=account.account_id,
            user_handle=taken.user_handle or "",
            public_key=created.public_key,
            sign_count=created.sign_count,
            aaguid=created.aaguid,
            transports=_transports(credential),
            backup_eligible=created.backup_eligible,
            backed_up=created.backed_up,
            name=name,
            created_s=self._records.now_s(),
        )

    async def _noting(
        self, event: AuditEvent, passkey: Passkey, source: RequestSource
    ) -> Sequence[Record]:
        return await event_records(
            self._records, passkey.account_id, event, source, subject=passkey.name
        )

    async def _keep(
        self, account: Versioned[Account], passkey: Passkey, source: RequestSource
    ) -> None:
        key = passkey_key(passkey.credential_id)
        known = await self._records.read(PASSKEYS, key)
        if known is not None:
            raise Conflict(IdpCodes.PASSKEY_REGISTERED)
        record = PASSKEYS.put(key, passkey, owner=account.value.account_id)
        noted = await self._noting(AuditEvent.PASSKEY_ADDED, passkey, source)
        await self._records.commit([record, *noted], [account.unchanged, PASSKEYS.absent(key)])

    async def _existing(self, account_id: str, key: str) -> Versioned[Passkey]:
        stored = await self._records.read(PASSKEYS, key)
        if stored is None or stored.value.account_id != account_id:
            raise NotFound(IdpCodes.NO_SUCH_PASSKEY)
        return stored


def passkey_key(credential_id: str) -> str:
    """The key of the record of a passkey, also used in URLs; ``credential_id`` is base64url."""
    return secret_key(credential_id)


def usable_name(name: str) -> str:
    """The name to store for a passkey. Raises BadRequest if it is too long."""
    label = name.strip()
    if len(label) > MAX_NAME_CHARACTERS:
        raise BadRequest(IdpCodes.NAME_TOO_LONG, number=MAX_NAME_CHARACTERS)
    return label


def _transports(credential: Credential) -> tuple[str, ...]:
    """The transports that the browser reports; only a hint."""
    named = response_of(credential).get("transports")
    if not isinstance(named, list):
        return ()
    return tuple(sorted({each for each in named if isinstance(each, str)} & TRANSPORTS))
