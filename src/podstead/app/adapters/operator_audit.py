"""How are the operator's commands recorded in the log of the server? (A-184)

A command is a separate process whose output nobody keeps. So it stores its events as records, and
the server moves them to its log and to the log that operators read in the console, now or when it
next runs. Each is moved by one worker: the one whose removal succeeds.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import msgspec

from podstead.app.adapters.account_names import facts_of
from podstead.core.clock import Clock
from podstead.core.errors import ServerTrouble
from podstead.idp.administration.audit_log import AuditLog, CausedBy, LoggedEvent
from podstead.idp.audit import AuditEvent
from podstead.storage.record_store import RecordKind, RecordStore

logger = logging.getLogger("podstead.audit")

LOOK_S: Final = 2
"""How often a worker looks for events of commands."""
AGAIN_S: Final = 60
"""How long a worker waits after an error."""
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

    def note(self, event: AuditEvent, *, account_id: str | None = None, **facts: str) -> None:
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
        except ServerTrouble:
            for act in audit.acts:
                logger.warning("Not kept for the server's log: %s", _line(act))


async def log_acts(records: RecordStore) -> None:
    """Move the events of commands to the logs. Raises StorageError."""
    log = AuditLog(records)
    while stored := await OPERATOR_ACTS.page(records.store, now_ms=records.now_ms(), limit=_PAGE):
        for each in stored:
            act = each.value
            logged = log.logging(CausedBy.OPERATOR, _logged(act))
            if await records.try_commit([OPERATOR_ACTS.drop(each.key), logged], [each.unchanged]):
                extra = {**act.facts, "at": _time_text(act.at_ms)}
                logger.info("%s", act.what, extra=extra)


async def log_acts_regularly(records: RecordStore) -> None:
    """Runs forever, also after errors; to be run in its own task."""
    seen: int | None = None
    while True:
        wait_s = LOOK_S
        try:
            mark = records.store.data_version()
            if mark is None or mark != seen:
                await log_acts(records)
                seen = mark
        except ServerTrouble:
            logger.exception("What the operator did could not be logged; it is tried again")
            wait_s = AGAIN_S
        await asyncio.sleep(wait_s)


def _logged(act: OperatorAct) -> LoggedEvent:
    facts = dict(act.facts)
    account, operator = facts.pop("account", ""), facts.pop("operator", "")
    facts.pop("account_name", "")  # of the account, which the page reads
    return LoggedEvent(act.at_ms, act.what, account, f"{operator} (command)", facts=facts)


def _login() -> str:
    """The login name of whoever runs the command; with ``sudo``, of the user who called it."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _line(act: OperatorAct) -> str:
    facts = " ".join(f"{name}={value}" for name, value in act.facts.items())
    return f"{act.what} ({facts})"


def _time_text(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
