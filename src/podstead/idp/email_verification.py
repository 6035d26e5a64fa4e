"""Verifies that a person reads the mail of an address, by a link that is sent there.

Links for a new password and security notices are sent to confirmed addresses only, because a
mistyped address belongs to a stranger.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from podstead.core.errors import NotFound
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.codes import IdpCodes
from podstead.idp.mail_queue import MailQueue, MailSubject
from podstead.idp.records import ACCOUNTS, EMAIL_PROOFS, Account, EmailProof
from podstead.storage.record_store import Changes, RecordStore, Versioned, secret_key
from podstead.storage.records import Record

PROOF_S: Final = 3 * 24 * 3600
"""How long a link is valid."""
_SECRET_BYTES: Final = 32


class ProofUsed(NotFound):
    """The link has been used, has expired, or the account has another address by now."""

    code = IdpCodes.LINK_USED


async def queued_verification(
    records: RecordStore, account: Account, language: str
) -> Sequence[Record]:
    """The records that queue a message to the address of an account, if it has one that is not
    confirmed."""
    if account.email is None or account.email_verified_s:
        return ()
    return await MailQueue(records).joining(
        MailSubject.VERIFICATION,
        account=account,
        to=account.email,
        language=language or account.language,
    )


class EmailVerification:
    """Creates and accepts links. Every method raises StorageError and Overloaded."""

    def __init__(self, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    async def ask(self, account: Account, language: str) -> None:
        """Queue another message."""
        await self._records.commit(await queued_verification(self._records, account, language))

    async def create(self, account: Account) -> str | None:
        """The secret of a new link for the address of an account; ``None`` if there is nothing to
        confirm."""
        if account.email is None or account.email_verified_s:
            return None
        secret = self._records.randomness.token_hex(_SECRET_BYTES)
        proof = EmailProof(account.account_id, account.email)
        expires_ms = self._records.now_ms() + PROOF_S * 1000
        record = EMAIL_PROOFS.put(
            secret_key(secret), proof, owner=account.account_id, expires_ms=expires_ms
        )
        await self._records.commit([record])
        return secret

    async def find(self, secret: str) -> Account:
        """The account whose address a link confirms. Raises ProofUsed."""
        _proof, account = await self._found(secret)
        return account.value

    async def confirm(self, secret: str, language: str) -> Account:
        """Record that the address is the person's. Messages are in ``language`` from now on. Raises
        ProofUsed."""

        async def compute() -> Changes[Account]:
            proof, account = await self._found(secret)
            changed = msgspec.structs.replace(
                account.value, email_verified_s=self._records.now_s(), language=language
            )
            records: list[Record] = [
                ACCOUNTS.replace(account, changed),
                EMAIL_PROOFS.drop(proof.key),
            ]
            return Changes(changed, records, [account.unchanged, proof.unchanged])

        account = await self._records.transact(compute)
        self._audit.note(AuditEvent.EMAIL_VERIFIED, account_id=account.account_id)
        return account

    async def _found(self, secret: str) -> tuple[Versioned[EmailProof], Versioned[Account]]:
        proof = await self._records.read(EMAIL_PROOFS, secret_key(secret))
        if proof is None:
            raise ProofUsed
        account = await self._records.read(ACCOUNTS, proof.value.account_id)
        if account is None or account.value.disabled or account.value.email != proof.value.email:
            raise ProofUsed
        return proof, account
