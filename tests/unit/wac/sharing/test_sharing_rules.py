"""Which rules can be edited, which are kept, and what is said of those who have access."""

from __future__ import annotations

import itertools

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.wac.acl import MAX_GROUPS
from podstead.wac.modes import ALL_MODES, Mode, with_entailed
from podstead.wac.sharing.access import Scope, access_list
from podstead.wac.sharing.rules import (
    AUTHENTICATED,
    EVERYONE,
    ROLE_MODES,
    Peculiarity,
    Role,
    RuleSet,
    agent,
    group,
    read_rules,
    role_of,
)
from tests.support.wac_world import BASE, BOB, graph_of

FOLDER = ResourcePath("/pod/c/")
GROUP = "https://groups.example/g#us"


def rules(turtle: str) -> RuleSet:
    return read_rules(graph_of(turtle, f"{BASE}{FOLDER}.acl"), subject_url=BASE + FOLDER)


def test_every_role_is_one_set_of_modes_and_every_other_set_is_named_as_it_is() -> None:
    for size in range(len(ALL_MODES) + 1):
        for modes in itertools.combinations(Mode, size):
            held = with_entailed(modes)
            named = [role for role, granted in ROLE_MODES.items() if granted == held]
            otherwise = Role.OTHER if held else None
            assert role_of(frozenset(modes)) == (named[0] if named else otherwise)


PLAIN = f"<#r> a acl:Authorization; acl:agent <{BOB}>; acl:accessTo <./>; acl:mode acl:Read"


@pytest.mark.parametrize(
    ("further", "peculiarity"),
    [
        ("", None),
        ("; acl:agentClass foaf:Agent, acl:AuthenticatedAgent", None),
        ("; acl:origin <https://app.example>", Peculiarity.ORIGINS),
        ("; acl:origin 'no origin'", Peculiarity.ORIGINS),
        ("; acl:accessTo <other>", Peculiarity.OTHER_RESOURCE),
        ("; acl:default <../>", Peculiarity.OTHER_RESOURCE),
        ("; acl:agentClass ex:Friends", Peculiarity.UNKNOWN_CLASS),
        ("; acl:mode ex:Fly", Peculiarity.UNKNOWN_MODE),
        ("; acl:condition [ a ex:Condition ]", Peculiarity.FURTHER_STATEMENTS),
        ("; a ex:Rule", Peculiarity.FURTHER_STATEMENTS),
        ("; acl:agent 'Bob'", Peculiarity.FURTHER_STATEMENTS),
        ("; acl:owner ex:somebody", Peculiarity.FURTHER_STATEMENTS),
    ],
)
def test_a_rule_is_plain_if_it_states_nothing_but_roles_can_express(
    further: str, peculiarity: Peculiarity | None
) -> None:
    (rule,) = rules(f"{PLAIN}{further}.").rules
    assert rule.peculiarities == ({peculiarity} if peculiarity else frozenset())


def test_a_rule_without_effect_is_special() -> None:
    for turtle in (
        "<#r> a acl:Authorization; acl:accessTo <./>; acl:mode acl:Read.",
        f"<#r> a acl:Authorization; acl:agent <{BOB}>; acl:accessTo <./>.",
        f"<#r> a acl:Authorization; acl:agent <{BOB}>; acl:mode acl:Read.",
    ):
        (rule,) = rules(turtle).rules
        assert rule.peculiarities == {Peculiarity.NO_EFFECT}


def test_an_acl_with_too_many_groups_grants_nothing() -> None:
    named = ", ".join(f"<https://groups.example/{number}#g>" for number in range(MAX_GROUPS + 1))
    found = rules(f"{PLAIN}; acl:agentGroup {named}.")
    assert found.is_void
    assert found.about_subject() == ()


def test_the_list_begins_with_those_who_are_most() -> None:
    found = rules(
        f"<#a> a acl:Authorization; acl:agent <{BOB}>; acl:agentGroup <{GROUP}>; "
        "acl:agentClass acl:AuthenticatedAgent, foaf:Agent; acl:accessTo <./>; acl:mode acl:Read."
    )
    listed = access_list(found, FOLDER, inherited_from=None, owner=None)
    assert [entry.grantee for entry in listed.entries] == [
        EVERYONE,
        AUTHENTICATED,
        group(GROUP),
        agent(BOB),
    ]
    assert {entry.scope for entry in listed.entries} == {Scope.THIS}


def test_one_agent_in_several_rules_is_one_entry_for_each_part() -> None:
    turtle = (
        f"<#a> a acl:Authorization; acl:agent <{BOB}>; acl:accessTo <./>; acl:mode acl:Read. "
        f"<#b> a acl:Authorization; acl:agent <{BOB}>; acl:accessTo <./>; acl:default <./>; "
        "acl:mode acl:Append."
    )
    listed = access_list(rules(turtle), FOLDER, inherited_from=None, owner=None)
    assert [(entry.role, entry.scope) for entry in listed.entries] == [
        (Role.ADD, Scope.THIS),
        (Role.OTHER, Scope.INSIDE),
    ]
    below = access_list(rules(turtle), ResourcePath("/pod/c/d"), inherited_from=FOLDER, owner=None)
    (entry,) = below.entries
    assert (entry.role, entry.sentence.id) == (Role.OTHER, "agent-other")
    assert entry.inherited_from == FOLDER
