"""How far reading reaches, and who changed what: told only to those who may know."""

from __future__ import annotations

import pytest

from podstead.core.identity import Identity
from podstead.resources.activity import ChangeAuthors, MemberReach
from podstead.storage.records import Change, ChangeType, LoggedChange, Metadata
from podstead.wac.decision import Reach
from tests.support.wac_world import BOB, CAROL, OWNER, World, identity, path, pod, rule

AUTHENTICATED = "acl:agentClass acl:AuthenticatedAgent"
PUBLIC = "acl:agentClass foaf:Agent"
GROUP = "acl:agentGroup <http://localhost:3000/pod/friends#us>"


async def reaches(world: World, agent: Identity | None, *names: str) -> list[Reach | None]:
    members = [world.resources[path(name)][0] for name in names]
    found = await MemberReach(store=world, gate=world.gate).of(agent, members)
    return [found[path(name)] for name in names]


@pytest.mark.parametrize(
    ("who", "reach"),
    [
        (f"acl:agent <{OWNER}>", Reach.OWNER),
        (f"acl:agent <{BOB}>", Reach.PEOPLE),
        (GROUP, Reach.PEOPLE),
        (AUTHENTICATED, Reach.SIGNED_IN),
        (PUBLIC, Reach.EVERYONE),
    ],
)
async def test_the_owner_sees_how_far_reading_reaches(who: str, reach: Reach) -> None:
    world = pod()
    world.acl("/pod/", rule(who, "R", "./", default=True))
    world.store("/pod/doc")
    assert await reaches(world, identity(OWNER), "/pod/doc") == [reach]


async def test_the_right_to_write_alone_shows_nobody_anything() -> None:
    world = pod()
    world.acl("/pod/", rule(f"acl:agent <{BOB}>", "W", "./", default=True))
    world.store("/pod/doc")
    assert await reaches(world, identity(OWNER), "/pod/doc") == [Reach.OWNER]


async def test_members_with_rules_of_their_own_differ_from_the_others() -> None:
    world = pod()
    for name in ("/pod/a", "/pod/b", "/pod/c"):
        world.store(name)
    world.acl("/pod/b", rule(PUBLIC, "R", "b"))
    assert await reaches(world, identity(OWNER), "/pod/a", "/pod/b", "/pod/c") == [
        Reach.OWNER,
        Reach.EVERYONE,
        Reach.OWNER,
    ]


async def test_others_learn_no_more_than_the_server_says_to_them_anyway() -> None:
    world = pod()
    for name in ("/pod/a", "/pod/b", "/pod/c"):
        world.store(name)
    world.acl("/pod/a", rule(f"acl:agent <{BOB}>", "R", "a"))
    world.acl("/pod/b", rule(PUBLIC, "R", "b"))
    names = "/pod/a", "/pod/b", "/pod/c"
    assert await reaches(world, identity(BOB), *names) == [None, Reach.EVERYONE, None]
    assert await reaches(world, None, *names) == [None, Reach.EVERYONE, None]


async def test_a_thousand_members_without_rules_need_one_decision() -> None:
    world = pod()
    names = [f"/pod/{number}" for number in range(1_000)]
    for name in names:
        world.store(name)
    assert await reaches(world, identity(OWNER), *names) == [Reach.OWNER] * 1_000
    assert len(world.bodies_opened) == 1


class Log:
    def __init__(self) -> None:
        self.changes: list[LoggedChange] = []

    async def newest_sequence(self) -> int:
        return len(self.changes)

    async def changes_after(self, sequence: int, *, limit: int) -> list[LoggedChange]:
        return self.changes[sequence : sequence + limit]

    def write(self, metadata: Metadata, agent: str | None) -> None:
        change = Change(metadata.path, ChangeType.UPDATE, agent)
        sequence = len(self.changes) + 1
        self.changes.append(LoggedChange(sequence, change, metadata.version, at_ms=0))


async def test_authors_are_those_of_the_version_that_is_shown() -> None:
    world, log = pod(), Log()
    authors = ChangeAuthors(log)
    first = world.store("/pod/doc")
    log.write(first, BOB)
    second = world.store("/pod/doc")
    log.write(second, CAROL)
    assert await authors.of([first]) == {first.path: BOB}
    assert await authors.of([second]) == {second.path: CAROL}
    third = world.store("/pod/doc")
    log.write(third, None)
    assert await authors.of([third]) == {}


async def test_the_memory_of_authors_is_bounded() -> None:
    log = Log()
    authors = ChangeAuthors(log, max_changes=10)
    world = pod()
    written = [world.store(f"/pod/{number}") for number in range(40)]
    for metadata in written:
        log.write(metadata, BOB)
    assert set(await authors.of(written)) == {metadata.path for metadata in written[30:]}
    assert await authors.of([written[-1]]) == {written[-1].path: BOB}
