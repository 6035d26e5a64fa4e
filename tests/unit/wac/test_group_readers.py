"""A group document makes members only for access rules whose owner may read it.

Otherwise whoever names a private group of somebody else in rules of their own would learn from the
answers who is a member of it.
"""

from __future__ import annotations

import pytest

from podstead.core.identifiers import acl_of
from podstead.storage.records import Absent, AtVersion
from podstead.wac.groups import MAX_DOCUMENTS_ELSEWHERE
from tests.support.wac_world import BASE, BOB, OWNER, World, identity, path, pod, rule

MALLORY = f"{BASE}/mallory/#me"
GROUP = f"{BASE}/pod/private/team#a"
DOCUMENT = "/pod/private/team"
MEMBERS = f"<#a> vcard:hasMember <{BOB}>."
PROBE = "/mallory/probe"


def two_pods(*groups: str, owner: str | None = MALLORY) -> World:
    """A private group in one pod, and rules in another that name it (or other groups)."""
    world = pod()
    world.store(DOCUMENT, MEMBERS)
    if owner is not None:
        world.owners[path("/mallory/")] = owner
    named = ", ".join(f"<{group}>" for group in groups or (GROUP,))
    world.acl("/mallory/", rule(f"acl:agentGroup {named}", "R", "./", default=True))
    return world


async def test_the_members_of_a_private_group_do_not_show_in_the_rules_of_others() -> None:
    world = two_pods()
    assert await world.held(PROBE, identity(BOB)) == ""
    assert path(DOCUMENT) not in world.bodies_opened


@pytest.mark.parametrize(
    ("who", "modes", "expected"),
    [
        ("acl:agentClass foaf:Agent", "R", "read"),
        ("acl:agentClass acl:AuthenticatedAgent", "R", "read"),
        (f"acl:agent <{MALLORY}>", "R", "read"),
        (f"acl:agent <{MALLORY}>", "C", "read"),
        (f"acl:agent <{MALLORY}>", "AW", ""),
        (f"acl:agent <{BOB}>", "RW", ""),
    ],
)
async def test_a_group_elsewhere_applies_if_the_owner_of_the_rules_may_read_it(
    who: str, modes: str, expected: str
) -> None:
    world = two_pods()
    world.acl(DOCUMENT, rule(who, modes, "team"))
    assert await world.held(PROBE, identity(BOB)) == expected


async def test_a_group_in_another_pod_of_the_same_owner_applies() -> None:
    world = two_pods(owner=OWNER)
    assert await world.held(PROBE, identity(BOB)) == "read"


async def test_in_rules_that_lie_in_no_storage_only_public_groups_count() -> None:
    world = two_pods(owner=None)
    assert await world.held(PROBE, identity(BOB)) == ""
    world.acl(DOCUMENT, rule("acl:agentClass foaf:Agent", "R", "team"))
    assert await world.held(PROBE, identity(BOB)) == "read"


async def test_a_rule_is_asked_about_from_no_origin() -> None:
    """What the owner may read by an application of one origin the owner may read."""
    world = two_pods()
    named = f"acl:agent <{MALLORY}>; acl:origin <https://app.example>"
    world.acl(DOCUMENT, rule(named, "R", "team"))
    assert await world.held(PROBE, identity(BOB), "https://other.example") == "read"


@pytest.mark.parametrize(("modes", "expected"), [("R", ""), ("C", "read")])
async def test_access_rules_as_a_group_document_take_control(modes: str, expected: str) -> None:
    world = two_pods(f"{BASE}/pod/private/team.acl#a")
    world.acl(DOCUMENT, rule(f"acl:agent <{MALLORY}>", modes, "team") + MEMBERS)
    assert await world.held(PROBE, identity(BOB)) == expected


async def test_the_owner_may_read_a_group_by_another_group_beside_it() -> None:
    world = two_pods()
    world.acl(DOCUMENT, rule("acl:agentGroup <readers#r>", "R", "team"))
    world.store("/pod/private/readers", f"<#r> vcard:hasMember <{MALLORY}>.")
    assert await world.held(PROBE, identity(BOB)) == "read"
    world.store("/pod/private/readers", f"<#r> vcard:hasMember <{BOB}>.")
    assert await world.held(PROBE, identity(BOB)) == ""


async def test_rules_of_a_group_document_end_at_its_own_storage() -> None:
    """So that groups that name each other in a circle have no members, and nothing is fetched."""
    world = two_pods()
    far = "https://groups.example/far"
    near = f"{BASE}/mallory/readers#r"
    world.serve(far, f"<#r> vcard:hasMember <{MALLORY}>.")
    world.store("/mallory/readers", f"<#r> vcard:hasMember <{MALLORY}>.")
    for group in (f"{far}#r", near):
        world.acl(DOCUMENT, rule(f"acl:agentGroup <{group}>", "R", "team"))
        assert await world.held(PROBE, identity(BOB)) == ""
    assert world.fetched == []


async def test_groups_that_name_each_other_end() -> None:
    world = two_pods()
    circle = rule(f"acl:agentGroup <{BASE}/mallory/other#a>, <team#a>", "R", "team")
    world.acl(DOCUMENT, circle)
    world.store("/mallory/other", MEMBERS)
    world.acl("/mallory/other", rule(f"acl:agentGroup <{GROUP}>", "R", "other"))
    assert await world.held(PROBE, identity(BOB)) == ""
    assert await world.held("/mallory/other", identity(BOB)) == ""


async def test_a_decision_relies_on_the_rules_of_a_group_document_elsewhere() -> None:
    world = two_pods()
    before = (await world.grant(PROBE, identity(BOB))).preconditions
    closed = world.resources[acl_of(path("/pod/"))][0].version
    assert AtVersion(acl_of(path("/pod/")), closed) in before
    assert Absent(acl_of(path(DOCUMENT))) in before
    opened = world.acl(DOCUMENT, rule("acl:agentClass foaf:Agent", "R", "team"))
    after = (await world.grant(PROBE, identity(BOB))).preconditions
    assert AtVersion(opened.path, opened.version) in after
    document = world.resources[path(DOCUMENT)][0]
    assert AtVersion(document.path, document.version) in after


async def test_a_change_of_its_rules_applies_to_the_next_request() -> None:
    world = two_pods()
    for who, expected in ((MALLORY, "read"), (BOB, ""), (MALLORY, "read")):
        world.acl(DOCUMENT, rule(f"acl:agent <{who}>", "R", "team"))
        assert await world.held(PROBE, identity(BOB)) == expected


async def test_a_group_beside_the_rules_takes_no_look_at_its_own_rules() -> None:
    """The usual case stays as cheap as it was."""
    world = two_pods("/mallory/team#a")
    world.store("/mallory/team", MEMBERS)
    world.acl("/mallory/team", rule(f"acl:agent <{BOB}>", "W", "team"))
    assert await world.held(PROBE, identity(BOB)) == "read"
    assert acl_of(path("/mallory/team")) not in world.bodies_opened


async def test_rules_can_ask_about_so_many_groups_elsewhere_and_no_more() -> None:
    world = pod()
    world.owners[path("/mallory/")] = MALLORY
    names = [f"/pod/public/g{number:03}" for number in range(MAX_DOCUMENTS_ELSEWHERE + 1)]
    world.acl("/pod/public/", rule("acl:agentClass foaf:Agent", "R", "./", default=True))
    for name in names:
        world.store(name, "<#a> vcard:hasMember <https://nobody.example/>.")
    named = ", ".join(f"<{name}#a>" for name in names)
    world.acl("/mallory/", rule(f"acl:agentGroup {named}", "R", "./", default=True))
    world.store(names[-1], MEMBERS)
    assert await world.held(PROBE, identity(BOB)) == ""
    world.store(names[-2], MEMBERS)
    assert await world.held(PROBE, identity(BOB)) == "read"


async def test_a_group_deeper_than_any_resource_has_no_members() -> None:
    world = two_pods(f"{BASE}/pod/{'a/' * 120}team#a")
    assert await world.held(PROBE, identity(BOB)) == ""
