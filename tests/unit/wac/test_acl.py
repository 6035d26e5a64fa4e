"""What applies in an ACL document, what is ignored, and what must not be stored."""

from __future__ import annotations

import pytest

from podstead.core.errors import BadRequest, Conflict
from podstead.wac.acl import (
    DENYING_ACL,
    MAX_GROUPS,
    UNMATCHABLE_ORIGIN,
    AclDocument,
    Authorization,
    check_storable,
    read_acl,
)
from podstead.wac.modes import Mode
from tests.support.wac_world import ALICE, BASE, BOB, graph_of

CONTAINER = f"{BASE}/pod/c/"
DOCUMENT = f"{BASE}/pod/c/doc.ttl"

VALID = f"""
<#bob> a acl:Authorization;
    acl:agent <{BOB}>;
    acl:accessTo <./>;
    acl:mode acl:Read.
"""


def read(turtle: str, subject_url: str = CONTAINER) -> AclDocument:
    return read_acl(graph_of(turtle, subject_url + ".acl"), subject_url=subject_url)


def only(turtle: str, subject_url: str = CONTAINER) -> Authorization:
    (authorization,) = read(turtle, subject_url).authorizations
    return authorization


def test_an_authorization_is_read_with_all_it_says() -> None:
    """W-12, W-13"""
    authorization = only(
        f"""
        <#x> a acl:Authorization;
            acl:agent <{BOB}>, <{ALICE}>;
            acl:agentGroup <groups#a>;
            acl:agentClass foaf:Agent, acl:AuthenticatedAgent;
            acl:origin <https://app.example>;
            acl:accessTo <./>; acl:default <./>;
            acl:mode acl:Read, acl:Control.
        """
    )
    assert authorization == Authorization(
        access_to=True,
        default=True,
        modes=frozenset({Mode.READ, Mode.CONTROL}),
        agents=frozenset({ALICE, BOB}),
        groups=frozenset({f"{CONTAINER}groups#a"}),
        public=True,
        authenticated=True,
        origins=frozenset({"https://app.example"}),
    )


def test_an_authorization_may_be_a_blank_node() -> None:
    """W-12"""
    assert only(VALID.replace("<#bob>", "[]")).agents == {BOB}


@pytest.mark.parametrize(
    ("left_out", "replacement"),
    [
        pytest.param("a acl:Authorization;", "", id="no type"),
        pytest.param("a acl:Authorization;", "a acl:authorization;", id="another type"),
        pytest.param("acl:accessTo <./>;", "", id="no object"),
        pytest.param("acl:mode acl:Read", "acl:mode acl:Delete", id="no known mode"),
        pytest.param("acl:mode acl:Read", "acl:mode ex:Read", id="foreign mode"),
        pytest.param("acl:mode acl:Read", 'acl:mode "acl:Read"', id="mode as text"),
        pytest.param(f"acl:agent <{BOB}>;", "", id="no subject"),
        pytest.param(f"acl:agent <{BOB}>;", f'acl:agent "{BOB}";', id="agent as text"),
        pytest.param(f"acl:agent <{BOB}>;", "acl:agentClass foaf:Person;", id="other class"),
        pytest.param(f"acl:agent <{BOB}>;", "acl:agentClass ex:Agent;", id="foreign class"),
        pytest.param(f"acl:agent <{BOB}>;", "ex:agent foaf:Agent;", id="foreign predicate"),
    ],
)
def test_an_incomplete_authorization_is_ignored(left_out: str, replacement: str) -> None:
    """W-12, W-16"""
    assert left_out in VALID
    assert len(read(VALID).authorizations) == 1
    assert read(VALID.replace(left_out, replacement)) == AclDocument(())


def test_foreign_statements_change_nothing() -> None:
    """W-16"""
    extra = (
        "<#bob> ex:until 2030; a ex:Rule; acl:mode ex:Fly; acl:agentClass ex:Friends. <> a ex:A."
    )
    assert read(VALID + extra) == read(VALID)


def test_conditions_are_ignored_as_none_is_advertised() -> None:
    """W-9"""
    assert read(VALID + "<#bob> acl:condition [ a acl:ClientCondition ].") == read(VALID)


def test_write_is_read_as_write_and_append() -> None:
    """W-15"""
    authorization = only(VALID.replace("acl:Read", "acl:Write"))
    assert authorization.modes == {Mode.WRITE, Mode.APPEND}


@pytest.mark.parametrize(
    "name",
    ["./", "../c/", CONTAINER, CONTAINER.replace("localhost", "LOCALHOST"), f"{BASE}/pod/%63/"],
)
def test_the_subject_is_recognised_in_every_spelling(name: str) -> None:
    """W-11: relative IRIs resolve against the ACL, host without case, escapes undone."""
    assert only(VALID.replace("<./>", f"<{name}>")).access_to


@pytest.mark.parametrize(
    "name",
    [
        "",  # the ACL itself
        "../c",  # no trailing slash
        "../",  # the container above
        "doc.ttl",  # a member
        "doc.ttl#it",
        "./#",
        "./?x",
        "https://localhost:3000/pod/c/",
        "http://localhost/pod/c/",
        f"{BASE}/POD/c/",
    ],
)
@pytest.mark.parametrize("predicate", ["accessTo", "default"])
def test_rules_about_anything_else_do_not_apply(name: str, predicate: str) -> None:
    """W-11: exact match; an ACL cannot speak about other resources, not even below its own."""
    turtle = VALID.replace("acl:accessTo <./>", f"acl:{predicate} <{name}>")
    assert read(turtle) == AclDocument(())


def test_a_rule_about_a_fragment_of_a_container_is_about_its_description() -> None:
    """It applies to nothing else, and only as ``acl:accessTo`` with Read for agents."""
    turtle = VALID.replace("<./>", "<./#it>")
    document = read(turtle)
    assert (document.about_subject(), document.about_contents()) == ((), ())
    assert len(document.about_description()) == 1
    for other in (
        turtle.replace("accessTo", "default"),
        turtle.replace("acl:Read", "acl:Write"),
        turtle.replace("acl:agent ", "acl:origin "),
    ):
        assert other != turtle
        assert read(other) == AclDocument(())


def test_an_object_given_as_text_is_not_an_object() -> None:
    assert read(VALID.replace("<./>", f'"{CONTAINER}"')) == AclDocument(())


def test_access_to_applies_to_the_subject_and_default_to_what_lies_below() -> None:
    """W-10"""
    turtle = VALID + VALID.replace("accessTo", "default").replace("<#bob>", "<#below>")
    document = read(turtle)
    (own,) = document.about_subject()
    (inherited,) = document.about_contents()
    assert (own.access_to, own.default) == (True, False)
    assert (inherited.access_to, inherited.default) == (False, True)


def test_a_document_has_nothing_below_it() -> None:
    """W-11: ``acl:default`` names containers."""
    turtle = VALID.replace("<./>", "<doc.ttl>")
    assert only(turtle, DOCUMENT).access_to
    assert read(turtle.replace("accessTo", "default"), DOCUMENT) == AclDocument(())


def test_rules_that_name_only_origins_are_kept_and_name_no_agent() -> None:
    """W-12, W-17"""
    authorization = only(VALID.replace(f"acl:agent <{BOB}>", "acl:origin <https://app.example>"))
    assert authorization.origins == {"https://app.example"}
    assert not authorization.names_agents


@pytest.mark.parametrize("origin", ['"https://app.example"', "[]", "<https://app.example/x>", "<>"])
def test_an_origin_that_cannot_be_one_restricts_all_the_same(origin: str) -> None:
    """W-17: overlooking it would open what was meant to be closed."""
    authorization = only(VALID + f"<#bob> acl:origin {origin}.")
    assert authorization.origins == {UNMATCHABLE_ORIGIN}


def test_agents_known_by_a_key_compare_without_case() -> None:
    """A-150"""
    assert only(VALID.replace(BOB, "did:nostr:ABC")).agents == {"did:nostr:abc"}


def groups(count: int) -> str:
    return ", ".join(f"<groups#{number}>" for number in range(count))


def test_an_acl_may_name_groups_up_to_the_limit() -> None:
    turtle = VALID + f"<#bob> acl:agentGroup {groups(MAX_GROUPS)}."
    assert len(only(turtle).groups) == MAX_GROUPS
    check_storable(
        graph_of(turtle, CONTAINER + ".acl"), subject_url=CONTAINER, of_storage_root=False
    )


def test_an_acl_with_more_groups_is_not_stored_and_grants_nothing() -> None:
    turtle = VALID + f"<#bob> acl:agentGroup {groups(MAX_GROUPS + 1)}."
    assert read(turtle) == DENYING_ACL
    with pytest.raises(BadRequest):
        check_storable(
            graph_of(turtle, CONTAINER + ".acl"), subject_url=CONTAINER, of_storage_root=False
        )


@pytest.mark.parametrize(
    "subject",
    [
        f"acl:agent <{BOB}>",
        "acl:agentGroup <g#g>",
        "acl:agentClass foaf:Agent",
        "acl:agentClass acl:AuthenticatedAgent",
    ],
)
def test_the_acl_of_a_storage_may_leave_control_to_anybody(subject: str) -> None:
    """W-4"""
    turtle = f"[] a acl:Authorization; {subject}; acl:accessTo <./>; acl:mode acl:Control."
    check_storable(
        graph_of(turtle, CONTAINER + ".acl"), subject_url=CONTAINER, of_storage_root=True
    )


@pytest.mark.parametrize(
    "turtle",
    [
        pytest.param("", id="nothing"),
        pytest.param(VALID, id="no Control"),
        pytest.param(
            VALID.replace("acl:Read", "acl:Control").replace("accessTo", "default"),
            id="Control of the contents only",
        ),
        pytest.param(
            VALID.replace("acl:Read", "acl:Control").replace("<./>", "<other>"),
            id="Control of something else",
        ),
        pytest.param(
            VALID.replace("acl:Read", "acl:Control").replace(
                f"acl:agent <{BOB}>", "acl:origin <https://app.example>"
            ),
            id="Control for an origin, which is nobody",
        ),
        pytest.param(
            VALID.replace("acl:Read", "acl:Control").replace("a acl:Authorization;", ""),
            id="Control in what is no authorization",
        ),
    ],
)
def test_the_acl_of_a_storage_must_leave_control_to_somebody(turtle: str) -> None:
    """W-4; any other ACL may leave nobody anything."""
    graph = graph_of(turtle, CONTAINER + ".acl")
    with pytest.raises(Conflict):
        check_storable(graph, subject_url=CONTAINER, of_storage_root=True)
    check_storable(graph, subject_url=CONTAINER, of_storage_root=False)


def test_a_subject_that_no_rule_could_name_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="http URL"):
        read_acl(graph_of("", CONTAINER), subject_url="/pod/c/")
