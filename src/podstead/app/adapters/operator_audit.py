"""How does what the operator does by command get into the log of the server? (A-184)

A command is a process of its own, whose output nobody keeps. So it leaves what is to be noted as
entries of the store, and the server, now or when it next runs, writes them to its log and removes
them. Each is logged by one worker: the one whose removal succeeds.
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

from podstead.core.clock import Clock
from podstead.core.errors import ServerTrouble
from podstead.idp.audit import AuditEvent
from podstead.storage.record_store import RecordStore
from podstead.storage.registry import Records

logger = logging.getLogger("podstead.audit")

LOOK_S: Final = 2
"""How often a worker looks whether a command has left something."""
AGAIN_S: Final = 60
"""How long it waits after trouble."""
KEPT_MS: Final = 90 * 24 * 3600 * 1000
"""How long an act is kept for a server that does not run."""
_PAGE: Final = 100
_MARK_BYTES: Final = 8


class OperatorAct(msgspec.Struct, frozen=True):
    """What an operator did, for the log."""

    at_ms: int
    what: str
    facts: dict[str, str]


OPERATOR_ACTS: Final = Records("operator-act", OperatorAct)


class OperatorAudit:
    """Implements Audit of ``idp.audit`` for a command: gathers, to be kept when the command is
    done."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._login = _login()
        self.acts: list[OperatorAct] = []

    def note(self, event: AuditEvent, *, account_id: str | None = None, **facts: str) -> None:
        """Gather an event, with who gave the command."""
        account = {} if account_id is None else {"account": account_id}
        noted = {**account, **facts, "operator": self._login}
        self.acts.append(OperatorAct(self._clock.now_ms(), event.value, noted))


@asynccontextmanager
async def operator_audit(records: RecordStore) -> AsyncIterator[OperatorAudit]:
    """An audit for one command, whose acts are kept in the end, whatever else went wrong.

    An act that cannot be kept is told on standard error: it is done all the same.
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
    """Write what commands have left to the log, and remove it. Raises StorageError."""
    while kept := await OPERATOR_ACTS.page(records.store, now_ms=records.now_ms(), limit=_PAGE):
        for each in kept:
            if await records.try_commit([OPERATOR_ACTS.drop(each.key)], [each.at]):
                act = each.value
                extra = {**act.facts, "at": _time_text(act.at_ms)}
                logger.info("%s", act.what, extra=extra)


async def log_acts_regularly(records: RecordStore) -> None:
    """For ever, whatever trouble there is. To be run in a task of its own."""
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


def _login() -> str:
    """Who gives the command, as the system knows them; of ``sudo`` who called it."""
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
