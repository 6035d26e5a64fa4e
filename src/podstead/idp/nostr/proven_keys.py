"""Remembers which key a browser has proven to hold, so that an account can be created with it
(A-131).

Signing in with a key that no account has does not create an account; the person is offered to
create one. Meanwhile the server remembers for their browser that they hold the key, and the account
is created with the key.
"""

from __future__ import annotations

from typing import Final

from podstead.core.errors import Conflict
from podstead.idp.account_creation import FurtherRecords
from podstead.idp.audit import Audit, AuditEvent, RequestSource
from podstead.idp.nostr.events import KeyProof
from podstead.idp.records import NOSTR_LINKS, PROVEN_KEYS, Account, NostrLink, ProvenKey
from podstead.idp.security_events import first_event_record
from podstead.nostr.npub import npub
from podstead.storage.record_store import RecordStore, Versioned, secret_key

PROVEN_S: Final = 30 * 60
"""How long a person may take to fill in the form."""


class ProofGone(Conflict):
    """The browser has not proven to hold the key, the proof has expired, or the key was linked
    meanwhile."""

    def __init__(self) -> None:
        super().__init__(
            "Your Nostr key was not linked: it was too long ago that you signed in with it, or it "
            "has an account by now"
        )


class ProvenKeys:
    """Stores proven keys by the secrets of browsers."""

    def __init__(self, *, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    async def keep(self, proof: KeyProof, *, browser: str) -> None:
        """Record that the browser has proven to hold a key."""
        now_ms = self._records.now_ms()
        record = PROVEN_KEYS.put(
            secret_key(browser),
            ProvenKey(proof.public_key),
            expires_ms=now_ms + PROVEN_S * 1000,
        )
        await self._records.commit([record])

    async def of(self, browser: str) -> Versioned[ProvenKey] | None:
        """The key that a browser has most recently proven to hold."""
        key = secret_key(browser)
        return await self._records.read(PROVEN_KEYS, key)

    def joined(
        self, proven: Versioned[ProvenKey], source: RequestSource, account: Account
    ) -> FurtherRecords:
        """The records that link the key in the write that creates the account."""
        public_key, owner = proven.value.public_key, account.account_id
        link = NostrLink(public_key, owner, created_s=account.created_s)
        return FurtherRecords(
            records=(
                NOSTR_LINKS.put(public_key, link, owner=owner),
                PROVEN_KEYS.drop(proven.key),
                first_event_record(
                    owner,
                    AuditEvent.NOSTR_KEY_LINKED,
                    source,
                    subject=npub(public_key),
                    now_ms=self._records.now_ms(),
                ),
            ),
            preconditions=(NOSTR_LINKS.absent(public_key), proven.unchanged),
            refusal=ProofGone(),
        )

    def linked(self, proven: Versioned[ProvenKey], account: Account) -> None:
        """Note in the audit log that the key is linked to the account."""
        self._audit.note(
            AuditEvent.NOSTR_KEY_LINKED, account_id=account.account_id, key=proven.value.public_key
        )
