"""Agent groups: local and foreign documents, what they are trusted for, and what failure means."""

from __future__ import annotations

import pytest

from podstead.core.errors import OutboundError, Overloaded, StorageError
from podstead.core.identifiers import ResourcePath, acl_of
from podstead.rdf.graph import Graph
from podstead.storage.document_reader import MAX_ATTEMPTS
from podstead.storage.protocol import Snapshot
from podstead.storage.records import Absent, AtVersion
from podstead.wac.effective import (
    MAX_DOCUMENTS_ELSEWHERE,
    MAX_GROUP_DOCUMENT_BYTES,
    REMOTE_BUDGET_MS,
    REMOTE_FRESH_MS,
    REMOTE_RETRY_MS,
    GroupMemberships,
    Readable,
)
from tests.support.wac_world import BASE, BOB, CAROL, OWNER, World, identity, path, pod, rule

REMOTE = "https://groups.example/team"
MEMBERS = f"<#a> vcard:hasMember <{BOB}>, <did:nostr:AB>. <#b> vcard:hasMember <{CAROL}>."


def grouped(*groups: str) -> World:
    """A pod whose members are readable for the groups."""
    world = pod()
    named = ", ".join(f"<{group}>" for group in groups)
    world.acl("/pod/", rule(f"acl:agentGroup {named}", "R", "./", default=True))
    return world


async def test_a_member_of_a_local_group_holds_its_modes() -> None:
    """W-13"""
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS)
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    assert await world.held("/pod/doc", identity(CAROL)) == ""
    assert await world.held("/pod/doc", None) == ""


async def test_every_name_of_an_identity_matters_for_membership() -> None:
    """A-4, A-150"""
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS)
    assert await world.held("/pod/doc", identity(CAROL, "did:nostr:aB")) == "read"


@pytest.mark.parametrize(
    "spelling", [f"{BASE}/pod/team#a", "HTTP://LOCALHOST:3000/pod/team#a", "/pod/%74eam#a"]
)
async def test_a_local_group_is_recognised_in_every_spelling(spelling: str) -> None:
    """W-11"""
    world = grouped(spelling)
    world.store("/pod/team", MEMBERS)
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    assert world.fetched == []


async def test_a_group_may_be_the_document_itself() -> None:
    world = grouped("team")
    world.store("/pod/team", f"<> vcard:hasMember <{BOB}>.")
    assert await world.held("/pod/doc", identity(BOB)) == "read"


async def test_several_groups_of_several_documents_all_count() -> None:
    world = grouped("team#a", "team#b", "others#c")
    world.store("/pod/team", MEMBERS)
    assert await world.held("/pod/doc", identity(CAROL)) == "read"
    assert world.bodies_opened.count(path("/pod/team")) == 1


async def test_a_group_document_is_read_without_asking_for_access_to_it() -> None:
    """W-14: its own rules may name the very group."""
    world = grouped("closed/team#a")
    world.acl("/pod/closed/", rule("acl:agentGroup <team#a>", "R", "./", default=True))
    world.store("/pod/closed/team", MEMBERS)
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    assert await world.held("/pod/closed/team", identity(BOB)) == "read"


async def test_a_group_that_has_groups_as_members_does_not_pass_membership_on() -> None:
    """W-14: no recursion"""
    world = grouped("team#outer")
    world.store("/pod/team", MEMBERS + "<#outer> vcard:hasMember <#a>.")
    assert await world.held("/pod/doc", identity(BOB)) == ""


@pytest.mark.parametrize("turtle", ["", f"<#x> vcard:hasMember <{BOB}>.", "<#a> is not Turtle"])
async def test_a_document_that_does_not_say_so_makes_nobody_a_member(turtle: str) -> None:
    """W-14"""
    world = grouped("team#a")
    world.store("/pod/team", turtle)
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_members_given_as_text_are_none() -> None:
    world = grouped("team#a")
    world.store("/pod/team", f'<#a> vcard:hasMember "{BOB}".')
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_a_document_that_is_not_rdf_has_no_members() -> None:
    """W-14"""
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS, content_type="text/plain")
    assert await world.held("/pod/doc", identity(BOB)) == ""


@pytest.mark.parametrize(("too_long_by", "expected"), [(0, "read"), (1, "")])
async def test_a_document_is_read_up_to_the_limit_only(too_long_by: int, expected: str) -> None:
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS)
    size = world.resources[path("/pod/team")][0].size_bytes
    filling = MAX_GROUP_DOCUMENT_BYTES - size + too_long_by
    stored = world.store("/pod/team", MEMBERS + "#" * filling)
    assert stored.size_bytes == MAX_GROUP_DOCUMENT_BYTES + too_long_by
    assert await world.held("/pod/doc", identity(BOB)) == expected


async def test_a_changed_group_applies_to_the_next_request() -> None:
    """W-5"""
    world = grouped("team#a")
    assert await world.held("/pod/doc", identity(BOB)) == ""
    world.store("/pod/team", MEMBERS)
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    world.store("/pod/team", "")
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_an_unchanged_group_is_read_once() -> None:
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS)
    for agent in (BOB, CAROL, BOB):
        await world.grant("/pod/doc", identity(agent))
    assert world.bodies_opened.count(path("/pod/team")) == 1


async def test_trouble_with_a_local_group_is_an_error() -> None:
    """W-14: our own failure is no statement about members."""
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS)
    world.broken.add(path("/pod/team"))
    with pytest.raises(StorageError):
        await world.grant("/pod/doc", identity(BOB))


async def test_a_group_replaced_while_it_is_read_is_read_again() -> None:
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS)
    await world.grant("/pod/doc", None)  # the ACL itself is read and remembered
    world.changes_while_opened = [("/pod/team", "")]
    grant = await world.grant("/pod/doc", identity(BOB))
    current = world.resources[path("/pod/team")][0].version
    assert not grant.user
    assert AtVersion(path("/pod/team"), current) in grant.preconditions


async def test_groups_that_never_hold_still_end_in_an_error() -> None:
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS)
    await world.grant("/pod/doc", None)
    world.changes_while_opened = [("/pod/team", MEMBERS)] * MAX_ATTEMPTS
    with pytest.raises(Overloaded):
        await world.grant("/pod/doc", identity(BOB))


async def test_a_decision_relies_on_the_local_group_documents() -> None:
    """Existing by version, missing as absent."""
    world = grouped("team#a", "missing#x")
    version = world.store("/pod/team", MEMBERS).version
    preconditions = (await world.grant("/pod/doc", identity(BOB))).preconditions
    assert AtVersion(path("/pod/team"), version) in preconditions
    assert Absent(path("/pod/missing")) in preconditions


async def test_the_public_is_decided_without_looking_at_groups() -> None:
    world = grouped("team#a", f"{REMOTE}#a")
    world.store("/pod/team", MEMBERS)
    grant = await world.grant("/pod/doc", None)
    assert world.bodies_opened == ["/pod/.acl"]
    assert world.fetched == []
    assert not any("team" in str(precondition) for precondition in grant.preconditions)


async def test_groups_named_for_something_else_are_not_looked_at() -> None:
    world = pod()
    world.acl("/pod/", rule(f"acl:agentGroup <{REMOTE}#a>", "R", "./"))
    await world.grant("/pod/doc", identity(BOB))
    assert world.fetched == []


# --- foreign documents --------------------------------------------------------------------


async def test_a_member_of_a_foreign_group_holds_its_modes() -> None:
    """W-14"""
    world = grouped(f"{REMOTE}#a")
    world.serve(REMOTE, MEMBERS)
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    assert await world.held("/pod/doc", identity(CAROL)) == ""
    assert world.fetched == [REMOTE]


async def test_a_foreign_document_that_is_unavailable_has_no_members() -> None:
    """W-14"""
    world = grouped(f"{REMOTE}#a")
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_a_foreign_document_that_cannot_be_understood_has_no_members() -> None:
    """W-14"""
    world = grouped(f"{REMOTE}#a")
    world.serve(REMOTE, "<#a> is not Turtle")
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_a_foreign_failure_leaves_other_groups_alone() -> None:
    """W-14"""
    world = grouped(f"{REMOTE}#a", "team#a")
    world.store("/pod/team", MEMBERS)
    assert await world.held("/pod/doc", identity(BOB)) == "read"


async def test_relative_members_resolve_against_where_the_document_was_found() -> None:
    """A redirect to another host cannot speak for the group that rules name."""
    world = grouped(f"{REMOTE}#a")
    world.serve(REMOTE, MEMBERS, final_url="https://elsewhere.example/team")
    assert await world.held("/pod/doc", identity(BOB)) == ""


async def test_a_foreign_group_is_cached_for_a_few_seconds() -> None:
    """W-14"""
    world = grouped(f"{REMOTE}#a")
    world.serve(REMOTE, MEMBERS)
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    world.serve(REMOTE, "")
    world.clock.time_ms += REMOTE_FRESH_MS - 1
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    world.clock.time_ms += 1
    assert await world.held("/pod/doc", identity(BOB)) == ""
    assert world.fetched == [REMOTE, REMOTE]


async def test_a_failed_fetch_is_not_repeated_at_once() -> None:
    """W-14"""
    world = grouped(f"{REMOTE}#a")
    await world.grant("/pod/doc", identity(BOB))
    world.serve(REMOTE, MEMBERS)
    world.clock.time_ms += REMOTE_RETRY_MS - 1
    assert await world.held("/pod/doc", identity(BOB)) == ""
    world.clock.time_ms += 1
    assert await world.held("/pod/doc", identity(BOB)) == "read"
    assert world.fetched == [REMOTE, REMOTE]


async def test_one_decision_fetches_for_a_bounded_time() -> None:
    """W-14: what it does not come to has no members this time, and is asked for the next."""
    others = [f"https://a{number}.example/slow#g" for number in range(3)]
    world = grouped(*others, "https://z.example/last#g")
    world.serve("https://z.example/last", f"<#g> vcard:hasMember <{BOB}>.")
    world.fetch_takes_ms = REMOTE_BUDGET_MS // 2
    assert await world.held("/pod/doc", identity(BOB)) == ""
    assert len(world.fetched) == 2
    assert await world.held("/pod/doc", identity(BOB)) == "read"


async def test_a_group_at_a_foreign_url_is_left_to_the_guarded_fetcher() -> None:
    """W-14: which refuses own addresses and other schemes."""
    world = grouped("urn:x:team", f"{BASE}/pod/team?all#a")
    world.store("/pod/team", MEMBERS)
    assert await world.held("/pod/doc", identity(BOB)) == ""
    assert sorted(world.fetched) == [f"{BASE}/pod/team?all", "urn:x:team"]


@pytest.mark.parametrize(
    ("group", "document"), [("team#a", f"{BASE}/pod/team"), (f"{REMOTE}#a", REMOTE)]
)
async def test_a_context_that_is_unavailable_makes_nobody_a_member_for_now(
    group: str, document: str
) -> None:
    """W-14: the document has not changed, yet is asked for again."""
    world = grouped(group)
    world.store("/pod/team", MEMBERS)
    world.serve(REMOTE, MEMBERS)
    world.unknown_contexts.add(document)
    grant = await world.grant("/pod/doc", identity(BOB))
    assert not grant.user
    assert not grant.cacheable
    world.unknown_contexts.clear()
    world.clock.time_ms += REMOTE_RETRY_MS
    assert await world.held("/pod/doc", identity(BOB)) == "read"


async def never_asked(document: ResourcePath, _: Snapshot) -> Readable:
    raise AssertionError(f"{document} is no document of another storage")


@pytest.mark.parametrize("group", ["team#a", f"{REMOTE}#a"])
async def test_a_context_that_cannot_be_fetched_is_not_an_error_either(group: str) -> None:
    """W-14"""
    world = grouped(group)
    world.store("/pod/team", MEMBERS)
    world.serve(REMOTE, MEMBERS)

    async def parse(content: bytes, content_type: str, base_iri: str) -> Graph:
        raise OutboundError("The context could not be fetched")

    groups = GroupMemberships(world, parse, world, world.clock, base_url=BASE)
    named = frozenset({group if "://" in group else f"{BASE}/pod/{group}"})
    memberships = await groups.of(
        frozenset({BOB}), named, storage=path("/pod/"), readable=never_asked
    )
    assert not memberships.groups
    assert not memberships.cacheable


async def test_a_decision_about_local_groups_lasts_and_one_about_foreign_ones_does_not() -> None:
    """Whether an answer may be kept until the store changes."""
    world = grouped("team#a")
    world.store("/pod/team", MEMBERS)
    assert (await world.grant("/pod/doc", identity(BOB))).cacheable
    world = grouped("team#a", f"{REMOTE}#a")
    world.store("/pod/team", MEMBERS)
    assert not (await world.grant("/pod/doc", identity(BOB))).cacheable
    assert (await world.grant("/pod/doc", None)).cacheable


# --- group readers -----------------------------------------------------------------------------
#
# A group document makes members only for access rules whose owner may read it. Otherwise whoever
# names a private group of somebody else in rules of their own would learn from the answers who
# is a member of it.


MALLORY = f"{BASE}/mallory/#me"
GROUP = f"{BASE}/pod/private/team#a"
DOCUMENT = "/pod/private/team"
READ_MEMBERS = f"<#a> vcard:hasMember <{BOB}>."
PROBE = "/mallory/probe"


def two_pods(*groups: str, owner: str | None = MALLORY) -> World:
    """A private group in one pod, and rules in another that name it (or other groups)."""
    world = pod()
    world.store(DOCUMENT, READ_MEMBERS)
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
    world.acl(DOCUMENT, rule(f"acl:agent <{MALLORY}>", modes, "team") + READ_MEMBERS)
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
    world.store("/mallory/other", READ_MEMBERS)
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
    world.store("/mallory/team", READ_MEMBERS)
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
    world.store(names[-1], READ_MEMBERS)
    assert await world.held(PROBE, identity(BOB)) == ""
    world.store(names[-2], READ_MEMBERS)
    assert await world.held(PROBE, identity(BOB)) == "read"


async def test_a_group_deeper_than_any_resource_has_no_members() -> None:
    world = two_pods(f"{BASE}/pod/{'a/' * 120}team#a")
    assert await world.held(PROBE, identity(BOB)) == ""
