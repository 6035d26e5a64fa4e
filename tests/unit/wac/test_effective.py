"""The walk to the effective ACL, what it relies on, and what happens when reading goes wrong."""

from __future__ import annotations

import pytest

from podstead.core.errors import Overloaded, StorageError, TargetTooLong
from podstead.core.identifiers import ROOT, ResourcePath, acl_of
from podstead.storage.document_reader import MAX_ATTEMPTS
from podstead.storage.records import Absent, AtVersion
from podstead.wac.effective import MAX_DEPTH, EffectiveAcls, acl_paths, paths_to_read
from podstead.wac.modes import Mode
from tests.support.wac_world import BASE, BOB, OWNER, World, identity, owner_rule, path, pod, rule

AGENT_BOB = f"acl:agent <{BOB}>"
MALFORMED = "<#x> a acl:Authorization; acl:agentClass foaf:Agent; acl:mode"


async def test_a_resource_with_an_acl_of_its_own_is_ruled_by_it_alone() -> None:
    """W-10: no merging of levels."""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "RW", "./", access_to=True, default=True))
    world.acl("/pod/doc", rule(AGENT_BOB, "A", "doc"))
    assert await world.held("/pod/doc", identity(BOB)) == "append"


async def test_a_resource_without_one_is_ruled_by_the_closest_container_that_has_one() -> None:
    """W-10"""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "RW", "./", default=True))
    world.acl("/pod/a/", rule(AGENT_BOB, "R", "./", default=True))
    assert await world.held("/pod/a/b/c/doc", identity(BOB)) == "read"
    assert await world.held("/pod/b/doc", identity(BOB)) == "read write append"


@pytest.mark.parametrize("exists", [True, False])
async def test_the_walk_is_the_same_for_resources_that_do_not_exist(exists: bool) -> None:
    """W-10, W-60"""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./", default=True))
    if exists:
        for name in ("/pod/a/", "/pod/a/b/", "/pod/a/b/doc"):
            world.store(name)
    assert await world.held("/pod/a/b/doc", identity(BOB)) == "read"


async def test_rules_for_the_container_itself_do_not_reach_its_members() -> None:
    """W-10"""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./"))
    assert await world.held("/pod/", identity(BOB)) == "read"
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_rules_for_members_do_not_reach_the_container_itself() -> None:
    """W-10, A-98"""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./", access_to=False, default=True))
    assert await world.held("/pod/", identity(BOB)) == ""
    assert await world.held("/pod/doc", identity(BOB)) == "read"


async def test_an_acl_that_says_nothing_about_the_resource_denies_it() -> None:
    """W-8: it is not passed over for the parent's."""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "RWC", "./", default=True))
    world.acl("/pod/doc", rule(AGENT_BOB, "RWC", "other"))
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_an_empty_acl_denies() -> None:
    """W-8"""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "RWC", "./", default=True))
    world.acl("/pod/doc", "")
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_an_acl_is_ruled_by_the_rules_it_holds() -> None:
    """W-1, W-40: it has no ACL of its own and inherits nothing."""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./", default=True))
    world.acl("/pod/doc", rule(AGENT_BOB, "A", "doc"))
    for name in ("/pod/doc", "/pod/doc.acl", "/pod/doc.meta", "/pod/doc.meta.acl"):
        effective = await world.acls.find(path(name), world.snapshot_for(name))
        assert effective.rules.agents == {BOB: {Mode.APPEND}}


async def test_an_acl_cannot_speak_about_resources_elsewhere() -> None:
    """W-11: not even about a member, which a rule of its container reaches by default only."""
    world = pod()
    world.acl("/pod/a/", rule(AGENT_BOB, "R", "./doc") + rule(AGENT_BOB, "R", "/pod/b/"))
    assert await world.held("/pod/a/doc", identity(BOB)) == ""
    assert await world.held("/pod/b/", identity(BOB)) == ""


async def test_without_any_acl_nothing_is_granted() -> None:
    world = World()
    world.store("/doc")
    assert await world.held("/doc", identity(BOB)) == ""
    assert await world.held("/doc", None) == ""


@pytest.mark.parametrize(
    ("turtle", "content_type"),
    [(MALFORMED, "text/turtle"), (owner_rule("./"), "text/plain")],
)
async def test_an_acl_that_cannot_be_understood_denies_all_but_the_owners_control(
    turtle: str, content_type: str
) -> None:
    """W-7"""
    world = pod()
    world.acl("/pod/", rule("acl:agentClass foaf:Agent", "RWC", "./", default=True))
    world.store("/pod/doc.acl", turtle, content_type=content_type)
    assert await world.held("/pod/doc", None) == ""
    assert await world.held("/pod/doc", identity(BOB)) == ""
    assert await world.held("/pod/doc", identity(OWNER)) == "control"


async def test_an_acl_that_cannot_be_read_is_an_error_and_not_passed_over() -> None:
    """W-7: a parent's wider rules must not step in for what a fault hides."""
    world = pod()
    world.acl("/pod/", rule("acl:agentClass foaf:Agent", "R", "./", default=True))
    world.acl("/pod/doc", "")
    world.broken.add(path("/pod/doc.acl"))
    for agent in (None, identity(BOB), identity(OWNER)):
        with pytest.raises(StorageError):
            await world.grant("/pod/doc", agent)


async def test_trouble_is_not_remembered() -> None:
    world = pod()
    world.broken.add(path("/pod/.acl"))
    with pytest.raises(StorageError):
        await world.grant("/pod/doc", identity(OWNER))
    world.broken.clear()
    assert await world.held("/pod/doc", identity(OWNER)) == "read write append control"


async def test_a_context_that_is_unavailable_denies_for_now_only() -> None:
    """W-7: fail closed, but what passes is not remembered, by version or by decision."""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./", default=True))
    world.unknown_contexts.add(f"{BASE}/pod/.acl")
    for agent in (None, identity(BOB)):
        grant = await world.grant("/pod/doc", agent)
        assert not grant.user
        assert not grant.cacheable
        assert grant.preconditions[-1] == AtVersion(
            path("/pod/.acl"), world.resources[path("/pod/.acl")][0].version
        )
    assert await world.held("/pod/doc", identity(OWNER)) == "control"
    world.unknown_contexts.clear()
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    assert (await world.grant("/pod/doc", identity(BOB))).cacheable


async def test_a_malformed_acl_is_understood_no_better_the_next_time() -> None:
    """W-7: so the decision lasts until the ACL is written anew."""
    world = pod()
    world.acl("/pod/doc", MALFORMED)
    assert (await world.grant("/pod/doc", identity(BOB))).cacheable


async def test_a_path_that_was_not_looked_at_is_not_taken_as_absent() -> None:
    world = pod()
    snapshot = world.snapshot_for("/pod/doc")
    del snapshot[path("/pod/doc.acl")]
    with pytest.raises(KeyError):
        await world.gate.grant(None, None, path("/pod/doc"), snapshot)


async def test_a_written_acl_applies_to_the_next_request() -> None:
    """W-5"""
    world = pod()
    for modes, expected in (("R", "read"), ("RA", "read append"), ("", "")):
        world.acl("/pod/", rule(AGENT_BOB, modes, "./", default=True) if modes else "")
        assert await world.held("/pod/doc", identity(BOB)) == expected


async def test_a_removed_acl_brings_inheritance_back_for_the_very_next_request() -> None:
    """W-5, W-6"""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./", default=True))
    world.acl("/pod/doc", "")
    assert await world.held("/pod/doc", identity(BOB)) == ""
    world.remove("/pod/doc.acl")
    assert await world.held("/pod/doc", identity(BOB)) == "read"


async def test_an_acl_is_read_once_per_version() -> None:
    world = pod()
    for _ in range(3):
        await world.grant("/pod/a/doc", identity(BOB))
        await world.grant("/pod/b", None)
    assert world.bodies_opened == ["/pod/.acl"]
    world.acl("/pod/", owner_rule("./"))
    await world.grant("/pod/a/doc", identity(BOB))
    assert world.bodies_opened == ["/pod/.acl", "/pod/.acl"]


async def test_more_acls_than_are_remembered_are_read_again() -> None:
    world = pod()
    world.acl("/pod/a/", owner_rule("./"))
    acls = EffectiveAcls(world, world.parse, base_url=BASE, cache_bytes=2048)
    for _ in range(2):
        for name in ("/pod/doc", "/pod/a/doc"):
            await acls.find(path(name), world.snapshot_for(name))
    assert world.bodies_opened == ["/pod/.acl", "/pod/a/.acl"] * 2


async def test_an_acl_that_comes_in_pieces_is_read_whole() -> None:
    world = pod()
    world.store("/pod/.acl", rule(AGENT_BOB, "R", "./", default=True), streamed=True)
    assert await world.held("/pod/doc", identity(BOB)) == "read"


async def test_an_acl_replaced_while_it_is_read_is_read_again() -> None:
    """W-5"""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./", default=True))
    world.changes_while_opened = [
        ("/pod/.acl", rule(AGENT_BOB, "A", "./", default=True)),
    ]
    grant = await world.grant("/pod/doc", identity(BOB))
    assert grant.wac_allow.startswith('user="append"')
    current = world.resources[path("/pod/.acl")][0].version
    assert AtVersion(path("/pod/.acl"), current) in grant.preconditions


async def test_a_walk_whose_acl_vanishes_is_walked_again_as_a_whole() -> None:
    """Else the parent's old rules could be applied where, together with the vanished ACL, neither
    the old nor the new state granted anything."""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "RW", "./", default=True))
    world.acl("/pod/doc", "")
    old = world.snapshot_for("/pod/doc")
    await world.grant("/pod/other", identity(BOB))  # the old rules of the parent are at hand
    world.acl("/pod/", owner_rule("./"))
    world.changes_while_opened = [("/pod/doc.acl", None)]
    grant = await world.gate.grant(identity(BOB), None, path("/pod/doc"), old)
    assert grant.wac_allow == 'user="",public=""'


async def test_acls_that_never_hold_still_end_in_an_error() -> None:
    world = pod()
    world.changes_while_opened = [("/pod/.acl", owner_rule("./"))] * MAX_ATTEMPTS
    with pytest.raises(Overloaded):
        await world.grant("/pod/doc", identity(OWNER))


async def test_what_a_decision_relied_on_is_reported_with_every_absence() -> None:
    """The decision is repeated in the write's transaction."""
    world = pod()
    version = world.acl("/pod/a/", owner_rule("./")).version
    grant = await world.grant("/pod/a/b/doc", None)
    assert grant.preconditions == (
        Absent(path("/pod/a/b/doc.acl")),
        Absent(path("/pod/a/b/.acl")),
        AtVersion(path("/pod/a/.acl"), version),
    )


async def test_a_refusal_for_want_of_any_acl_relies_on_all_absences() -> None:
    grant = await World().grant("/pod/doc", None)
    assert grant.preconditions == tuple(
        Absent(acl_of(ResourcePath(name))) for name in ("/pod/doc", "/pod/", "/")
    )


def test_a_snapshot_covers_the_target_the_containers_their_twins_and_their_acls() -> None:
    """P-47, P-49, W-10"""
    assert set(paths_to_read(path("/pod/a/doc"))) == {
        *("/pod/a/doc", "/pod/a/doc/", "/pod/a/doc.acl"),
        *("/pod/a/", "/pod/a", "/pod/a/.acl"),
        *("/pod/", "/pod", "/pod/.acl"),
        *("/", "/.acl"),
    }


@pytest.mark.parametrize("name", ["/pod/doc.acl", "/pod/doc.meta"])
def test_the_snapshot_of_an_auxiliary_covers_what_that_of_its_subject_does(name: str) -> None:
    assert set(paths_to_read(path(name))) == {name, *paths_to_read(path("/pod/doc"))}


def test_the_snapshot_of_the_servers_root_is_the_root_and_its_acl() -> None:
    assert paths_to_read(ROOT) == ("/", "/.acl")


AWKWARD_NAMES = (
    *("/", "/x", "/pod/", "/pod/a/b/c", "/pod/a/.acl", "/pod/x.meta.acl"),
    *("/.acl", "/.acl/", "/.acl/x", "/pod/.acl/", "/pod/.acl/x", "/pod/.acl/.acl"),
    *("/pod/.acl/.acl/", "/pod/.meta/.acl/x", "/pod/x.acl/", "/pod/x.acl/y/"),
)


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_each_path_is_looked_at_once(name: str) -> None:
    paths = paths_to_read(path(name))
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_what_is_derived_from_the_container_is_what_the_rules_say(name: str) -> None:
    """P-47, P-49, W-10"""
    names = [name]
    while names[-1].endswith((".acl", ".meta")):
        names.append(names[-1].rpartition(".")[0])
    subject = names[-1]
    ends = [end for end, character in enumerate(subject) if character == "/"]
    places = [subject, *(subject[: end + 1] for end in ends if end + 1 < len(subject))]
    variants = {place[:-1] if place.endswith("/") else place + "/" for place in places} - {""}
    acls = {place + ".acl" for place in places}
    assert set(paths_to_read(path(name))) == {*names, *places, *variants, *acls}
    closest_first = sorted(acls, key=len, reverse=True)
    assert acl_paths(path(subject)) == tuple(closest_first)


def test_resources_may_lie_as_deep_as_the_limit_and_no_deeper() -> None:
    deepest = "/d" * MAX_DEPTH
    assert paths_to_read(path(deepest))
    with pytest.raises(TargetTooLong):
        paths_to_read(path(deepest + "/x"))


async def test_long_paths_are_decided_like_short_ones() -> None:
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./", default=True))
    assert await world.held("/pod/" + "long" * 100 + "/doc", identity(BOB)) == "read"
