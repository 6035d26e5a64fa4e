"""A log of what has happened on this server, which operators read in the console.

It is bounded in age, and in number for each of three kinds of events, so that what strangers cause
does not displace what operators did. What is done in the console is logged in the write that does
it. Everything else is logged within seconds (``app/adapters/audit.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from podstead.idp.administration.acting import Operator, acting_as
from podstead.idp.audit import Audit, AuditEvent
from podstead.storage.record_store import RecordKind, RecordStore, Versioned
from podstead.storage.records import Record

KEPT_MS: Final = 90 * 24 * 3600 * 1000
"""How long an event is kept."""
MAX_EVENTS: Final = 10_000
"""How many events of each kind are kept."""
_PAGE: Final = 1000
_LAST_MS: Final = 10**15
_MARK_BYTES: Final = 8


class CausedBy(Enum):
    """Who caused an event. The values are part of the names of the records."""

    OPERATOR = "operator"
    PERSON = "person"
    """Somebody with an account: sign-ins, and changes of their own account."""
    REFUSED = "refused"
    """Anyone: what was refused, and signs of an attack."""


class LoggedEvent(msgspec.Struct, frozen=True):
    """One event. ``account`` is the id of the account that it is about, ``operator`` the name of
    the operator who caused it; each may be empty."""

    at_ms: int
    what: str
    account: str = ""
    operator: str = ""
    address: str = ""
    facts: dict[str, str] = msgspec.field(default_factory=dict)


_KINDS: Final = {cause: RecordKind(f"audit-{cause.value}", LoggedEvent) for cause in CausedBy}
_REFUSED: Final = frozenset(
    {
        AuditEvent.SIGN_IN_FAILED,
        AuditEvent.SIGN_IN_PAUSED,
        AuditEvent.CODE_REUSED,
        AuditEvent.REFRESH_TOKEN_REUSED,
        AuditEvent.PASSKEY_COPIED,
        AuditEvent.FETCH_BLOCKED,
        AuditEvent.INVITATION_REFUSED,
    }
)


def cause_of(event: AuditEvent) -> CausedBy:
    """Who causes an event, unless an operator does."""
    return CausedBy.REFUSED if event in _REFUSED else CausedBy.PERSON


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Adds events to the log, and reads it."""

    records: RecordStore

    def logging(self, cause: CausedBy, event: LoggedEvent) -> Record:
        """The record that adds an event."""
        # The newest come first, so that they are read without reading the others.
        mark = self.records.randomness.token_hex(_MARK_BYTES)
        key = f"{_LAST_MS - event.at_ms:015d}.{mark}"
        return _KINDS[cause].put(key, event, expires_ms=event.at_ms + KEPT_MS)

    def action(
        self, event: AuditEvent, by: Operator | None, *, account: str = "", **facts: str
    ) -> Sequence[Record]:
        """The records that log an action of an operator in the console. A command logs its actions
        itself (``app/adapters/audit.py``): without an operator there are none."""
        if by is None:
            return ()
        logged = LoggedEvent(
            at_ms=self.records.now_ms(),
            what=event.value,
            account=account,
            operator=by.name,
            address=by.source.address,
            facts=facts,
        )
        return (self.logging(CausedBy.OPERATOR, logged),)

    async def newest(
        self, cause: CausedBy, *, after: str = "", limit: int
    ) -> Sequence[Versioned[LoggedEvent]]:
        """Events, the newest first, that are older than the one with the key ``after``. Raises
        StorageError."""
        return await _KINDS[cause].page(
            self.records.store, after=after, now_ms=self.records.now_ms(), limit=limit
        )

    async def trim(self) -> None:
        """Remove the oldest events of each kind that has too many. Raises StorageError,
        Overloaded."""
        for cause, kind in _KINDS.items():
            if await kind.count(self.records.store, at_most=MAX_EVENTS + 1) <= MAX_EVENTS:
                continue
            after = ""
            for _ in range(MAX_EVENTS // _PAGE):
                page = await self.newest(cause, after=after, limit=_PAGE)
                after = page[-1].key if page else after
            while surplus := await self.newest(cause, after=after, limit=_PAGE):
                await self.records.commit([kind.drop(each.key) for each in surplus])


class Actions:
    """A service for operators. What they do in the console is logged in the write that does it, and
    noted by the audit when it is done."""

    def __init__(self, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit
        self._log = AuditLog(records)

    def _note(
        self, event: AuditEvent, by: Operator | None, account_id: str | None = None, **facts: str
    ) -> None:
        with acting_as(by):
            self._audit.note(event, account_id=account_id, **facts)
