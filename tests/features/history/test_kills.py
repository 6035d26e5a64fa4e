"""SIGKILL at every step of what changes the history: each thing is as before or as after, what was
acknowledged is there, and doing it again completes it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from podstead.app.adapters.root import prepared_root
from podstead.app.services import Services
from podstead.config import Settings
from tests.features.history.killed_process import MODULE, Order
from tests.features.history.test_trash import delete, items, put
from tests.support.application import BASE, Owners, Server, new_pods, running, with_two_pods
from tests.support.asgi import Client
from tests.support.clock import FakeClock
from tests.support.postgresql import new_database
from tests.support.processes import clean_environment, run_process
from tests.support.server import run_command
from tests.support.usual_roots import usual_settings

pytestmark = pytest.mark.embedded

FOLDER = "/alice/private/"
LARGE = "y" * 200_000
DAY_S = 24 * 3600
DEADLINE_S = 60


@dataclass(frozen=True)
class Seen:
    """What Alice sees: the documents, the versions of those that have some, and the trash."""

    documents: Mapping[str, str]
    versions: Mapping[str, tuple[str, ...]]
    trash: frozenset[str]

    def is_between(self, one: Seen, other: Seen) -> bool:
        """Whether each document is as in one of the two, and each version and item that is in both,
        and none that is in neither, is there."""
        kept = [(self.trash, one.trash, other.trash)]
        kept += [
            (frozenset(self.versions[name]), frozenset(first), frozenset(other.versions[name]))
            for name, first in one.versions.items()
        ]
        return all(
            first & second <= mine <= first | second for mine, first, second in kept
        ) and all(
            text in (one.documents[name], other.documents[name])
            for name, text in self.documents.items()
        )


BEFORE = Seen(
    {"a": "new", "d": "", "e": "bad", "g": "", "f/b": "", "f/c": "", "h/1": LARGE, "h/2": "two"},
    {"a": ("old", LARGE, "new"), "e": (LARGE, "bad")},
    frozenset({"d", "f/", "g"}),
)
AFTER = {
    "delete": replace(
        BEFORE,
        documents={**BEFORE.documents, "h/1": "", "h/2": ""},
        trash=BEFORE.trash | {"h/"},
    ),
    "restore": replace(
        BEFORE,
        documents={**BEFORE.documents, "f/b": LARGE, "f/c": "c"},
        trash=BEFORE.trash - {"f/"},
    ),
    "remove": replace(BEFORE, trash=BEFORE.trash - {"f/"}),
    "empty": replace(BEFORE, trash=frozenset()),
    "undo": replace(
        BEFORE,
        documents={**BEFORE.documents, "e": LARGE, "g": "good"},
        versions={**BEFORE.versions, "e": (LARGE, "bad", LARGE)},
        trash=BEFORE.trash - {"g"},
    ),
    "sweep": Seen(BEFORE.documents, {"a": ("new",), "e": ("bad",)}, frozenset()),
    "purge": Seen(BEFORE.documents, {"a": ("new",), "e": ("bad",)}, frozenset()),
}
NOTHING, SOME, ALL = "nothing", "some", "all"
KILLS = [
    ("delete", "before a commit", 1, NOTHING),
    ("delete", "after a commit", 1, ALL),
    ("restore", "after large bodies are staged", 1, NOTHING),
    ("restore", "before a commit", 1, NOTHING),
    ("restore", "after a commit", 1, ALL),
    ("remove", "before a commit", 1, NOTHING),
    ("remove", "after a commit", 2, SOME),
    ("remove", "before large bodies are removed", 1, ALL),
    ("remove", "after large bodies are removed", 1, ALL),
    ("empty", "after a commit", 2, SOME),
    ("empty", "before large bodies are removed", 1, ALL),
    ("undo", "after a commit", 1, SOME),
    ("undo", "before a commit", 2, SOME),
    ("undo", "after a commit", 2, ALL),
    ("sweep", "after a commit", 3, SOME),
    ("sweep", "before large bodies are removed", 1, SOME),
    ("sweep", "after large bodies are removed", 1, SOME),
    ("purge", "after a commit", 3, SOME),
]
"""What is done, where it is killed, for the how manieth time, and how much is done by then."""


@pytest.fixture(params=["sqlite", "postgresql"])
def data_root(request: pytest.FixtureRequest, disk_path: Path) -> Iterator[Settings]:
    """A new data root, on each engine."""
    with ExitStack() as stack:
        settings = usual_settings(disk_path / "root")
        if request.param == "postgresql":
            settings = settings.with_values(database=stack.enter_context(new_database()))
        yield settings


async def fill(settings: Settings, clock: FakeClock) -> Owners:
    """What is done, and acknowledged, before."""
    with prepared_root(settings):
        async with running(settings, clock=clock) as application:
            owners = await new_pods(application)
            server = await with_two_pods(application, owners)
            for name, *contents in (
                ("a", "old", LARGE, "new"),
                ("d", "d"),
                ("e", LARGE),
                ("g", "good"),
                ("f/b", LARGE),
                ("f/c", "c"),
                ("h/1", LARGE),
                ("h/2", "two"),
            ):
                for content in contents:
                    await put(server.alice, FOLDER + name, content)
                    clock.advance(1)
            bob = f"acl:agent <{server.bob_web_id}>"
            assert (await server.put_acl(FOLDER, (bob, "+Read +Write"))).status in {201, 204}
            await delete(server.alice, f"{FOLDER}f/", Depth="infinity")
            await delete(server.alice, f"{FOLDER}d")
            clock.advance(1)
            await put(server.bob, f"{FOLDER}e", "bad")
            await delete(server.bob, f"{FOLDER}g")
            clock.advance(1)
            return owners


async def seen(server: Server) -> Seen:
    documents, versions = {}, {}
    for name in BEFORE.documents:
        answer = await server.alice.get(FOLDER + name)
        assert answer.status in {200, 404}
        documents[name] = answer.text if answer.status == 200 else ""
    for name in BEFORE.versions:
        versions[name] = await _versions(server.alice, FOLDER + name)
    found = [each["resource"] for each in await items(server.alice)]
    return Seen(documents, versions, frozenset(each.removeprefix(BASE + FOLDER) for each in found))


async def _versions(client: Client, path: str) -> tuple[str, ...]:
    answer = await client.get(f"/.history/timemap{path}", accept="application/ld+json")
    assert answer.status == 200, answer.text
    found = []
    for each in answer.json()["memento"]:
        memento = await client.get(each["@id"].removeprefix(BASE))
        assert memento.status == 200, memento.text
        found.append(memento.text)
    return tuple(found)


async def restarted(settings: Settings, clock: FakeClock, owners: Owners) -> tuple[Seen, str]:
    """What there is after a restart, and the address of the folder in the trash, if it is there."""
    with prepared_root(settings):
        async with running(settings, clock=clock) as application:
            server = await with_two_pods(application, owners)
            found = await items(server.alice)
            folder = [each["id"] for each in found if each["resource"] == f"{BASE}{FOLDER}f/"]
            return await seen(server), "".join(folder)


def run(order: Order) -> int:
    done = run_process(
        [sys.executable, "-m", MODULE, msgspec.json.encode(order).decode()],
        environment=clean_environment(),
        timeout_s=DEADLINE_S,
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode


def check(settings: Settings) -> None:
    database = [] if settings.database is None else ["--database", settings.database]
    checked = run_command("check", "--root", str(settings.root), *database)
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def stored_bodies(settings: Settings, clock: FakeClock) -> tuple[list[int], list[int]]:
    """The sizes of the large bodies that are stored after a sweep, and of those that are in use or
    kept."""
    services = Services(settings, clock)
    await services.store.open()
    try:
        await services.store.sweep(now_ms=clock.now_ms() + 2 * DAY_S * 1000)
        used = []
        for table in ("resources", "former_states"):
            select = f"SELECT size_bytes FROM {table} WHERE blob IS NOT NULL"
            used += [size for (size,) in await services.store.fetch(select)]
    finally:
        await services.store.close()
    files = [each for each in (settings.root / "blobs").rglob("*") if each.is_file()]
    # PostgreSQL's nodes recognize the folder that they share by a file in it.
    kept = [each.stat().st_size for each in files if each.name != "shared-folder"]
    return sorted(kept), sorted(used)


@pytest.mark.parametrize(
    ("act", "step", "nth", "done"), KILLS, ids=lambda each: str(each).replace(" ", "-")
)
async def test_a_kill_loses_nothing_and_leaves_nothing_half_done(
    data_root: Settings, act: str, step: str, nth: int, done: str
) -> None:
    clock = FakeClock(time_ms=time.time_ns() // 1_000_000)
    owners = await fill(data_root, clock)
    found, folder = await restarted(data_root, clock, owners)
    assert found == BEFORE
    who = f"{BASE}/bob/%23me+"
    method, target = {
        "delete": ("DELETE", f"{FOLDER}h/"),
        "restore": ("POST", folder),
        "remove": ("DELETE", folder),
        "empty": ("DELETE", "/.history/trash/alice/"),
        "undo": ("UNDO", f"pod=alice&who={who}&since=2000-01-01"),
        "sweep": ("sweep", ""),
        "purge": ("purge", f"{BASE}/alice/"),
    }[act]
    tokens = {name: dict(each) for name, each in owners.items()}
    # What is restarted has the time of before, so that it shows what a sweep has yet to remove.
    time_ms = clock.now_ms() + (31 * DAY_S * 1000 if act == "sweep" else 0)
    root, database = str(data_root.root), data_root.database
    order = Order(root, database, time_ms, tokens, method, target, step, nth)
    assert run(order) == -signal.SIGKILL, "the process did not come to the step"
    check(data_root)
    found, _ = await restarted(data_root, clock, owners)
    after = AFTER[act]
    if done == NOTHING:
        assert found == BEFORE
    elif done == ALL:
        assert found == after
    else:
        assert found.is_between(BEFORE, after)
    if done != ALL:
        order.nth = 0
        assert run(order) == 0
        found, _ = await restarted(data_root, clock, owners)
    assert found == after
    kept, used = await stored_bodies(data_root, clock)
    assert kept == used
    check(data_root)
