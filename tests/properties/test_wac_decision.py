"""Laws of access decisions over arbitrary ACL documents, and agreement with the specification.

The oracle is ``wac_oracle.py``, which reads the same text with another RDF library.
Whatever a document grants follows from the authorizations that match, the origins that they name
and the modes that contain each other, so that two authorizations are enough for every rule to meet
every other: all such pairs are compared. Longer documents, with statements that are not valid or
are about something else, are compared at random.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podstead.wac.acl import read_acl
from podstead.wac.decision import Requester, Rules, agent_modes
from podstead.wac.modes import Mode, Modes
from tests.properties.acl_documents import (
    ACL_URL,
    CONTAINER,
    GROUPS,
    ORIGINS,
    PLAIN,
    Rule,
    documents,
    origins,
    requesters,
    turtle,
)
from tests.properties.wac_oracle import Oracle
from tests.support.wac_world import BOB, CAROL, PREFIXES, World, graph_of, identity, path


def rules(text: str, *, access_to: bool) -> Rules:
    acl = read_acl(graph_of(text, ACL_URL), subject_url=CONTAINER)
    applying = acl.about_subject() if access_to else acl.about_contents()
    return Rules.of(applying)


def held(text: str, names: set[str], origin: str | None, *, access_to: bool) -> Modes:
    """What our decision grants an identity."""
    return modes_of(rules(text, access_to=access_to), names, origin)


def modes_of(applying: Rules, names: set[str], origin: str | None) -> Modes:
    memberships = {group for group in applying.groups if GROUPS[group] & names}
    requester = Requester(frozenset(names), frozenset(memberships), origin)
    return agent_modes(applying, requester)


def open_to_all(text: str, *, access_to: bool) -> Modes:
    return rules(text, access_to=access_to).public


SUBJECTS: list[dict[str, tuple[str, ...]]] = [
    {"agents": (BOB,)},
    {"groups": (f"{CONTAINER}g#one",)},
    {"classes": ("acl:AuthenticatedAgent",)},
    {"classes": ("foaf:Agent",)},
    {},
]
"""Whom an authorization names; the last one names nobody."""


def single_rules() -> list[Rule]:
    """Every subject with and without an origin, for modes that contain each other and another."""
    return [
        replace(PLAIN, **{"agents": (), **subject}, origins=named, modes=(f"acl:{mode}",))
        for subject in SUBJECTS
        for named in ((), (ORIGINS[0],))
        for mode in ("Read", "Append", "Write")
    ]


def assert_as_specified(
    document: list[Rule], agents: list[set[str]], origin: str | None, *, access_to: bool
) -> None:
    """The agents and the public hold what the oracle says."""
    text = turtle(document)
    oracle = Oracle(
        PREFIXES + text, acl_url=ACL_URL, subject=CONTAINER, access_to=access_to, members=GROUPS
    )
    applying = rules(text, access_to=access_to)
    assert {mode.value for mode in applying.public} == oracle.modes(None, origin), text
    for names in agents:
        ours = modes_of(applying, names, origin)
        assert {mode.value for mode in ours} == oracle.modes(names, origin), (text, names)


@pytest.mark.parametrize("origin", [None, *ORIGINS])
def test_any_two_authorizations_grant_what_the_specification_says(origin: str | None) -> None:
    """W-8, W-11 to W-17"""
    for pair in itertools.combinations_with_replacement(single_rules(), 2):
        assert_as_specified(list(pair), [{BOB}, {CAROL}], origin, access_to=True)


@given(documents, requesters, origins)
@example([PLAIN, replace(PLAIN, agents=(), origins=(ORIGINS[0],))], {BOB}, ORIGINS[1])
@example([PLAIN, replace(PLAIN, modes=("acl:Append",), origins=(ORIGINS[0],))], {BOB}, None)
@settings(max_examples=40)
def test_decisions_agree_with_the_specification(
    document: list[Rule], names: set[str], origin: str | None
) -> None:
    """W-8, W-11 to W-17"""
    for access_to in (True, False):
        assert_as_specified(document, [names], origin, access_to=access_to)


@given(documents, requesters, origins, st.booleans(), st.data())
def test_removing_an_authorization_never_grants_more(
    document: list[Rule],
    names: set[str],
    origin: str | None,
    access_to: bool,
    data: st.DataObject,
) -> None:
    """W-16. By choice W-17 the origins that authorizations name restrict the others as well, so one
    that names origins can only be taken away freely where the request has no Origin."""
    removable = [
        number for number, rule in enumerate(document) if origin is None or not rule.origins
    ]
    if not removable:
        return
    gone = data.draw(st.sampled_from(removable))
    less = document[:gone] + document[gone + 1 :]
    before = held(turtle(document), names, origin, access_to=access_to)
    assert held(turtle(less), names, origin, access_to=access_to) <= before
    everybody = open_to_all(turtle(document), access_to=access_to)
    assert open_to_all(turtle(less), access_to=access_to) <= everybody


@given(documents, requesters, origins, st.booleans())
def test_naming_an_origin_never_grants_more_than_naming_none(
    document: list[Rule], names: set[str], origin: str | None, access_to: bool
) -> None:
    """W-17"""
    text = turtle(document)
    anywhere = held(text, names, None, access_to=access_to)
    assert held(text, names, origin, access_to=access_to) <= anywhere


@given(documents, requesters, origins, st.booleans())
def test_every_agent_holds_what_the_public_holds(
    document: list[Rule], names: set[str], origin: str | None, access_to: bool
) -> None:
    """W-13, W-52"""
    text = turtle(document)
    assert open_to_all(text, access_to=access_to) <= held(text, names, origin, access_to=access_to)


@given(documents, requesters, origins, st.booleans())
def test_write_is_never_held_without_append(
    document: list[Rule], names: set[str], origin: str | None, access_to: bool
) -> None:
    """W-15, W-54"""
    text = turtle(document)
    for modes in (
        held(text, names, origin, access_to=access_to),
        open_to_all(text, access_to=access_to),
    ):
        assert Mode.WRITE not in modes or Mode.APPEND in modes


_FOREIGN = st.lists(
    st.tuples(
        st.sampled_from(["<#rule0>", "<#rule1>", "<>", "[]", "<#other>"]),
        st.sampled_from(["ex:mode", "ex:agent", "foaf:member", "acl:delegates", "acl:owner", "a"]),
        st.sampled_from(["ex:Write", f"<{BOB}>", "foaf:Agent", '"acl:Control"', "[]", "5"]),
    ),
    max_size=5,
)


@given(documents, _FOREIGN, requesters, origins, st.booleans())
def test_foreign_statements_change_nothing(
    document: list[Rule],
    foreign: list[tuple[str, str, str]],
    names: set[str],
    origin: str | None,
    access_to: bool,
) -> None:
    """W-16"""
    text = turtle(document)
    extra = "\n".join(" ".join(triple) + "." for triple in foreign)
    plain = held(text, names, origin, access_to=access_to)
    assert held(f"{text}\n{extra}", names, origin, access_to=access_to) == plain


_BREAKS = st.sampled_from(["<", "}", '"', "acl:mode", "@", "ex:a ex:b", ". ."])


@given(documents, _BREAKS, st.sampled_from([None, BOB, CAROL]))
async def test_a_malformed_acl_never_grants(
    document: list[Rule], broken_by: str, agent: str | None
) -> None:
    """W-7: not what can be read of it, and not what the container above would."""
    world = World()
    world.acl(
        "/pod/",
        "[] a acl:Authorization; acl:agentClass foaf:Agent; "
        "acl:accessTo <./>; acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.",
    )
    world.acl("/pod/c/", turtle(document) + "\n" + broken_by)
    requester = None if agent is None else identity(agent)
    grant = await world.gate.grant(requester, None, path("/pod/c/"), world.snapshot_for("/pod/c/"))
    assert (grant.user, grant.public) == (frozenset(), frozenset())
