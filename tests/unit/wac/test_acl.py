"""What applies in an ACL document, what is ignored, and what must not be stored."""

from __future__ import annotations

import itertools
import re

import pytest

from podstead.core import vocab
from podstead.core.errors import BadRequest, Conflict
from podstead.core.identifiers import ResourcePath, canonical_url
from podstead.wac.acl import (
    DENYING_ACL,
    MAX_GROUPS,
    UNMATCHABLE_ORIGIN,
    AclDocument,
    Authorization,
    ClientCondition,
    Condition,
    IssuerCondition,
    PeriodCondition,
    agent_name,
    check_storable,
    local_path,
    origin_of,
    read_acl,
)
from podstead.wac.modes import ALL_MODES, Mode, Modes, wac_allow, with_entailed
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
from tests.support.wac_world import ALICE, BASE, BOB, graph_of

CONTAINER = f"{BASE}/pod/c/"
DOCUMENT = f"{BASE}/pod/c/doc.ttl"

LATER = " '1970-01-01T02:00:03+02:00'^^xsd:dateTime"
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


def test_a_condition_of_a_type_that_is_not_advertised_is_ignored() -> None:
    """W-9"""
    for ignored in ("[ a ex:WeatherCondition ]", "[ acl:client ex:app ]", '"soon"', "ex:elsewhere"):
        assert read(VALID + f"<#bob> acl:condition {ignored}.") == read(VALID)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a acl:ClientCondition", ClientCondition()),
        (
            "a acl:ClientCondition; acl:client ex:a, ex:b; acl:clientGroup ex:g",
            ClientCondition(
                frozenset({"http://example.org/a", "http://example.org/b"}),
                frozenset({"http://example.org/g"}),
            ),
        ),
        (
            "a acl:ClientCondition; acl:client 'ex:a'; acl:clientClass foaf:Agent",
            ClientCondition(anyone=True),
        ),
        (
            "a acl:IssuerCondition; acl:issuer <https://idp.example/>; acl:issuerClass ex:Any",
            IssuerCondition(frozenset({"https://idp.example"})),
        ),
        (
            "a access:PeriodCondition; access:begins '1970-01-01T00:00:01Z'^^xsd:dateTime",
            PeriodCondition(begins_ms=1000),
        ),
        (
            "a access:PeriodCondition; access:ends '1970-01-01T00:00:04'^^xsd:dateTime," + LATER,
            PeriodCondition(ends_ms=3000),
        ),
        ("a access:PeriodCondition", PeriodCondition(is_valid=False)),
        ("a access:PeriodCondition; access:end 'x'", PeriodCondition(is_valid=False)),
        ("a access:PeriodCondition; access:ends '2030-01-01'", PeriodCondition(is_valid=False)),
        (
            "a access:PeriodCondition; access:ends '2030-01-01'^^xsd:date",
            PeriodCondition(is_valid=False),
        ),
    ],
)
def test_conditions_are_read(condition: str, expected: Condition) -> None:
    """W-9"""
    prefixes = (
        "@prefix access: <urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#>. "
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#>.\n"
    )
    authorization = only(prefixes + VALID + f"<#bob> acl:condition [ {condition} ].")
    assert authorization.conditions == (expected,)


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


# --- How IRIs in access rules compare ----------------------------------------------------------


BASE_IRI = "https://pods.example"


@pytest.mark.parametrize(
    "iri",
    [
        "https://pods.example/a/caf%C3%A9",
        "https://pods.example/a/caf%c3%a9",
        "https://pods.example/a/café",
        "https://pods.example/%61/caf%C3%A9",
        "HTTPS://PODS.Example/a/caf%C3%A9",
        "https://pods.example:443/a/caf%C3%A9",
    ],
)
def test_spellings_of_one_resource_compare_equal(iri: str) -> None:
    """W-11"""
    assert canonical_url(iri) == "https://pods.example/a/caf%C3%A9"
    assert local_path(iri, BASE_IRI) == "/a/caf%C3%A9"


@pytest.mark.parametrize(
    "iri",
    [
        "https://pods.example/a/",
        "https://pods.example/A",
        "https://pods.example/a/b",
        "https://pods.example:8443/a",
        "http://pods.example/a",
        "https://pods.example.evil.example/a",
        "https://pods.example/a%2F",
    ],
)
def test_other_resources_do_not(iri: str) -> None:
    """W-11: trailing slash exact, path case-sensitive, scheme and port count."""
    assert canonical_url(iri) not in (None, "https://pods.example/a")
    assert local_path(iri, BASE_IRI) != "/a"


@pytest.mark.parametrize(
    "iri",
    [
        "",
        "/a",
        "did:nostr:abc",
        "urn:x:y",
        "ftp://pods.example/a",
        "https://",
        "https:///a",
        "https://user@pods.example/a",
        "https://pods.example/a?q",
        "https://pods.example/a#f",
        "https://pods.example/a/../b",
        "https://pods.example/a//b",
        "https://pods.example/%zz",
        "https://pods.example/%FF",
        "https://pods.example/\ud800",
    ],
)
def test_what_names_no_resource_compares_with_nothing(iri: str) -> None:
    assert canonical_url(iri) is None
    assert local_path(iri, BASE_IRI) is None


def test_the_root_is_named_with_and_without_its_slash() -> None:
    assert local_path("https://pods.example", BASE_IRI) == "/"
    assert local_path("https://pods.example/", BASE_IRI) == "/"


def test_a_base_url_in_another_spelling_is_the_same_server() -> None:
    assert local_path("https://pods.example/a", "HTTPS://Pods.Example:443") == "/a"


@pytest.mark.parametrize(
    ("iri", "origin"),
    [
        ("https://app.example", "https://app.example"),
        ("https://app.example/", "https://app.example"),
        ("HTTPS://App.Example:443", "https://app.example"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://app.example/path", None),
        ("https://app.example/#x", None),
        ("https://app.example?x", None),
        ("app.example", None),
        ("null", None),
        ("", None),
    ],
)
def test_origins_compare_as_browsers_write_them(iri: str, origin: str | None) -> None:
    """W-17, RFC 6454 section 6.2"""
    assert origin_of(iri) == origin


def test_the_key_of_a_nostr_identity_compares_without_case() -> None:
    """A-150"""
    assert agent_name("did:nostr:ABCDEF") == "did:nostr:abcdef"


def test_any_other_agent_compares_as_it_is_written() -> None:
    """W-13: IRI equality"""
    for iri in ("https://Bob.example/#Me", "https://bob.example/?A", "did:web:Bob"):
        assert agent_name(iri) == iri


# --- wac allow ---------------------------------------------------------------------------------
#
# The header text of WAC-Allow, against its grammar and against what clients read out of it.


# Web Access Control, section 6.1: access-param = permission-group OWS "=" OWS access-modes
_GRAMMAR = re.compile(r'user="([a-z]+( [a-z]+)*)?",public="([a-z]+( [a-z]+)*)?"')


def modes(*names: str) -> Modes:
    return with_entailed(map(Mode, names))


@pytest.mark.parametrize(
    ("user", "public", "header"),
    [
        ((), (), 'user="",public=""'),
        (("read",), (), 'user="read",public=""'),
        (("read",), ("read",), 'user="read",public="read"'),
        (("read", "control"), (), 'user="read control",public=""'),
        (("read", "append"), (), 'user="read append",public=""'),
        (("read", "write"), (), 'user="read write append",public=""'),
        (("read", "write", "append"), (), 'user="read write append",public=""'),
        (
            ("control", "write", "read"),
            ("append",),
            'user="read write append control",public="append"',
        ),
    ],
)
def test_both_groups_are_listed_in_one_fixed_order(
    user: tuple[str, ...], public: tuple[str, ...], header: str
) -> None:
    """W-51, W-53, W-54"""
    assert wac_allow(modes(*user), modes(*public)) == header


def test_every_combination_keeps_the_grammar() -> None:
    """W-51"""
    subsets = [
        frozenset(chosen)
        for size in range(len(Mode) + 1)
        for chosen in itertools.combinations(Mode, size)
    ]
    for user, public in itertools.product(subsets, subsets):
        header = wac_allow(user, public)
        assert _GRAMMAR.fullmatch(header), header
        groups = dict(part.split("=") for part in header.split(","))
        assert set(groups["user"].strip('"').split()) == {mode.value for mode in user}
        assert set(groups["public"].strip('"').split()) == {mode.value for mode in public}


# --- sharing rules -----------------------------------------------------------------------------
#
# Which rules can be edited, which are kept, and what is said of those who have access.


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


PERIOD = f"<{vocab.ACCESS_PERIOD_CONDITION}>"
_TIME = f"'2030-01-01T00:00:00Z'^^<{vocab.XSD_DATE_TIME}>"
BEGINS, ENDS = f"<{vocab.ACCESS_BEGINS}> {_TIME}", f"<{vocab.ACCESS_ENDS}> {_TIME}"
END = f"[ a {PERIOD}; {ENDS} ]"
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
        ("; acl:condition [ a ex:Condition ]", Peculiarity.IGNORED_CONDITIONS),
        ("; acl:condition [ a acl:ClientCondition; acl:client ex:app ]", Peculiarity.CONDITIONS),
        (f"; acl:condition {END}", None),
        (f"; acl:condition {END}, {END}", Peculiarity.CONDITIONS),
        (f"; acl:condition ex:end. ex:end a {PERIOD}; {ENDS}", Peculiarity.CONDITIONS),
        (f"; acl:condition [ a {PERIOD}; {ENDS}; ex:note 1 ]", Peculiarity.CONDITIONS),
        (f"; acl:condition [ a {PERIOD}; <{vocab.ACCESS_ENDS}> 1 ]", Peculiarity.CONDITIONS),
        (f"; acl:condition [ a {PERIOD}; {BEGINS} ]", None),
        (f"; acl:condition [ a {PERIOD}; {BEGINS}; {ENDS} ]", None),
        (f"; acl:condition [ a {PERIOD} ]", Peculiarity.CONDITIONS),
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
