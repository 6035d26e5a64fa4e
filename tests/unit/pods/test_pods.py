"""May a pod have this name? (A-90, A-91)"""

from __future__ import annotations

import string

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from rdflib.namespace import FOAF, RDF

from podstead.core.identifiers import (
    ResourcePath,
    auxiliary_kind,
    parent_container,
    parse_path,
    subject_of,
)
from podstead.pods.names import MAX_NAME_CHARACTERS, RESERVED_NAMES, UnusablePodName, check_name
from podstead.pods.template import pod_resources
from podstead.storage.records import InlineBody, Put, ResourceKind

ALLOWED = string.ascii_letters + string.digits + "-_"


@given(st.text(ALLOWED, min_size=1, max_size=MAX_NAME_CHARACTERS))
def test_an_allowed_name_is_a_path_segment_as_it_is(name: str) -> None:
    if name.lower() in RESERVED_NAMES:
        return
    assert check_name(name) == name
    assert parse_path(f"/{name}/".encode()) == f"/{name}/"


@given(st.text(max_size=80) | st.none() | st.integers() | st.lists(st.text()) | st.booleans())
def test_every_other_name_is_refused(name: object) -> None:
    allowed = (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME_CHARACTERS
        and set(name) <= set(ALLOWED)
        and name.lower() not in RESERVED_NAMES
    )
    if allowed:
        assert check_name(name) == name
    else:
        with pytest.raises(UnusablePodName):
            check_name(name)


@pytest.mark.parametrize("length", [MAX_NAME_CHARACTERS, MAX_NAME_CHARACTERS + 1])
def test_a_name_has_so_many_characters(length: int) -> None:
    name = "x" * length
    if length <= MAX_NAME_CHARACTERS:
        assert check_name(name) == name
    else:
        with pytest.raises(UnusablePodName):
            check_name(name)


# --- What a new pod contains, read by rdflib alone ---------------------------------------------


ACL = rdflib.Namespace("http://www.w3.org/ns/auth/acl#")
BASE = "https://pods.example"
OWNER = f"{BASE}/alice/#me"
PUTS = {str(put.path): put for put in pod_resources(
    ResourcePath("/alice/"), name="alice", owner=OWNER
)}  # fmt: skip
MODES = {ACL.Read: "R", ACL.Write: "W", ACL.Append: "A", ACL.Control: "C"}

# path of the subject: public modes on it and below it; None where the container's rules hold
RULES = {
    "/alice/": ("", ""),
    "/alice/profile/card": ("R", ""),
    "/alice/inbox/": ("A", ""),
    "/alice/public/": ("R", "R"),
    "/alice/private/": ("", ""),
    "/alice/settings/": ("", ""),
    "/alice/settings/publicTypeIndex.ttl": ("R", ""),
}


def graph(put: Put) -> rdflib.Graph:
    assert isinstance(put.body, InlineBody)
    assert put.content_type == "text/turtle"
    return rdflib.Graph().parse(data=put.body.content, format="turtle", publicID=BASE + put.path)


def granted(acl: rdflib.Graph, who: tuple[rdflib.URIRef, str], kind: rdflib.URIRef, to: str) -> str:
    """The modes that a subject has by authorizations naming the resource."""
    found = {
        MODES[mode]
        for rule in acl.subjects(RDF.type, ACL.Authorization)
        if (rule, who[0], rdflib.URIRef(who[1])) in acl
        and (rule, kind, rdflib.URIRef(BASE + to)) in acl
        for mode in acl.objects(rule, ACL.mode)
        if isinstance(mode, rdflib.URIRef)
    }
    return "".join(mode for mode in "RWAC" if mode in found)


@pytest.mark.parametrize("put", PUTS.values(), ids=PUTS)
def test_everything_is_turtle(put: Put) -> None:
    assert graph(put) is not None
    assert put.creates


def test_every_member_comes_after_its_container_and_every_acl_after_its_subject() -> None:
    seen: set[str] = set()
    for path in PUTS:
        resource = ResourcePath(path)
        if auxiliary_kind(resource) is not None:
            assert subject_of(resource) in seen
        elif path != "/alice/":
            assert parent_container(resource) in seen
        seen.add(path)


def test_kinds_are_those_of_the_paths() -> None:
    for path, put in PUTS.items():
        expected = ResourceKind.STORAGE if path == "/alice/" else ResourceKind.DOCUMENT
        if path.endswith(".acl"):
            expected = ResourceKind.ACL
        elif path.endswith("/") and path != "/alice/":
            expected = ResourceKind.CONTAINER
        assert put.kind is expected


def test_these_and_no_others_have_rules_of_their_own() -> None:
    assert {path.removesuffix(".acl") for path in PUTS if path.endswith(".acl")} == set(RULES)


@pytest.mark.parametrize(("path", "public"), RULES.items(), ids=RULES)
def test_the_owner_may_everything_and_the_public_what_the_issue_says(
    path: str, public: tuple[str, str]
) -> None:
    acl = graph(PUTS[f"{path}.acl"])
    owner, everyone = (ACL.agent, OWNER), (ACL.agentClass, str(FOAF.Agent))
    assert granted(acl, owner, ACL.accessTo, path) == "RWC"
    assert granted(acl, owner, ACL.default, path) == ("RWC" if path.endswith("/") else "")
    assert granted(acl, everyone, ACL.accessTo, path) == public[0]
    assert granted(acl, everyone, ACL.default, path) == public[1]
    # Nothing is granted to anybody else, or on anything else.
    assert set(acl.objects(predicate=ACL.agent)) == {rdflib.URIRef(OWNER)}
    assert set(acl.objects(predicate=ACL.agentClass)) <= {FOAF.Agent}
    for kind in (ACL.accessTo, ACL.default):
        assert set(acl.objects(predicate=kind)) <= {
            rdflib.URIRef(BASE + path),
            rdflib.URIRef(OWNER),
        }


def test_everyone_may_read_the_profile_and_not_the_list_of_members() -> None:
    acl, everyone = graph(PUTS["/alice/.acl"]), (ACL.agentClass, str(FOAF.Agent))
    assert granted(acl, everyone, ACL.accessTo, "/alice/#me") == "R"
