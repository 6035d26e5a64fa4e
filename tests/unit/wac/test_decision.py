"""Which modes an agent holds: the rules about subjects, origins and owners, one by one."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from podstead.wac.acl import read_acl
from podstead.wac.decision import NO_RULES, Requester, Rules, agent_modes
from podstead.wac.modes import wac_allow
from tests.support.wac_world import ALICE, BASE, BOB, CAROL, graph_of, rule

SUBJECT = f"{BASE}/pod/c/"
APP = "https://app.example"
OTHER_APP = "https://other.example"

AGENT_BOB = f"acl:agent <{BOB}>"
PUBLIC = "acl:agentClass foaf:Agent"
AUTHENTICATED = "acl:agentClass acl:AuthenticatedAgent"
FAMILY = "acl:agentGroup <groups#family>"
FROM_APP = f"acl:origin <{APP}>"


def rules(*turtle: str, inherited: bool = False) -> Rules:
    document = read_acl(graph_of("".join(turtle), SUBJECT + ".acl"), subject_url=SUBJECT)
    applying = document.about_contents() if inherited else document.about_subject()
    return Rules.of(applying)


def held(applying: Rules, requester: Requester) -> str:
    return wac_allow(agent_modes(applying, requester), applying.public).split('"')[1]


def public(applying: Rules) -> str:
    return wac_allow(applying.public, applying.public).split('"')[1]


def about(who: str, modes: str) -> str:
    return rule(who, modes, "./")


def asking(
    *names: str, groups: tuple[str, ...] = (), origin: str | None = None, owner: bool = False
) -> Requester:
    return Requester(frozenset(names), frozenset(groups), origin, owns_storage=owner)


# --- subjects -----------------------------------------------------------------------------


def test_an_agent_holds_what_names_it_and_others_do_not() -> None:
    """W-13"""
    applying = rules(about(AGENT_BOB, "R"))
    assert held(applying, asking(BOB)) == "read"
    assert held(applying, asking(CAROL)) == ""
    assert public(applying) == ""


def test_an_agent_is_matched_by_any_of_its_names() -> None:
    """A-4"""
    applying = rules(about("acl:agent <did:nostr:AB>", "R"))
    assert held(applying, asking(BOB, "did:nostr:ab")) == "read"
    assert held(applying, asking(BOB)) == ""


@pytest.mark.parametrize("near", [BOB.removesuffix("#me"), BOB + "2", BOB.upper()])
def test_a_similar_name_is_another_agent(near: str) -> None:
    """W-13: IRI equality"""
    assert held(rules(about(AGENT_BOB, "R")), asking(near)) == ""


def test_the_public_class_is_everybody_with_or_without_credentials() -> None:
    """W-13"""
    applying = rules(about(PUBLIC, "R"))
    assert held(applying, asking(BOB)) == "read"
    assert public(applying) == "read"


def test_the_authenticated_class_is_every_agent_and_never_the_public() -> None:
    """W-13"""
    applying = rules(about(AUTHENTICATED, "R"))
    assert held(applying, asking(BOB)) == "read"
    assert public(applying) == ""


def test_a_group_gives_its_modes_to_its_members_only() -> None:
    """W-13"""
    applying = rules(about(FAMILY, "R"))
    assert applying.groups == {f"{SUBJECT}groups#family"}
    assert held(applying, asking(BOB, groups=(f"{SUBJECT}groups#family",))) == "read"
    assert held(applying, asking(BOB, groups=(f"{SUBJECT}groups#friends",))) == ""
    assert held(applying, asking(BOB)) == ""
    assert public(applying) == ""


# --- modes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modes", "expected"),
    [("R", "read"), ("A", "append"), ("W", "write append"), ("C", "control")],
)
def test_each_mode_gives_itself_and_only_write_gives_more(modes: str, expected: str) -> None:
    """W-15"""
    assert held(rules(about(AGENT_BOB, modes)), asking(BOB)) == expected


def test_the_modes_of_all_matching_authorizations_add_up() -> None:
    """W-16"""
    applying = rules(
        about(AGENT_BOB, "R"), about(AUTHENTICATED, "A"), about(PUBLIC, "C"), about(FAMILY, "W")
    )
    assert held(applying, asking(BOB)) == "read append control"
    assert public(applying) == "control"


def test_rules_for_the_resource_do_not_count_below_it_nor_the_other_way_round() -> None:
    """W-10"""
    turtle = about(AGENT_BOB, "R") + rule(AGENT_BOB, "A", "./", access_to=False, default=True)
    assert held(rules(turtle), asking(BOB)) == "read"
    assert held(rules(turtle, inherited=True), asking(BOB)) == "append"


def test_without_rules_nothing_is_granted() -> None:
    assert held(NO_RULES, asking(BOB)) == ""
    assert public(NO_RULES) == ""


# --- origins ------------------------------------------------------------------------------


def test_every_origin_is_trusted_while_no_rule_names_one() -> None:
    """W-17: else every web application would be locked out of every private resource."""
    assert held(rules(about(AGENT_BOB, "R")), asking(BOB, origin=OTHER_APP)) == "read"


def test_a_named_origin_admits_that_origin_only() -> None:
    """W-17"""
    applying = rules(about(f"{AGENT_BOB}; {FROM_APP}", "R"))
    assert held(applying, asking(BOB, origin=APP)) == "read"
    assert held(applying, asking(BOB, origin=OTHER_APP)) == ""


def test_without_an_origin_header_the_named_origins_do_not_matter() -> None:
    """W-17"""
    assert held(rules(about(f"{AGENT_BOB}; {FROM_APP}", "R")), asking(BOB)) == "read"


def test_agent_and_origin_may_be_named_by_different_authorizations() -> None:
    """W-17: an agent match, and an authorization whose origin matches."""
    applying = rules(about(AGENT_BOB, "R"), about(FROM_APP, "R"))
    assert held(applying, asking(BOB, origin=APP)) == "read"
    assert held(applying, asking(BOB, origin=OTHER_APP)) == ""


def test_an_authorization_for_an_origin_alone_gives_no_agent_anything() -> None:
    """W-17"""
    applying = rules(about(FROM_APP, "RWC"))
    assert held(applying, asking(BOB, origin=APP)) == ""
    assert public(applying) == ""


def test_an_origin_restricts_only_the_modes_it_is_named_for() -> None:
    """W-17"""
    applying = rules(about(AGENT_BOB, "RA"), about(FROM_APP, "A"))
    assert held(applying, asking(BOB, origin=OTHER_APP)) == "read"
    assert held(applying, asking(BOB, origin=APP)) == "read append"


def test_what_is_open_to_everybody_is_open_from_every_origin() -> None:
    """W-17"""
    applying = rules(about(f"{AGENT_BOB}; {FROM_APP}", "RW"), about(PUBLIC, "R"))
    assert held(applying, asking(BOB, origin=OTHER_APP)) == "read"
    assert held(applying, asking(CAROL, origin=OTHER_APP)) == "read"


def test_a_restricted_append_is_still_part_of_a_write_that_is_held() -> None:
    """W-15, W-17"""
    applying = rules(about(AGENT_BOB, "W"), about(f"acl:agent <{CAROL}>; {FROM_APP}", "A"))
    assert held(applying, asking(BOB, origin=OTHER_APP)) == "write append"


def test_an_origin_that_cannot_match_closes_the_mode_to_all_origins() -> None:
    """W-17"""
    applying = rules(about(f'{AGENT_BOB}; acl:origin "{APP}"', "R"))
    assert held(applying, asking(BOB, origin=APP)) == ""
    assert held(applying, asking(BOB)) == "read"


# --- owners -------------------------------------------------------------------------------


def test_the_owner_of_the_storage_keeps_control_whatever_the_rules_say() -> None:
    """W-7, W-18"""
    assert held(NO_RULES, asking(ALICE, owner=True)) == "control"
    assert held(rules(about(AGENT_BOB, "RWC")), asking(ALICE, owner=True)) == "control"


def test_the_owners_control_brings_nothing_else() -> None:
    """W-15, W-18"""
    assert held(rules(about(PUBLIC, "R")), asking(ALICE, owner=True)) == "read control"


def test_the_owner_too_is_bound_to_the_origins_named_for_control() -> None:
    """W-17, W-18: without an Origin header the owner can always mend the ACL."""
    applying = rules(about(FROM_APP, "C"))
    assert held(applying, asking(ALICE, owner=True, origin=OTHER_APP)) == ""
    assert held(applying, asking(ALICE, owner=True, origin=APP)) == "control"
    assert held(applying, asking(ALICE, owner=True)) == "control"


def lines_executed(applying: Rules, requester: Requester) -> int:
    executed = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401 - itself
        nonlocal executed
        executed += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        agent_modes(applying, requester)
    finally:
        sys.settrace(before)
    return executed


def test_a_decision_takes_no_longer_with_many_rules() -> None:
    """Every request needs one, and anybody with a pod can write an ACL of 10,000 rules."""
    few, many = (
        rules(*(about(f"acl:agent <https://{n}.example/>", "R") for n in range(count)))
        for count in (1, 100)
    )
    for requester in (asking(BOB), asking(BOB, origin=APP)):
        assert lines_executed(few, requester) == lines_executed(many, requester) > 0
