"""Queues messages to people in the database until they are sent.

An entry states the subject of a message. The text and the secrets in its links are created when it
is sent, and only hashes of the secrets are stored. A message is queued in the write that is the
reason for it, and survives a restart.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from podstead.core.errors import ServerTrouble
from podstead.idp.audit import RequestSource
from podstead.idp.records import Account
from podstead.storage.protocol import EntryCounts
from podstead.storage.record_store import Lease, RecordKind, RecordStore, Versioned
from podstead.storage.records import Record

MAX_WAITING: Final = 10_000
"""How many messages of each kind wait at most; in an outage, further ones are not queued."""
MAX_WAITING_FOR_ACCOUNT: Final = 20
KEPT_MS: Final = 2 * 24 * 3600 * 1000
"""How long a message waits at most; after that it would only confuse."""
RESET_KEPT_MS: Final = 4 * 3600 * 1000
"""The same for a link for a new password."""
RETRY_S: Final = (60, 300, 900, 1800, 3600, 7200, 14400)
"""How long to wait after each failure; the last of these from then on."""
LEASE_MS: Final = 120_000
"""How long the lease of a dead worker keeps others from sending."""
_MARK_BYTES: Final = 8


class MailSubject(Enum):
    """What a message is about; the values are stored."""

    VERIFICATION = "verification"
    """An address is to be confirmed by the reader of its mail."""
    PASSWORD_RESET = "password-reset"  # noqa: S105 - what a message is about
    SECURITY_NOTICE = "security-notice"
    """How people sign in to the account has changed."""
    NEW_BROWSER = "new-browser"
    """A browser signed in to the account that had not done so before."""
    ACCESS_REQUEST = "access-request"
    """Somebody asks the owner of a pod for access."""
    INVITATION = "invitation"
    """Somebody without an account is invited; the fact ``invitation`` is its id."""
    NOTICES = "notices"
    """What a person was told: the ``lines`` in the person's language, how many ``more`` there are,
    the ``link`` to all, and that to the ``choice`` of messages."""


class MailJob(msgspec.Struct, frozen=True):
    """A message that waits. ``login`` is the text typed in a request for a new password. The
    account is looked up only when the message is sent, so that the request does not reveal whether
    it exists."""

    subject: str
    queued_ms: int
    language: str
    account_id: str = ""
    to: str = ""
    login: str = ""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    attempts: int = 0
    error: str = ""
    """Why it could not be sent the last time, and when that was."""
    failed_ms: int = 0


@dataclass(frozen=True, slots=True)
class Backlog:
    """The messages that wait: how many, how many of them have failed at least once, when the oldest
    was queued, and the last error."""

    waiting: int
    failing: int
    oldest_ms: int | None
    error: str


_JOBS: Final = {subject: RecordKind(f"mail-{subject.value}", MailJob) for subject in MailSubject}


class MailQueue:
    """Adds messages, and hands them to the sender. Every method raises StorageError."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self.lease = Lease("mail", records, lasts_ms=LEASE_MS)
        """The lease of the worker that sends."""

    async def joining(
        self,
        subject: MailSubject,
        *,
        account: Account | None = None,
        to: str = "",
        login: str = "",
        language: str = "",
        facts: Mapping[str, str] | None = None,
    ) -> Sequence[Record]:
        """The records that add a message to the queue; none if too many wait."""
        kind, now_ms = _JOBS[subject], self._records.now_ms()
        if await kind.count(self._records.store, at_most=MAX_WAITING) >= MAX_WAITING:
            return ()
        owner = None if account is None else account.account_id
        if owner is not None:
            waiting = await self._records.of_owner(kind, owner, limit=MAX_WAITING_FOR_ACCOUNT)
            if len(waiting) >= MAX_WAITING_FOR_ACCOUNT:
                return ()
        job = MailJob(
            subject=subject.value,
            queued_ms=now_ms,
            language=language,
            account_id=owner or "",
            to=to,
            login=login,
            facts=dict(facts or {}),
        )
        kept_ms = RESET_KEPT_MS if subject is MailSubject.PASSWORD_RESET else KEPT_MS
        mark = self._records.randomness.token_hex(_MARK_BYTES)
        record = kind.put(_key(now_ms, mark), job, owner=owner, expires_ms=now_ms + kept_ms)
        return (record,)

    async def to_person(
        self, subject: MailSubject, account: Account, facts: Mapping[str, str]
    ) -> Sequence[Record]:
        """The records that add a message to the address that a person has confirmed, in their
        language; none without one, or if too many wait."""
        if account.confirmed_email is None:
            return ()
        return await self.joining(
            subject,
            account=account,
            to=account.confirmed_email,
            language=account.language,
            facts=facts,
        )

    async def new_browser(self, account: Account, source: RequestSource) -> None:
        """Queue a message about a sign-in by a browser that had not signed in before. If that
        fails, the person is signed in all the same."""
        facts = notice_facts(
            "", at_ms=self._records.now_ms(), address=source.address, user_agent=source.user_agent
        )
        with contextlib.suppress(ServerTrouble):
            queued = await self.to_person(MailSubject.NEW_BROWSER, account, facts)
            await self._records.try_commit(queued)

    async def due(self, *, limit: int) -> Sequence[Versioned[MailJob]]:
        """Messages to send now, the oldest first."""
        now_ms = self._records.now_ms()
        found: list[Versioned[MailJob]] = []
        for kind in _JOBS.values():
            page = await kind.page(self._records.store, now_ms=now_ms, limit=limit)
            found += [each for each in page if due_ms(each) <= now_ms]
        return sorted(found, key=lambda each: each.key)[:limit]

    async def next_ms(self) -> int | None:
        """When the next message is due; ``None`` if none waits."""
        now_ms = self._records.now_ms()
        first: list[Versioned[MailJob]] = []
        for kind in _JOBS.values():
            first += await kind.page(self._records.store, now_ms=now_ms, limit=1)
        return min(map(due_ms, first), default=None)

    async def waiting(self) -> int:
        """How many messages wait."""
        return await waiting_messages(self._records.store)

    async def backlog(self) -> Backlog:
        """What waits, and what has failed among up to a thousand messages of each kind."""
        now_ms, jobs = self._records.now_ms(), list[MailJob]()
        for kind in _JOBS.values():
            page = await kind.page(self._records.store, now_ms=now_ms, limit=1000)
            jobs += [each.value for each in page]
        failed = [each for each in jobs if each.attempts]
        last = max(failed, key=lambda each: each.failed_ms, default=None)
        return Backlog(
            waiting=await self.waiting(),
            failing=len(failed),
            oldest_ms=min((each.queued_ms for each in jobs), default=None),
            error="" if last is None else last.error,
        )

    async def done(self, stored: Versioned[MailJob]) -> None:
        """Remove a message that was sent, or never will be."""
        await self._records.commit([_JOBS[MailSubject(stored.value.subject)].drop(stored.key)])

    async def later(self, stored: Versioned[MailJob], error: str = "") -> None:
        """Postpone a message after a failure; ``error`` says why, in English."""
        kind, job = _JOBS[MailSubject(stored.value.subject)], stored.value
        wait_s = RETRY_S[min(job.attempts, len(RETRY_S) - 1)]
        key = _key(self._records.now_ms() + wait_s * 1000, job_id(stored))
        again = msgspec.structs.replace(
            job, attempts=job.attempts + 1, error=error, failed_ms=self._records.now_ms()
        )
        moved = kind.put(key, again, owner=stored.owner, expires_ms=stored.expires_ms)
        # If the account was deleted meanwhile, so was the message.
        await self._records.try_commit([kind.drop(stored.key), moved], [stored.unchanged])


async def waiting_messages(store: EntryCounts) -> int:
    """How many messages wait."""
    return sum([await kind.count(store, at_most=MAX_WAITING) for kind in _JOBS.values()])


def due_ms(stored: Versioned[MailJob]) -> int:
    """When a message is to be sent: the beginning of its key."""
    return int(stored.key.partition(".")[0])


def job_id(stored: Versioned[MailJob]) -> str:
    """The ID of a message while it waits."""
    return stored.key.partition(".")[2]


def _key(at_ms: int, mark: str) -> str:
    return f"{at_ms:015d}.{mark}"


def notice_facts(
    what: str, *, at_ms: int, address: str = "", user_agent: str = "", by: str = "", about: str = ""
) -> Mapping[str, str]:
    """The facts about an event that a notice states."""
    facts = {
        "what": what,
        "at": str(at_ms),
        "address": address,
        "browser": user_agent,
        "by": by,
        "about": about,
    }
    return {name: text for name, text in facts.items() if text}
