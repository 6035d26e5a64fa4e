"""A process that uses a data root and is killed at a named step: ``python -m`` with one argument.

The argument is JSON with the members of :class:`Order`. The process does what it is ordered to, as
a server does, and sends itself SIGKILL when it comes to the step for the nth time. Nothing but its
order runs in it, so it always ends at the same place.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from podstead.app import lifespan
from podstead.app.services import Services
from podstead.cli import main as command
from podstead.config import Settings
from podstead.core.date_times import DAY_MS
from podstead.features.history import retention
from podstead.features.history.retention import Keeper, Retention
from podstead.storage.base_store import BaseStore
from podstead.storage.blobs.staging import BlobLedger, BodyStaging
from podstead.storage.postgresql import PostgresStore
from podstead.storage.records import DropFormerState, Write
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, running, with_two_pods
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token
from tests.support.usual_roots import usual_settings

MODULE: Final = "tests.features.history.killed_process"
Method = Callable[..., Awaitable[Any]]


class Order(msgspec.Struct):
    """What to do on which root, and where to be killed; never, if ``nth`` is 0.

    ``owners`` are those of the pods, with their tokens. ``act`` is a method for the ``target``, or
    ``UNDO``, ``sweep`` or ``purge``.
    """

    root: str
    database: str | None
    time_ms: int
    owners: dict[str, dict[str, str]]
    act: str
    target: str
    step: str
    nth: int


STEPS: Final[dict[str, tuple[tuple[type, str, bool], ...]]] = {
    "before a commit": ((SqliteStore, "commit", False), (PostgresStore, "commit", False)),
    "after a commit": ((SqliteStore, "commit", True), (PostgresStore, "commit", True)),
    "after large bodies are staged": ((BodyStaging, "stage_copies", True),),
    "before large bodies are removed": ((BaseStore, "remove_garbage", False),),
    "after large bodies are removed": ((BlobLedger, "forget", False),),
}
"""The methods of each step, and whether it is after their call."""


def changes_history(write: Write) -> bool:
    """Whether a write is of the kind that is counted: of resources, or of former states. Others are
    of the server, such as those of leases."""
    return bool(
        write.puts
        or write.deletes
        or any(isinstance(record, DropFormerState) for record in write.records)
    )


def be_killed(step: str, nth: int) -> None:
    """Let this process be killed when it comes to the step for the nth time from now on."""
    counts = [nth]
    for owner, name, is_after in STEPS[step]:
        setattr(owner, name, _killing(getattr(owner, name), counts, is_after=is_after))


def _killing(method: Method, counts: list[int], *, is_after: bool) -> Method:
    async def replaced(self: object, *values: Any, **named: Any) -> Any:  # noqa: ANN401
        is_counted = not (values and isinstance(values[0], Write)) or changes_history(values[0])
        counts[0] -= is_counted
        is_last = is_counted and counts[0] == 0
        if is_last and not is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = await method(self, *values, **named)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return replaced


async def _nothing(*_: object) -> None:
    """In place of what a server does in the background."""


async def obey(order: Order) -> None:
    """Do what is ordered. Nothing is in the background, and each write removes one former state."""
    lifespan.Sweeping.sweep = _nothing  # type: ignore[assignment,method-assign]
    retention.BATCH = 1  # type: ignore[misc]
    clock = FakeClock(time_ms=order.time_ms)
    settings = usual_settings(Path(order.root)).with_values(database=order.database)
    if order.act == "sweep":
        await _sweep(order, settings, clock)
        return
    async with running(settings, clock=clock) as application:
        server = await with_two_pods(application, order.owners)
        if order.act == "UNDO":
            browser = await sign_in_by_token(server, server.alice)
            page = await browser.get(f"/.pages/undo?{order.target}")
            _arm(order)
            await browser.send(page, "/.pages/undo/changes")
            return
        _arm(order)
        headers = {"Depth": "infinity"} if order.target.endswith("/") else {}
        target = order.target.removeprefix(BASE)
        answer = await server.alice.request(order.act, target, headers=headers)
        assert answer.status < 300, answer.text


async def _sweep(order: Order, settings: Settings, clock: FakeClock) -> None:
    services = Services(settings, clock)
    await services.store.open()
    try:
        days = Retention(30 * DAY_MS, 30 * DAY_MS)
        keeper = Keeper(services.records, services.capacity.quotas, days)
        _arm(order)
        await keeper.sweep()
    finally:
        await services.store.close()


def _arm(order: Order) -> None:
    if order.nth:
        be_killed(order.step, order.nth)


def main(sent: str) -> None:
    """Obey an order, or run ``podstead purge``."""
    order = msgspec.json.decode(sent, type=Order)
    if order.act != "purge":
        asyncio.run(obey(order))
        return
    retention.BATCH = 1  # type: ignore[misc]
    _arm(order)
    database = [] if order.database is None else ["--database", order.database]
    sys.argv[1:] = ["purge", order.target, "--root", order.root, *database]
    command()


if __name__ == "__main__":
    main(sys.argv[1])
