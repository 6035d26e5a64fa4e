"""Adds, lists, renames and removes the passkeys of an account, and signs in with them (A-117 to
A-124).

Whoever changes passkeys is signed in; the pages check that they signed in recently. An account
always keeps at least one factor. People who sign in do not type a name: the credential id and the
user handle identify the account. The server therefore reveals nothing about an account to anyone
without one of its passkeys. Pure.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core import base64url
from podstead.core.errors import BadRequest, Conflict, NotFound
from podstead.features.passkeys import ceremonies
from podstead.idp.audit import Audit, AuditEvent, EventKind, RequestSource
from podstead.idp.challenges import Challenges, IssuedChallenge, challenge_of, suffix_of
from podstead.idp.codes import IdpCodes
from podstead.idp.records import ACCOUNTS, Account, Challenge
from podstead.idp.security_events import event_records
from podstead.idp.sessions import OpenSession
from podstead.idp.sign_in import AccountDisabled
from podstead.idp.sign_in_methods import SignInMethod, end_records, remaining_factor
from podstead.storage.record_store import Changes, RecordStore, Versioned, secret_key
from podstead.storage.records import Precondition, Record

FACTOR: Final = "passkey"
MAX_PER_ACCOUNT: Final = 50
MAX_NAME_CHARACTERS: Final = 64
TRANSPORTS: Final = frozenset({"ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb"})
"""The known transports of authenticators (WebAuthn L3, 5.8.4); others are ignored."""
_HANDLE_BYTES: Final = 32


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkeys:
    """The passkeys of accounts.

    ``methods`` are all by which accounts can sign in.
    """

    records: RecordStore
    challenges: Challenges
    methods: Sequence[SignInMethod]
    verifier: ceremonies.CeremonyVerifier
    audit: Audit

    async def of_account(self, account_id: str) -> Sequence[Versioned[ceremonies.Passkey]]:
        """The passkeys of an account, oldest first."""
        stored = await self.records.of_owner(ceremonies.PASSKEYS, account_id)
        return sorted(stored, key=lambda each: (each.value.created_s, each.key))

    # --- adding -------------------------------------------------------------------------------

    async def offer(self, signed_in: OpenSession) -> ceremonies.CreationOffer:
        """Begin to add a passkey. Raises Conflict for too many."""
        account_id = signed_in.account.account_id
        present = [each.value for each in await self.of_account(account_id)]
        if len(present) >= MAX_PER_ACCOUNT:
            raise Conflict(ceremonies.PasskeyCodes.TOO_MANY, number=MAX_PER_ACCOUNT)
        handle = present[0].user_handle if present else self._new_handle()
        issued = await self.challenges.issue(
            ceremonies.ADDING,
            holder=signed_in.stored.key,
            account_id=account_id,
            user_handle=handle,
        )
        return ceremonies.CreationOffer(issued, handle, present)

    async def add(
        self,
        signed_in: OpenSession,
        *,
        challenge_key: str,
        credential: ceremonies.Credential,
        name: str,
        source: RequestSource,
    ) -> ceremonies.Passkey:
        """Store the passkey that a browser has created for an offer to this session.

        Raises ChallengeInvalid, VerificationFailed, BadRequest for a name that is too long,
        Conflict for a passkey that is already registered.
        """
        account = signed_in.owner
        taken = await self.challenges.take(
            challenge_key,
            ceremonies.ADDING,
            holder=signed_in.stored.key,
            account_id=account.value.account_id,
        )
        label = usable_name(name)
        created = await self.verifier.verify_creation(
            credential, challenge=bytes.fromhex(challenge_of(challenge_key))
        )
        passkey = self._made(account.value, taken, created, credential, label)
        await self._keep(account, passkey, source)
        self.audit.note(
            ceremonies.PasskeyEvents.ADDED, account_id=passkey.account_id, aaguid=passkey.aaguid
        )
        return passkey

    # --- looking after them -------------------------------------------------------------------

    async def rename(self, account_id: str, key: str, name: str) -> None:
        """Rename a passkey. Raises NotFound and BadRequest."""
        label = usable_name(name)
        if not label:
            raise BadRequest(ceremonies.PasskeyCodes.WITHOUT_NAME)
        stored = await self._existing(account_id, key)
        changed = msgspec.structs.replace(stored.value, name=label)
        await self.records.commit(
            [ceremonies.PASSKEYS.replace(stored, changed)], [stored.unchanged]
        )

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
        stays = await remaining_factor(self.records, self.methods, account, without=stored.entry)
        method = stored.entry
        removal = [
            ceremonies.PASSKEYS.drop(key),
            *await end_records(self.records, account_id, method),
            *await self._noting(ceremonies.PasskeyEvents.REMOVED, stored.value, source),
        ]
        depends_on = [account.unchanged, stored.unchanged, stays, *preconditions]
        await self.records.commit(removal, depends_on)
        # Sessions and grants that began with it during the removal:
        await self.records.commit(await end_records(self.records, account_id, method))
        self.audit.note(
            ceremonies.PasskeyEvents.REMOVED, account_id=account_id, aaguid=stored.value.aaguid
        )
        return method

    # --- signing in ---------------------------------------------------------------------------

    async def ask(self, *, browser: str, uid: str = "") -> IssuedChallenge:
        """A challenge for a browser, in the interaction with this uid, if any."""
        return await self.challenges.issue(ceremonies.SIGNING_IN, holder=browser, suffix=uid)

    async def verify(
        self, challenge_key: str, credential: ceremonies.Credential, *, browser: str
    ) -> SignedInByPasskey:
        """The account whose passkey has signed the challenge.

        Raises ChallengeInvalid, UnknownCredential, VerificationFailed, AccountDisabled.
        """
        await self.challenges.take(challenge_key, ceremonies.SIGNING_IN, holder=browser)
        stored = await self._find(credential)
        try:
            assertion = await self._check(
                stored.value, credential, bytes.fromhex(challenge_of(challenge_key))
            )
            account = await self._note_use(stored, assertion)
        except (ceremonies.VerificationFailed, AccountDisabled):
            self._note(AuditEvent.SIGN_IN_FAILED, stored.value)
            raise
        self._note(AuditEvent.SIGNED_IN, stored.value)
        return SignedInByPasskey(
            account,
            suffix_of(challenge_key),
            stored.entry,
            amr_of_passkey(backup_eligible=assertion.backup_eligible),
        )

    # --- parts --------------------------------------------------------------------------------

    def _new_handle(self) -> str:
        return base64url.encoded(bytes.fromhex(self.records.randomness.token_hex(_HANDLE_BYTES)))

    def _made(
        self,
        account: Account,
        taken: Challenge,
        created: ceremonies.CreatedKey,
        credential: ceremonies.Credential,
        name: str,
    ) -> ceremonies.Passkey:
        return ceremonies.Passkey(
            credential_id=base64url.encoded(created.credential_id),
            account_id=account.account_id,
            user_handle=taken.user_handle or "",
            public_key=created.public_key,
            sign_count=created.sign_count,
            aaguid=created.aaguid,
            transports=_transports(credential),
            backup_eligible=created.backup_eligible,
            backed_up=created.backed_up,
            name=name,
            created_s=self.records.now_s(),
        )

    async def _noting(
        self, event: EventKind, passkey: ceremonies.Passkey, source: RequestSource
    ) -> Sequence[Record]:
        return await event_records(
            self.records, passkey.account_id, event, source, subject=passkey.name
        )

    async def _keep(
        self, account: Versioned[Account], passkey: ceremonies.Passkey, source: RequestSource
    ) -> None:
        key = passkey_key(passkey.credential_id)
        known = await self.records.read(ceremonies.PASSKEYS, key)
        if known is not None:
            raise Conflict(ceremonies.PasskeyCodes.REGISTERED)
        record = ceremonies.PASSKEYS.put(key, passkey, owner=account.value.account_id)
        noted = await self._noting(ceremonies.PasskeyEvents.ADDED, passkey, source)
        await self.records.commit(
            [record, *noted], [account.unchanged, ceremonies.PASSKEYS.absent(key)]
        )

    async def _existing(self, account_id: str, key: str) -> Versioned[ceremonies.Passkey]:
        stored = await self.records.read(ceremonies.PASSKEYS, key)
        if stored is None or stored.value.account_id != account_id:
            raise NotFound(ceremonies.PasskeyCodes.NO_SUCH_PASSKEY)
        return stored

    async def _find(self, credential: ceremonies.Credential) -> Versioned[ceremonies.Passkey]:
        credential_id = credential.get("id")
        if not isinstance(credential_id, str):
            raise ceremonies.UnknownCredential
        return await self._read(passkey_key(credential_id))

    async def _check(
        self, passkey: ceremonies.Passkey, credential: ceremonies.Credential, challenge: bytes
    ) -> ceremonies.Assertion:
        """Verify that the response is from the authenticator that has the passkey. Raises
        VerificationFailed."""
        handle = ceremonies.base64url_decoded(ceremonies.response_of(credential).get("userHandle"))
        expected = ceremonies.base64url_decoded(passkey.user_handle)
        if not handle or not expected or not hmac.compare_digest(handle, expected):
            raise ceremonies.VerificationFailed
        assertion = await self.verifier.verify_assertion(
            credential, challenge=challenge, public_key=passkey.public_key
        )
        if assertion.backup_eligible != passkey.backup_eligible:
            raise ceremonies.VerificationFailed
        return assertion

    async def _note_use(
        self, found: Versioned[ceremonies.Passkey], assertion: ceremonies.Assertion
    ) -> Versioned[Account]:
        """Record the use in the current version of the passkey. If two signatures have the same
        counter, the second is refused, whenever it arrives."""

        async def compute() -> Changes[Versioned[Account] | None]:
            stored = await self._read(found.key)
            account = await self._account(stored.value.account_id)
            now_s = self.records.now_s()
            if not sign_count_increases(stored.value.sign_count, assertion.sign_count):
                suspected = msgspec.structs.replace(stored.value, suspected_s=now_s)
                return Changes(
                    None, [ceremonies.PASSKEYS.replace(stored, suspected)], [stored.unchanged]
                )
            used = msgspec.structs.replace(
                stored.value,
                sign_count=assertion.sign_count,
                backed_up=assertion.backed_up,
                last_used_s=now_s,
            )
            return Changes(
                account,
                [ceremonies.PASSKEYS.replace(stored, used)],
                [stored.unchanged, account.unchanged],
            )

        account = await self.records.transact(compute)
        if account is None:
            self._note(ceremonies.PasskeyEvents.COPIED, found.value)
            raise ceremonies.VerificationFailed
        return account

    async def _read(self, key: str) -> Versioned[ceremonies.Passkey]:
        stored = await self.records.read(ceremonies.PASSKEYS, key)
        if stored is None:
            raise ceremonies.UnknownCredential
        return stored

    async def _account(self, account_id: str) -> Versioned[Account]:
        stored = await self.records.read(ACCOUNTS, account_id)
        if stored is None:
            raise ceremonies.UnknownCredential
        if stored.value.disabled:
            raise AccountDisabled
        return stored

    def _note(self, event: EventKind, passkey: ceremonies.Passkey) -> None:
        self.audit.note(event, account_id=passkey.account_id, factor=FACTOR)


def passkey_key(credential_id: str) -> str:
    """The key of the record of a passkey, also used in URLs; ``credential_id`` is base64url."""
    return secret_key(credential_id)


def usable_name(name: str) -> str:
    """The name to store for a passkey. Raises BadRequest if it is too long."""
    label = name.strip()
    if len(label) > MAX_NAME_CHARACTERS:
        raise BadRequest(IdpCodes.NAME_TOO_LONG, number=MAX_NAME_CHARACTERS)
    return label


def _transports(credential: ceremonies.Credential) -> tuple[str, ...]:
    """The transports that the browser reports; only a hint."""
    named = ceremonies.response_of(credential).get("transports")
    if not isinstance(named, list):
        return ()
    return tuple(sorted({each for each in named if isinstance(each, str)} & TRANSPORTS))


def sign_count_increases(before: int, now: int) -> bool:
    """Whether a signature counter may follow another (WebAuthn L3, 6.1.1). Authenticators without a
    counter always send 0. One that has a counter never sends the same or a lower value, unless the
    passkey has been copied."""
    return now > before or (now == 0 and before == 0)


def amr_of_passkey(*, backup_eligible: bool) -> tuple[str, ...]:
    """What tokens say about a passkey (RFC 8176; A-71, A-118): a key that never leaves its device
    (``hwk``) or that several devices can have (``swk``), with user presence (``user``) and user
    verification by the device, which makes two factors (``mfa``). Devices do not say whether they
    verified a PIN, a finger or a face."""
    return ("swk" if backup_eligible else "hwk", "user", "mfa")
