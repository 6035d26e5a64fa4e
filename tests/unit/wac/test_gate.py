"""The gate: what it grants, how it refuses, what it reads, and that nothing bypasses it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from podstead.core.errors import AccessDenied, NotAuthenticated
from podstead.core.identity import Identity
from podstead.storage.records import Absent, AtVersion, ResourceKind
from podstead.wac import modes
from podstead.wac.gate import Ceiling, Gate
from podstead.wac.modes import Mode, Requirement
from tests.support.wac_world import BOB, CAROL, OWNER, World, identity, path, pod, rule

AGENT_BOB = f"acl:agent <{BOB}>"
PUBLIC = "acl:agentClass foaf:Agent"
APP = "https://app.example"


def readable() -> World:
    """A pod whose members Bob may read."""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "R", "./", default=True))
    world.store("/pod/doc")
    return world


async def refusal(world: World, name: str, agent: Identity | None) -> Exception:
    target = path(name)
    with pytest.raises((NotAuthenticated, AccessDenied)) as caught:
        await world.gate.authorize(
            agent, None, target, modes.for_read(target), world.snapshot_for(name)
        )
    return caught.value


async def test_the_required_modes_suffice() -> None:
    world = readable()
    assert await world.status("/pod/doc", identity(BOB), modes.for_read(path("/pod/doc"))) == 200


async def test_a_refusal_without_credentials_has_a_challenge() -> None:
    """W-60"""
    error = await refusal(readable(), "/pod/doc", None)
    assert isinstance(error, NotAuthenticated)
    assert not error.invalid


async def test_with_credentials_a_refusal_is_final() -> None:
    """W-60"""
    assert isinstance(await refusal(readable(), "/pod/doc", identity(CAROL)), AccessDenied)


@pytest.mark.parametrize("agent", [None, identity(CAROL)])
async def test_a_refusal_is_the_same_whether_or_not_the_target_exists(
    agent: Identity | None,
) -> None:
    """W-60, W-64"""
    world = readable()
    present = await refusal(world, "/pod/doc", agent)
    absent = await refusal(world, "/pod/nothing", agent)
    below_nothing = await refusal(world, "/pod/no/thing/", agent)
    for other in (absent, below_nothing):
        assert type(other) is type(present)
        assert (str(other), vars(other)) == (str(present), vars(present))


async def test_every_requirement_must_be_met() -> None:
    """W-34: one of them missing refuses, whichever it is."""
    container, target = path("/pod/c/"), path("/pod/c/new")
    required = (Requirement(container, Mode.APPEND), Requirement(target, Mode.WRITE))
    for on_container, below, expected in (
        ("A", "W", 200),
        ("A", "A", 403),
        ("R", "W", 403),
        ("W", "W", 200),
    ):
        world = pod()
        world.store("/pod/c/")
        world.acl(
            "/pod/c/",
            rule(AGENT_BOB, on_container, "./")
            + rule(AGENT_BOB, below, "./", access_to=False, default=True),
        )
        assert await world.status("/pod/c/new", identity(BOB), required) == expected


async def test_a_grant_reports_everything_its_requirements_relied_on() -> None:
    """A PUT that creates relies on the rules of the container as well."""
    world = pod()
    world.store("/pod/c/")
    version = world.acl("/pod/c/", rule(AGENT_BOB, "W", "./", default=True)).version
    target = path("/pod/c/d/new")
    snapshot = world.snapshot_for(target)
    grant = await world.gate.authorize(
        identity(BOB), None, target, modes.for_put(target, snapshot), snapshot
    )
    assert set(grant.preconditions) == {
        Absent(path("/pod/c/d/new.acl")),
        Absent(path("/pod/c/d/.acl")),
        AtVersion(path("/pod/c/.acl"), version),
    }
    assert len(grant.preconditions) == 3


async def test_requirements_without_a_target_are_checked_alike() -> None:
    world = readable()
    snapshot = world.snapshot_for("/pod/doc")
    required = modes.for_read(path("/pod/doc"))
    preconditions = await world.gate.require(required, identity(BOB), None, snapshot)
    assert preconditions == (await world.grant("/pod/doc", identity(BOB))).preconditions
    with pytest.raises(AccessDenied):
        await world.gate.require(required, identity(CAROL), None, snapshot)
    with pytest.raises(NotAuthenticated):
        await world.gate.require(required, None, None, snapshot)


async def test_an_operation_that_requires_nothing_does_not_pass() -> None:
    """A forgotten requirement must not open a door."""
    world = readable()
    snapshot = world.snapshot_for("/pod/doc")
    with pytest.raises(ValueError, match="without requirements"):
        await world.gate.authorize(identity(BOB), None, path("/pod/doc"), (), snapshot)
    with pytest.raises(ValueError, match="without requirements"):
        await world.gate.require((), identity(BOB), None, snapshot)


async def test_a_grant_says_what_the_agent_and_the_public_hold() -> None:
    """W-50, W-52"""
    world = pod()
    world.acl("/pod/doc", rule(AGENT_BOB, "W", "doc") + rule(PUBLIC, "R", "doc"))
    grant = await world.grant("/pod/doc", identity(BOB))
    assert grant.wac_allow == 'user="read write append",public="read"'
    assert grant.allows(Mode.WRITE)
    assert not grant.allows(Mode.CONTROL)
    assert grant.public_may_read


async def test_for_the_public_both_groups_are_the_same() -> None:
    """W-52"""
    world = pod()
    world.acl("/pod/doc", rule(AGENT_BOB, "W", "doc") + rule(PUBLIC, "R", "doc"))
    assert (await world.grant("/pod/doc", None)).wac_allow == 'user="read",public="read"'


async def test_refused_agents_also_learn_what_they_are_granted() -> None:
    """W-50: for WAC-Allow on 401 and 403"""
    world = readable()
    assert (await world.grant("/pod/doc", None)).wac_allow == 'user="",public=""'
    assert not (await world.grant("/pod/doc", None)).public_may_read


async def test_a_forbidding_parent_takes_nothing_from_the_header() -> None:
    """W-56"""
    world = pod()
    world.acl("/pod/doc", rule(AGENT_BOB, "RW", "doc"))
    grant = await world.grant("/pod/doc", identity(BOB))
    assert grant.wac_allow == 'user="read write append",public=""'


async def test_on_an_acl_control_is_everything_and_all_else_nothing() -> None:
    """W-54, W-5"""
    world = pod()
    world.acl(
        "/pod/doc",
        rule(AGENT_BOB, "C", "doc")
        + rule(f"acl:agent <{CAROL}>", "RW", "doc")
        + rule(PUBLIC, "R", "doc"),
    )
    everything = "read write append control"
    bob = await world.grant("/pod/doc.acl", identity(BOB))
    assert bob.wac_allow == f'user="{everything}",public=""'
    assert await world.held("/pod/doc.acl", identity(CAROL)) == ""
    assert await world.held("/pod/doc", identity(BOB)) == "read control"
    world.acl("/pod/doc", rule(PUBLIC, "C", "doc"))
    public = await world.grant("/pod/doc.acl", None)
    assert public.wac_allow == f'user="{everything}",public="{everything}"'


async def test_an_acl_is_not_governed_by_an_acl_of_its_own() -> None:
    """W-1: there is none."""
    world = readable()
    world.acl("/pod/doc.acl", rule(PUBLIC, "RWC", "doc.acl"))
    assert await world.held("/pod/doc.acl", None) == ""


async def test_a_description_is_ruled_by_its_subjects_acl_alone() -> None:
    """W-42"""
    world = pod()
    world.acl("/pod/doc", rule(AGENT_BOB, "R", "doc"))
    world.acl("/pod/doc.meta", rule(PUBLIC, "RWC", "doc.meta"))
    assert await world.held("/pod/doc.meta", identity(BOB)) == "read"
    assert await world.held("/pod/doc.meta", None) == ""


async def test_the_storages_owner_keeps_control_throughout_the_storage() -> None:
    """W-7, W-18"""
    world = pod()
    world.store("/pod/.acl", "")
    for name in ("/pod/", "/pod/doc", "/pod/a/b/"):
        assert await world.held(name, identity(OWNER)) == "control"
        assert await world.held(name, identity(BOB)) == ""
        assert await world.held(name, identity(CAROL, OWNER)) == "control"


async def test_the_owner_of_one_storage_is_nobody_in_another() -> None:
    """W-18"""
    world = pod()
    world.store("/other/", kind=ResourceKind.STORAGE)
    world.owners[path("/other/")] = CAROL
    assert await world.held("/other/doc", identity(OWNER)) == ""
    assert await world.held("/doc", identity(OWNER)) == ""


async def test_an_agent_with_control_is_not_looked_up_as_the_owner() -> None:
    """W-18: owning adds nothing but Control."""
    world = pod()
    await world.grant("/pod/doc", identity(OWNER))
    await world.grant("/pod/doc", None)
    assert world.owners_asked == []
    await world.grant("/pod/doc", identity(BOB))
    assert world.owners_asked == ["/pod/"]


async def test_a_grant_lasts_only_if_all_that_it_took_lasts() -> None:
    world = pod()
    world.store("/pod/c/")
    world.acl("/pod/c/doc", rule(PUBLIC, "RW", "doc"))
    world.store("/pod/c/doc")
    target = path("/pod/c/doc")
    world.acl("/pod/c/", rule(f"acl:agentGroup <https://g.example/#g>; {AGENT_BOB}", "W", "./"))
    snapshot = world.snapshot_for(target)
    bob = identity(BOB)
    assert (await world.gate.grant(bob, None, target, snapshot)).cacheable
    required = modes.for_delete(target, snapshot)
    assert not (await world.gate.authorize(bob, None, target, required, snapshot)).cacheable


async def test_a_replaced_owner_loses_ownership_at_once() -> None:
    """W-18: ACLs are cached, ownership is not."""
    world = pod()
    world.store("/pod/.acl", "")
    assert await world.held("/pod/doc", identity(OWNER)) == "control"
    world.owners[path("/pod/")] = CAROL
    assert await world.held("/pod/doc", identity(OWNER)) == ""
    assert await world.held("/pod/doc", identity(CAROL)) == "control"


async def test_a_cached_acl_keeps_agents_origins_and_levels_apart() -> None:
    """One ACL and many agents, each checked twice and in turn."""
    world = pod()
    world.acl(
        "/pod/c/",
        rule(AGENT_BOB, "R", "./")
        + rule(f"{AGENT_BOB}; acl:origin <{APP}>", "A", "./")
        + rule(AGENT_BOB, "W", "./", access_to=False, default=True)
        + rule(f"acl:agent <{CAROL}>", "C", "./"),
    )
    expected = {
        ("/pod/c/", BOB, None): "read append",
        ("/pod/c/", BOB, APP): "read append",
        ("/pod/c/", BOB, APP + "/"): "read append",
        ("/pod/c/", BOB, "https://other.example"): "read",
        ("/pod/c/", BOB, "null"): "read",
        ("/pod/c/doc", BOB, None): "write append",
        ("/pod/c/doc", BOB, APP): "write append",
        ("/pod/c/", CAROL, None): "control",
        ("/pod/c/doc", CAROL, None): "",
    }
    for _ in range(2):
        for (name, agent, origin), held in expected.items():
            assert await world.held(name, identity(agent), origin) == held


async def test_an_origin_that_is_none_does_not_match_an_origin_that_is_none() -> None:
    """W-17"""
    world = pod()
    world.acl("/pod/doc", rule(f"{AGENT_BOB}; acl:origin <null>, 'null', <about:x>", "R", "doc"))
    for origin in ("null", "", "about:x", "nonsense"):
        assert await world.held("/pod/doc", identity(BOB), origin) == ""


async def test_a_private_resource_is_open_to_web_applications_of_its_agents() -> None:
    """W-17, trap 11"""
    assert await readable().held("/pod/doc", identity(BOB), "https://tester") == "read"


# --- restrictions ------------------------------------------------------------------------------


LIMITED_BOB = replace(identity(BOB), limit="some")


@dataclass
class Limit:
    """Restricts every request of a limited identity to a ceiling."""

    limit: Ceiling

    async def ceiling(self, *_: object) -> Ceiling:
        return self.limit


def restricted(world: World, *limits: Ceiling) -> World:
    world.gate = Gate(
        acls=world.acls,
        groups=world.groups,
        owners=world,
        clock=world.clock,
        restrictions=[*map(Limit, limits)],
    )
    return world


async def test_a_restriction_takes_modes_away_and_adds_none() -> None:
    """What remains is what the rules and every restriction have in common."""
    world = pod()
    world.acl("/pod/", rule(AGENT_BOB, "RW", "./", default=True))
    world.store("/pod/doc")
    everything = Ceiling()
    readers = Ceiling(user=frozenset({Mode.READ, Mode.CONTROL}))
    assert (await restricted(world, everything).grant("/pod/doc", LIMITED_BOB)).allows(Mode.WRITE)
    grant = await restricted(world, everything, readers).grant("/pod/doc", LIMITED_BOB)
    assert grant.user == {Mode.READ}
    assert await world.status("/pod/doc", LIMITED_BOB, modes.for_read(path("/pod/doc"))) == 200
    assert await world.status("/pod/doc", LIMITED_BOB, modes.for_put(
        path("/pod/doc"), world.snapshot_for("/pod/doc"))) == 403  # fmt: skip


async def test_an_identity_without_a_limit_is_not_restricted() -> None:
    world = restricted(readable(), Ceiling(user=frozenset()))
    assert await world.held("/pod/doc", identity(BOB)) == "read"


async def test_a_restriction_holds_for_owners_and_for_access_rules() -> None:
    world = pod()
    grant = await restricted(world, Ceiling(user=frozenset({Mode.READ}))).grant(
        "/pod/.acl", replace(identity(OWNER), limit="some")
    )
    assert grant.user == frozenset()


async def test_a_decision_depends_on_what_its_restrictions_depend_on() -> None:
    depends = Absent(path("/pod/terms"))
    world = restricted(readable(), Ceiling(preconditions=(depends,), cacheable=False))
    grant = await world.grant("/pod/doc", LIMITED_BOB)
    assert depends in grant.preconditions
    assert not grant.cacheable


async def test_a_gate_over_another_source_has_the_same_restrictions() -> None:
    world = restricted(readable(), Ceiling(user=frozenset()))
    grant, _ = await world.gate.over(world).current_grant(LIMITED_BOB, None, path("/pod/doc"))
    assert grant.user == frozenset()
    assert grant == await world.gate.for_many(world).grant(
        LIMITED_BOB, None, path("/pod/doc"), world.snapshot_for("/pod/doc")
    )
