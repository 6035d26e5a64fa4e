"""Laws of editing access rules, over arbitrary ACL documents.

The oracle is ``tests/properties/wac_oracle.py``, which reads the documents before and after an edit
with another RDF library and grants what the specification says.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podstead.rdf.graph import Graph
from podstead.rdf.turtle_writer import write_turtle
from podstead.wac.acl import ALWAYS, ConditionContext, PeriodCondition
from podstead.wac.decision import Requester, Rules, agent_modes
from podstead.wac.modes import NO_MODES, Mode, Modes, with_entailed
from podstead.wac.sharing.access import explain
from podstead.wac.sharing.editing import AccessChange, as_own_rules, with_changes
from podstead.wac.sharing.rules import (
    AUTHENTICATED,
    CONDITION,
    EVERYONE,
    Grantee,
    agent,
    grantees_of,
    group,
    read_rules,
)
from tests.properties.acl_documents import (
    ACL_URL,
    CONTAINER,
    GROUPS,
    PLAIN,
    Rule,
    documents,
    origins,
    requesters,
    turtle,
)
from tests.properties.wac_oracle import Oracle
from tests.support.wac_world import BOB, CAROL, graph_of

IN_NO_GROUP = "https://nobody.example/#x"
STRANGER = "https://stranger.example/#me"
CHILD = f"{CONTAINER}d/"

modes_strategy = st.frozensets(st.sampled_from(Mode)).map(with_entailed)
optional_modes = st.one_of(st.none(), modes_strategy)
agents = st.sampled_from([agent(BOB), agent(CAROL), agent(IN_NO_GROUP), agent(STRANGER)])
grantees = st.one_of(
    agents, st.sampled_from([EVERYONE, AUTHENTICATED, *(group(iri) for iri in GROUPS)])
)


def document_graph(document: list[Rule]) -> Graph:
    return graph_of(turtle(document), ACL_URL)


def oracle(graph: Graph, *, access_to: bool, url: str = ACL_URL) -> Oracle:
    return Oracle(
        write_turtle(graph, {}, base_iri=url).decode(),
        acl_url=url,
        subject=url.removesuffix(".acl"),
        access_to=access_to,
        members=GROUPS,
    )


def edited(graph: Graph, grantee: Grantee, here: Modes | None, inside: Modes | None) -> Graph:
    change = AccessChange(grantee, here=here, inside=inside)
    return with_changes(graph, [change], acl_url=ACL_URL, subject_url=CONTAINER)


@given(documents, grantees, optional_modes, optional_modes)
def test_an_edit_keeps_every_statement_that_is_not_about_the_grantee(
    document: list[Rule], grantee: Grantee, here: Modes | None, inside: Modes | None
) -> None:
    before = document_graph(document)
    after = edited(before, grantee, here, inside)
    concerned = {
        rule.node
        for rule in read_rules(before, subject_url=CONTAINER).plain
        if grantee in grantees_of(rule.authorization)
    }
    removed = before - after
    assert {subject for subject, _, _ in removed} <= concerned
    # What is new is about nobody else.
    known = set(before.subjects())
    for rule in read_rules(after, subject_url=CONTAINER).rules:
        if rule.node not in known:
            assert grantees_of(rule.authorization) == (grantee,)
    assert {subject for subject, _, _ in after - before}.isdisjoint(known)


@given(documents, agents, optional_modes, optional_modes, st.booleans(), origins)
def test_an_edit_changes_nothing_for_others(
    document: list[Rule],
    grantee: Grantee,
    here: Modes | None,
    inside: Modes | None,
    access_to: bool,
    origin: str | None,
) -> None:
    before = document_graph(document)
    after = edited(before, grantee, here, inside)
    was, now = (oracle(graph, access_to=access_to) for graph in (before, after))
    assert was.modes(None, origin) == now.modes(None, origin)
    for other in (BOB, CAROL, IN_NO_GROUP, STRANGER):
        if other != grantee.iri:
            assert was.modes({other}, origin) == now.modes({other}, origin)


@given(documents, agents, modes_strategy, optional_modes)
@example([PLAIN], agent(BOB), frozenset({Mode.READ}), None)
@example([replace(PLAIN, agents=(BOB, CAROL))], agent(BOB), frozenset({Mode.READ}), None)
@example([PLAIN], agent(BOB), frozenset({Mode.READ}), frozenset({Mode.READ}))
def test_an_edit_gives_the_modes_asked_for(
    document: list[Rule], grantee: Grantee, here: Modes, inside: Modes | None
) -> None:
    """Beside those that the agent has by rules that name others, or that are kept."""
    before = document_graph(document)
    without = edited(before, grantee, NO_MODES, NO_MODES)
    after = edited(before, grantee, here, inside)
    otherwise = oracle(without, access_to=True).modes({grantee.iri}, None)
    assert oracle(after, access_to=True).modes({grantee.iri}, None) == otherwise | set(here)
    if inside is None:
        was, now = (oracle(graph, access_to=False) for graph in (before, after))
        assert was.modes({grantee.iri}, None) == now.modes({grantee.iri}, None)
    else:
        otherwise = oracle(without, access_to=False).modes({grantee.iri}, None)
        assert oracle(after, access_to=False).modes({grantee.iri}, None) == otherwise | set(inside)


@given(documents, st.booleans())
def test_who_was_removed_has_what_a_stranger_has_unless_special_rules_name_them(
    document: list[Rule], access_to: bool
) -> None:
    after = edited(document_graph(document), agent(IN_NO_GROUP), NO_MODES, NO_MODES)
    special = read_rules(after, subject_url=CONTAINER).special
    if any(agent(IN_NO_GROUP) in grantees_of(rule.authorization) for rule in special):
        return
    decided = oracle(after, access_to=access_to)
    assert decided.modes({IN_NO_GROUP}, None) == decided.modes({STRANGER}, None)


@given(documents, grantees, modes_strategy, modes_strategy)
def test_an_edit_made_twice_changes_nothing_the_second_time(
    document: list[Rule], grantee: Grantee, here: Modes, inside: Modes
) -> None:
    once = edited(document_graph(document), grantee, here, inside)
    assert edited(once, grantee, here, inside) == once


_EXTRA = st.sampled_from(
    [
        "",
        "<#rule0> acl:condition [ a ex:Condition; ex:within [ ex:hours 5 ] ].",
        (
            "<#rule0> ex:see [ a acl:Authorization; acl:agentClass foaf:Agent; "
            "acl:default <./>; acl:mode acl:Write ]."
        ),
        (
            "<https://elsewhere.example/#rule0> a acl:Authorization; acl:agentClass foaf:Agent; "
            "acl:default <./>; acl:mode acl:Read."
        ),
        (
            "<#share-1> a acl:Authorization; acl:agentClass foaf:Agent; acl:default <./>; "
            "acl:mode acl:Read. <other#share-1> a acl:Authorization; acl:default <./>; "
            f"acl:agent <{BOB}>; acl:mode acl:Control. <plain> a acl:Authorization; "
            f"acl:default <./>; acl:agent <{CAROL}>; acl:mode acl:Write."
        ),
    ]
)


@pytest.mark.parametrize("child", [CHILD, CHILD + "doc"])
@given(document=documents, extra=_EXTRA, names=requesters, origin=origins)
def test_own_rules_copied_from_a_folder_grant_what_was_inherited(
    child: str, document: list[Rule], extra: str, names: set[str], origin: str | None
) -> None:
    before = graph_of(turtle(document) + extra, ACL_URL)
    own = f"{child}.acl"
    copied = as_own_rules(before, from_url=CONTAINER, acl_url=own, subject_url=child)
    inherited = oracle(before, access_to=False)
    for access_to in (True, False) if child.endswith("/") else (True,):
        granted = oracle(copied, access_to=access_to, url=own)
        assert granted.modes(names, origin) == inherited.modes(names, origin)
        assert granted.modes(None, origin) == inherited.modes(None, origin)


@given(documents, st.one_of(st.none(), requesters), origins, st.booleans())
def test_an_explanation_gives_the_modes_of_the_decision_and_a_reason_for_each(
    document: list[Rule], names: set[str] | None, origin: str | None, access_to: bool
) -> None:
    graph = document_graph(document)
    rules = read_rules(graph, subject_url=CONTAINER)
    applying = rules.about_subject() if access_to else rules.about_contents()
    decided = Rules.of(tuple(rule.authorization for rule in applying))
    requester = None
    if names is not None:
        groups = frozenset(iri for iri in decided.groups if GROUPS[iri] & names)
        requester = Requester(frozenset(names), groups, origin)
    explanation = explain(applying, requester, ConditionContext(0))
    expected = decided.public if requester is None else agent_modes(decided, requester)
    assert explanation.modes == expected
    assert {mode.value for mode in explanation.modes} == oracle(graph, access_to=access_to).modes(
        names, origin if names else None
    )
    for mode in Mode:
        reasons = explanation.about(mode)
        assert reasons
        assert {reason.grants for reason in reasons} == {mode in explanation.modes}


# --- ends ----------------------------------------------------------------------------------------

END_MS = 1_900_000_000_000
EARLIER_MS = 1_800_000_000_000
periods = st.sampled_from(
    [ALWAYS]
    + [PeriodCondition(ends_ms=each) for each in (EARLIER_MS, END_MS)]
    + [PeriodCondition(EARLIER_MS, each) for each in (None, END_MS)]
)
END = PeriodCondition(ends_ms=END_MS)
UNTIL_THE_END = frozenset({END})
CONDITIONS = """
@prefix access: <urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#>.
<#limited> a acl:Authorization; acl:agent <{0}>; acl:accessTo <./>; acl:default <./>;
    acl:mode acl:Read;
    acl:condition <#app>, [ a access:PeriodCondition; access:begins 5 ], [ a ex:Weather ].
<#app> a acl:ClientCondition; acl:client <https://app.example/id>.
"""


def with_conditions(document: list[Rule]) -> Graph:
    return graph_of(f"{turtle(document)}\n{CONDITIONS.format(BOB)}", ACL_URL)


def granted_at(graph: Graph, names: set[str], now_ms: int, *, access_to: bool) -> Modes:
    """What plain rules grant, as the gate would decide."""
    rules = read_rules(graph, subject_url=CONTAINER)
    applying = rules.about_subject() if access_to else rules.about_contents()
    plain = tuple(rule.authorization for rule in applying if rule.is_plain)
    decided = Rules.of(plain).under(ConditionContext(now_ms))
    groups = frozenset(iri for iri in decided.groups if GROUPS[iri] & names)
    return agent_modes(decided, Requester(frozenset(names), groups))


@given(documents, agents, modes_strategy, periods, modes_strategy, periods)
def test_what_is_given_for_a_period_holds_then_and_can_be_changed(
    document: list[Rule],
    grantee: Grantee,
    first: Modes,
    first_period: PeriodCondition,
    second: Modes,
    second_period: PeriodCondition,
) -> None:
    """Beside what the agent has by rules that name others; nothing of the first edit remains."""
    before = with_conditions(document)
    graph, names = before, {grantee.iri}
    nothing = AccessChange(grantee, here=NO_MODES, inside=NO_MODES)
    for modes, period in ((first, first_period), (second, second_period)):
        change = AccessChange(grantee, here=modes, inside=modes, period=period)
        graph = with_changes(graph, [change], acl_url=ACL_URL, subject_url=CONTAINER)
        without = with_changes(graph, [nothing], acl_url=ACL_URL, subject_url=CONTAINER)
        for access_to in (True, False):
            for now_ms in (EARLIER_MS - 1, EARLIER_MS, END_MS - 1, END_MS):
                otherwise = granted_at(without, names, now_ms, access_to=access_to)
                has_begun = period.begins_ms is None or now_ms >= period.begins_ms
                is_over = period.ends_ms is not None and now_ms >= period.ends_ms
                given_ = modes if has_begun and not is_over else NO_MODES
                held = granted_at(graph, names, now_ms, access_to=access_to)
                assert held == with_entailed(otherwise | given_)
        assert without == with_changes(before, [nothing], acl_url=ACL_URL, subject_url=CONTAINER)


@given(documents, agents, modes_strategy, modes_strategy)
def test_an_edit_of_one_entry_keeps_those_with_another_end(
    document: list[Rule], grantee: Grantee, lasting: Modes, ending: Modes
) -> None:
    both = [
        AccessChange(grantee, here=lasting, inside=lasting, replaced=frozenset({ALWAYS})),
        AccessChange(grantee, ending, ending, END, replaced=UNTIL_THE_END),
    ]
    before = with_conditions(document)
    graph = with_changes(before, both, acl_url=ACL_URL, subject_url=CONTAINER)
    removal = AccessChange(grantee, NO_MODES, NO_MODES, replaced=UNTIL_THE_END)
    after = with_changes(graph, [removal], acl_url=ACL_URL, subject_url=CONTAINER)
    assert after == with_changes(
        with_changes(before, [removal], acl_url=ACL_URL, subject_url=CONTAINER),
        both[:1],
        acl_url=ACL_URL,
        subject_url=CONTAINER,
    )


@given(documents, grantees, optional_modes, optional_modes, periods)
def test_rules_with_conditions_are_kept(
    document: list[Rule],
    grantee: Grantee,
    here: Modes | None,
    inside: Modes | None,
    period: PeriodCondition,
) -> None:
    before = with_conditions(document)
    change = AccessChange(grantee, here, inside, period)
    after = with_changes(before, [change], acl_url=ACL_URL, subject_url=CONTAINER)
    (limited,) = (
        rule
        for rule in read_rules(before, subject_url=CONTAINER).special
        if rule.name == f"{ACL_URL}#limited"
    )
    conditions = limited.description[CONDITION]
    changed = {subject for subject, _, _ in before - after}
    assert changed.isdisjoint({limited.node, *conditions})


@given(documents)
def test_conditions_go_along_when_rules_are_copied(document: list[Rule]) -> None:
    """Also those with a name: without its description, a condition would not be evaluated."""
    graph = with_conditions(document)
    url = f"{CHILD}.acl"
    copied = as_own_rules(graph, from_url=CONTAINER, acl_url=url, subject_url=CHILD)
    (was,) = (
        rule
        for rule in read_rules(graph, subject_url=CONTAINER).rules
        if rule.name == f"{ACL_URL}#limited"
    )
    (now,) = (
        rule
        for rule in read_rules(copied, subject_url=CHILD).rules
        if rule.name == f"{url}#limited"
    )
    assert sorted(map(str, now.authorization.conditions)) == sorted(
        map(str, was.authorization.conditions)
    )
    assert now.ignored_conditions == was.ignored_conditions
