"""Records changes of how people sign in to an account, as a list for its owner.

An event is an entry of its own, written together with the change that it describes. Only the newest
are kept.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from podstead.idp.audit import EventKind, RequestSource
from podstead.idp.mail_queue import MailQueue, MailSubject, notice_facts
from podstead.idp.records import ACCOUNTS, SECURITY_EVENTS, Account, SecurityEvent
from podstead.storage.record_store import RecordStore
from podstead.storage.records import Record

MAX_EVENTS: Final = 100
"""How many events an account keeps; the oldest are removed."""
_MARK_CHARACTERS: Final = 16


async def event_records(
    records: RecordStore,
    account_id: str,
    event: EventKind,
    source: RequestSource,
    *,
    subject: str = "",
) -> Sequence[Record]:
    """The records that add an event, and that queue a message about it to the person; ``subject``
    names its subject."""
    before = await records.of_owner(SECURITY_EVENTS, account_id)
    account = await records.read(ACCOUNTS, account_id)
    surplus = sorted(each.key for each in before)[: max(0, len(before) + 1 - MAX_EVENTS)]
    return [
        first_event_record(account_id, event, source, subject=subject, now_ms=records.now_ms()),
        *(SECURITY_EVENTS.drop(key) for key in surplus),
        *(
            ()
            if account is None
            else await notice_records(records, account.value, event, source, subject=subject)
        ),
    ]


async def notice_records(
    records: RecordStore,
    account: Account,
    event: EventKind,
    source: RequestSource,
    *,
    subject: str = "",
) -> Sequence[Record]:
    """The records that queue a message about an event to the address that the account has now, if
    the person has confirmed it."""
    facts = notice_facts(
        event.value,
        at_ms=records.now_ms(),
        address=source.address,
        user_agent=source.user_agent,
        by=source.by,
        about=subject,
    )
    return await MailQueue(records).to_person(MailSubject.SECURITY_NOTICE, account, facts)


def first_event_record(
    account_id: str, event: EventKind, source: RequestSource, *, subject: str = "", now_ms: int
) -> Record:
    """The record that adds an event to an account that has none yet."""
    noted = SecurityEvent(
        at_s=now_ms // 1000,
        what=event.value,
        subject=subject,
        address=source.address,
        user_agent=source.user_agent,
        by=source.by,
    )
    mark = hashlib.sha256(f"{event.value} {subject}".encode()).hexdigest()[:_MARK_CHARACTERS]
    return SECURITY_EVENTS.put(f"{account_id}.{now_ms:015d}.{mark}", noted, owner=account_id)


async def security_events(records: RecordStore, account_id: str) -> Sequence[SecurityEvent]:
    """The events of an account, the newest first."""
    stored = await records.of_owner(SECURITY_EVENTS, account_id)
    return [each.value for each in sorted(stored, key=lambda each: each.key, reverse=True)]
