"""The change log for people: who may see what of it, and how much of it is read."""

from __future__ import annotations

import pytest

from podstead.core.errors import AccessDenied, NotAuthenticated
from podstead.core.identifiers import ResourcePath
from podstead.resources.activity import (
    STEP_ROWS,
    ActivityStore,
    ChangeFilter,
    ChangeKind,
    PodActivity,
)
from podstead.storage.records import Change, ChangeType, LoggedChange, Version
from tests.support.wac_world import BOB, OWNER, World, identity, path, pod, rule

POD = path("/pod/")


class LoggedWorld(World):
    """A world with a change log; rows before ``forgotten`` have left it."""

    def __init__(self, world: World) -> None:
        self.__dict__.update(world.__dict__)
        self.rows: list[LoggedChange] = []
        self.steps = 0

    def log(
        self,
        name: str,
        activity: ChangeType = ChangeType.UPDATE,
        *,
        agent: str | None = OWNER,
        version: str = "",
    ) -> None:
        sequence = len(self.rows) + 1
        self.rows.append(
            LoggedChange(
                sequence,
                Change(path(name), activity, agent),
                Version(version or str(sequence)),
                at_ms=sequence * 1000,
            )
        )

    async def newest_sequence(self) -> int:
        return len(self.rows)

    async def changes_after(self, sequence: int, *, limit: int) -> list[LoggedChange]:
        return self.rows[sequence : sequence + limit]

    async def changes_before(
        self, sequence: int, *, first: int, below: ResourcePath, limit: int
    ) -> list[LoggedChange]:
        self.steps += 1
        wanted = [
            row
            for row in reversed(self.rows)
            if first <= row.sequence < sequence and row.change.path.startswith(below)
        ]
        return wanted[:limit]


@pytest.fixture
def world() -> LoggedWorld:
    logged = LoggedWorld(pod())
    owner = f"acl:agent <{OWNER}>"
    logged.acl("/pod/", rule(owner, "RWC", "./", default=True))
    return logged


def activity(world: LoggedWorld, **options: int) -> PodActivity:
    store: ActivityStore = world
    return PodActivity(store=store, gate=world.gate, **options)


async def names(world: LoggedWorld, agent: str | None, wanted: ChangeFilter) -> list[str]:
    who = None if agent is None else identity(agent)
    page = await activity(world).page(who, wanted, limit=100)
    return [each.path for each in page.changes]


async def test_control_of_the_storage_is_needed(world: LoggedWorld) -> None:
    world.acl("/pod/", rule(f"acl:agent <{BOB}>", "RW", "./", default=True))
    with pytest.raises(AccessDenied):
        await names(world, BOB, ChangeFilter(below=POD))
    with pytest.raises(NotAuthenticated):
        await names(world, None, ChangeFilter(below=path("/pod/deep/er/")))


async def test_what_others_keep_for_themselves_is_not_shown(world: LoggedWorld) -> None:
    # Control of the storage does not mean Read or Control everywhere below it.
    world.acl("/pod/", rule(f"acl:agent <{BOB}>", "RC", "./", default=True))
    world.store("/pod/open")
    world.store("/pod/closed")
    world.acl("/pod/closed", rule(f"acl:agent <{OWNER}>", "RW", "closed"))
    world.store("/pod/readable")
    world.acl("/pod/readable", rule(f"acl:agent <{BOB}>", "R", "readable"))
    for name in ("/pod/open", "/pod/closed", "/pod/readable", "/pod/readable.acl"):
        world.log(name)
    assert await names(world, BOB, ChangeFilter(below=POD)) == ["/pod/readable", "/pod/open"]
    assert len(await names(world, OWNER, ChangeFilter(below=POD))) == 4


async def test_rules_that_go_with_their_resource_are_no_change_of_their_own(
    world: LoggedWorld,
) -> None:
    world.log("/pod/a", ChangeType.DELETE, version="v")
    world.log("/pod/a.acl", ChangeType.DELETE, version="v")
    world.log("/pod/a.meta", ChangeType.DELETE, version="v")
    world.log("/pod/b.acl", ChangeType.CREATE)
    world.log("/pod/c", ChangeType.UNCHANGED)
    page = await activity(world).page(identity(OWNER), ChangeFilter(below=POD), limit=10)
    found = [(each.path, each.kind) for each in page.changes]
    assert found == [("/pod/b", ChangeKind.ACCESS), ("/pod/a", ChangeKind.DELETED)]


async def test_parts_follow_each_other_without_gap_or_repetition(world: LoggedWorld) -> None:
    for number in range(25):
        world.log(f"/pod/{number}")
        world.log(f"/other/{number}")
    found: list[str] = []
    before = None
    for _ in range(10):
        page = await activity(world).page(
            identity(OWNER), ChangeFilter(below=POD), before=before, limit=4
        )
        assert len(page.changes) <= 4
        found += [each.path for each in page.changes]
        before = page.before
        if before is None:
            break
    assert found == [f"/pod/{number}" for number in range(24, -1, -1)]


async def test_one_page_examines_a_bounded_part_of_the_log(world: LoggedWorld) -> None:
    world.log("/pod/old")
    for number in range(3 * STEP_ROWS):
        world.log(f"/other/{number}")
    bounded = activity(world, max_rows=2 * STEP_ROWS)
    page = await bounded.page(identity(OWNER), ChangeFilter(below=POD), limit=10)
    assert page.changes == []
    assert page.before is not None
    assert world.steps == 2
    page = await bounded.page(
        identity(OWNER), ChangeFilter(below=POD), before=page.before, limit=10
    )
    assert [each.path for each in page.changes] == ["/pod/old"]
    assert page.before is None


async def test_times_bound_what_is_read(world: LoggedWorld) -> None:
    for number in range(1, 11):
        world.log(f"/pod/{number}")
    wanted = ChangeFilter(below=POD, since_ms=3_000, until_ms=6_000)
    assert await names(world, OWNER, wanted) == ["/pod/5", "/pod/4", "/pod/3"]


async def test_what_is_moved_is_one_change_with_everything_in_it(world: LoggedWorld) -> None:
    """However many rows it has: also if they are read in several steps."""
    world.store("/pod/y/")
    many = STEP_ROWS
    world.log("/pod/before")
    for name in ("", *(f"a{number}" for number in range(many))):
        world.log(f"/pod/y/{name}", ChangeType.CREATE, version="move")
    for name in (*(f"a{number}" for number in range(many)), ""):
        world.log(f"/pod/x/{name}", ChangeType.DELETE, version="move")
    world.log("/pod/x/.acl", ChangeType.DELETE, version="move")
    world.log("/pod/after")
    log = activity(world)
    found = await log.page(identity(OWNER), ChangeFilter(POD), limit=50)
    shown = [(each.path, each.kind, each.origin) for each in found.changes]
    assert shown == [
        ("/pod/after", ChangeKind.CHANGED, None),
        ("/pod/y/", ChangeKind.MOVED, "/pod/x/"),
        ("/pod/before", ChangeKind.CHANGED, None),
    ]
    first = await log.page(identity(OWNER), ChangeFilter(POD), limit=2)
    assert [each.kind for each in first.changes] == [ChangeKind.CHANGED, ChangeKind.MOVED]
    rest = await log.page(identity(OWNER), ChangeFilter(POD), before=first.before, limit=2)
    assert [each.path for each in rest.changes] == ["/pod/before"]
