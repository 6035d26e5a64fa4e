"""Writes the events of accounts, keys and access rules to the log ``podstead.audit`` (A-184), and
stores those of accounts and keys in the log that operators read in the console.

A line is written where nothing can be awaited, so the names of accounts in it are those that this
process has read: before anything happens to an account, it is read. For the same reason, a task
stores the events of a worker within a second, several in one write; a worker that is killed loses
those of that second. What operators do in the console is part of the write that does it, and is not
stored here again.

A command is a separate process whose output nobody keeps. So it stores its events as records, and
the server moves them to both logs, now or when it next runs. Each is moved by one worker: the one
whose removal succeeds.
"""

import getpass
import logging
import os
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Final

import msgspec

from podstead.core import background, caches, date_times, errors, identifiers, identity
from podstead.core.clock import Clock
from podstead.core.request_context import requester_address
from podstead.idp.administration import audit_log
from podstead.idp.audit import EventKind
from podstead.idp.records import ACCOUNTS, Account
from podstead.storage.record_store import RecordKind, RecordStore, Value, Versioned

logger = logging.getLogger("podstead.audit")

_MAX_NAMES: Final = 10_000
_names: Final[caches.BoundedCache[str, str]] = caches.BoundedCache(_MAX_NAMES)


class NamingRecordStore(RecordStore):
    """A record store that remembers the names of the accounts that it reads."""

    async def read(self, kind: RecordKind[Value], key: str) -> Versioned[Value] | None:
        found = await super().read(kind, key)
        if kind is ACCOUNTS and found is not None and isinstance(found.value, Account):
            _names.put(key, found.value.pod)
        return found


def facts_of(account_id: str | None) -> dict[str, str]:
    """What a line of the log says of an account: its id, and its name if that is known."""
    if account_id is None:
        return {}
    name = _names.get(account_id)
    named = {} if name is None else {"account_name": name}
    return {"account": account_id, **named}


class LogAudit:
    """Implements Audit of ``idp.audit``, and counts the events of this process."""

    counts: ClassVar[Counter[EventKind]] = Counter()

    def note(self, event: EventKind, *, account_id: str | None = None, **facts: str) -> None:
        """Log an event, with the id and name of its account, if any, and the address of the client
        whose request caused it."""
        self.counts[event] += 1
        level = (
            logging.WARNING
            if audit_log.cause_of(event) is audit_log.CausedBy.REFUSED
            else logging.INFO
        )
        address = requester_address()
        known = facts_of(account_id) | ({} if address is None else {"client_address": address})
        logger.log(level, "%s", event.value, extra={**known, **facts})


STORED: Final = "access rules stored"
DELETED: Final = "access rules deleted"
MAX_NAMED: Final = 20
"""How many ACLs of one write are named; the move of a tree may contain thousands."""


class AclAudit:
    """Implements AclListener of ``resources.committer``."""

    def __call__(
        self,
        agent: identity.Identity | None,
        *,
        stored: Sequence[identifiers.ResourcePath],
        deleted: Sequence[identifiers.ResourcePath],
    ) -> None:
        """Log the changes, a line for each ACL, with whoever made them."""
        known = {
            "client_address": requester_address(),
            "agent": None if agent is None else agent.iri,
        }
        facts = {name: value for name, value in known.items() if value is not None}
        for what, paths in ((STORED, stored), (DELETED, deleted)):
            if len(paths) > MAX_NAMED:
                facts["acls"] = str(len(paths))
            for path in paths[:MAX_NAMED]:
                logger.info("%s", what, extra={**facts, "acl": path})


LOOK_S: Final = 2
"""How often a worker looks for events of commands."""
KEPT_MS: Final = 90 * 24 * 3600 * 1000
"""How long an event is kept if no server runs."""
_PAGE: Final = 100
_MARK_BYTES: Final = 8


class OperatorAct(msgspec.Struct, frozen=True):
    """What an operator did."""

    at_ms: int
    what: str
    facts: dict[str, str]


OPERATOR_ACTS: Final = RecordKind("operator-act", OperatorAct)


class OperatorAudit:
    """Implements Audit of ``idp.audit`` for a command: collects events, which are stored at its
    end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._login = _login()
        self.acts: list[OperatorAct] = []

    def note(self, event: EventKind, *, account_id: str | None = None, **facts: str) -> None:
        """Collect an event, with the operator's login name."""
        noted = {**facts_of(account_id), **facts, "operator": self._login}
        self.acts.append(OperatorAct(self._clock.now_ms(), event.value, noted))


@asynccontextmanager
async def operator_audit(records: RecordStore) -> AsyncIterator[OperatorAudit]:
    """The audit of one command. Its events are stored at the end, even if the command fails.

    An event that cannot be stored is printed on standard error, because the command has taken
    effect.
    """
    audit = OperatorAudit(records.clock)
    try:
        yield audit
    finally:
        puts = [
            OPERATOR_ACTS.put(
                f"{act.at_ms:015d}.{records.randomness.token_hex(_MARK_BYTES)}",
                act,
                expires_ms=act.at_ms + KEPT_MS,
            )
            for act in audit.acts
        ]
        try:
            await records.commit(puts)
        except errors.ServerTrouble:
            for act in audit.acts:
                logger.warning("Not kept for the server's log: %s", _line(act))


async def log_acts(records: RecordStore) -> None:
    """Move the events of commands to the logs. Raises StorageError."""
    log = audit_log.AuditLog(records)
    while stored := await OPERATOR_ACTS.page(records.store, now_ms=records.now_ms(), limit=_PAGE):
        for each in stored:
            act = each.value
            logged = log.logging(audit_log.CausedBy.OPERATOR, _logged(act))
            if await records.try_commit([OPERATOR_ACTS.drop(each.key), logged], [each.unchanged]):
                extra = {**act.facts, "at": date_times.write_time(act.at_ms)}
                logger.info("%s", act.what, extra=extra)


def logging_acts(records: RecordStore) -> background.Background:
    """What moves the events of commands regularly."""
    seen: int | None = None

    async def log_new() -> None:
        nonlocal seen
        mark = records.store.data_version()
        if mark is None or mark != seen:
            await log_acts(records)
            seen = mark

    failed = "What the operator did could not be logged"
    return background.Background(log_new, logger, failed, every_s=LOOK_S)


def _logged(act: OperatorAct) -> audit_log.LoggedEvent:
    facts = dict(act.facts)
    account, operator = facts.pop("account", ""), facts.pop("operator", "")
    facts.pop("account_name", "")  # of the account, which the page reads
    return audit_log.LoggedEvent(act.at_ms, act.what, account, f"{operator} (command)", facts=facts)


def _login() -> str:
    """The login name of whoever runs the command; with ``sudo``, of the user who called it."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _line(act: OperatorAct) -> str:
    facts = " ".join(f"{name}={value}" for name, value in act.facts.items())
    return f"{act.what} ({facts})"


MAX_WAITING: Final = 1000
"""How many events wait at most; in a flood, the oldest are left out, and are only in the log of the
process."""
_BATCH: Final = 200
_TRIM_AFTER: Final = 500


class StoredAudit(LogAudit):
    """Logs events as :class:`LogAudit` does, and stores them."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._log = audit_log.AuditLog(records)
        self._waiting: deque[tuple[audit_log.CausedBy, audit_log.LoggedEvent]] = deque(
            maxlen=MAX_WAITING
        )
        self._stored = _TRIM_AFTER

    def note(self, event: EventKind, *, account_id: str | None = None, **facts: str) -> None:
        """Log an event, with the operator whose action it is, and have it stored."""
        operator = audit_log.acting_operator()
        if operator is not None:
            super().note(event, account_id=account_id, operator=operator.name, **facts)
            return
        super().note(event, account_id=account_id, **facts)
        logged = audit_log.LoggedEvent(
            at_ms=self._records.now_ms(),
            what=event.value,
            account=account_id or "",
            address=requester_address() or "",
            facts=facts,
        )
        self._waiting.append((audit_log.cause_of(event), logged))

    async def store(self) -> None:
        """Store what waits. Raises StorageError, Overloaded."""
        while self._waiting:
            batch = [self._waiting[index] for index in range(min(_BATCH, len(self._waiting)))]
            await self._records.commit(self._log.logging(*each) for each in batch)
            for each in batch:
                # In a flood, the oldest may have been left out during the write.
                if self._waiting and self._waiting[0] is each:
                    self._waiting.popleft()
            self._stored += len(batch)
        if self._stored >= _TRIM_AFTER:
            await self._log.trim()
            self._stored = 0
