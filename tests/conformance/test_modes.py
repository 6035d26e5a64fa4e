"""Which modes an operation takes, and where (W-30 to W-45)."""

from __future__ import annotations

import pytest

from tests.conformance.agents import (
    EVERYONE,
    N3_PATCH,
    PIM,
    SPARQL_UPDATE,
    Agent,
    Response,
    Rule,
    acl_turtle,
)
from tests.conformance.patches import n3
from tests.support.rdf import TURTLE

INSERT = n3(inserts="<#new> ex:p 1 .")


def share(alice: Agent, container: str, bob: Agent, *, here: str = "", within: str = "") -> None:
    """Give Bob modes on a container itself, and others on what is within it by inheritance."""
    rules = []
    if here:
        rules.append(Rule(bob.named, here))
    if within:
        rules.append(Rule(bob.named, within, access_to=False, default=True))
    alice.grant(container, *rules)


def put(agent: Agent, target: str) -> Response:
    return agent.put(target, "<#put> <#p> 1 .")


def insert(agent: Agent, target: str) -> Response:
    return agent.patch(target, INSERT, N3_PATCH)


# --- W-30, W-31: reading --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["doc.ttl", "inner/", "fictive", "no/such/place", "fictive/"])
def test_w_30_reading_takes_read_on_the_target(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str
) -> None:
    exists = name in {"doc.ttl", "inner/"}
    if exists:
        alice.create(container + name)
    cases = [("", 403), ("Read", 200 if exists else 404), ("Write Append Control", 403)]
    for within, status in cases:
        share(alice, container, bob, here="Read Write Append Control", within=within)
        for method in ("GET", "HEAD"):
            assert bob.request(method, container + name).status == status
            assert public.request(method, container + name).status == 401


def test_w_30_an_own_acl_decides_about_reading(alice: Agent, bob: Agent, container: str) -> None:
    share(alice, container, bob, here="Read", within="Read")
    for name in ("doc.ttl", "inner/"):
        path = alice.create(container + name)
        for modes, status in (("Read", 200), ("Write Append Control", 403)):
            alice.grant(path, Rule(bob.named, modes))
            assert [bob.get(path).status, bob.head(path).status] == [status] * 2


@pytest.mark.parametrize("name", ["", "doc.ttl", "doc.ttl.acl", "doc.ttl.meta", "fictive", "no/"])
def test_w_31_options_takes_nothing(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str
) -> None:
    alice.grant(alice.create(f"{container}doc.ttl"))
    for agent in (public, bob, alice):
        for headers in (
            {},
            {"Origin": "https://app.example", "Access-Control-Request-Method": "PUT"},
        ):
            response = agent.options(container + name, headers=headers)
            assert (response.status, response.body) == (204, b"")


# --- W-32 to W-37: writing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "within", "status"),
    [
        ("Append", "", 201),
        ("Write", "", 201),
        ("Append", "Read Control", 201),
        ("", "Append Write", 403),
        ("Read Control", "Append Write", 403),
        ("", "", 403),
    ],
)
def test_w_32_post_takes_append_on_the_container(
    alice: Agent, bob: Agent, public: Agent, container: str, here: str, within: str, status: int
) -> None:
    share(alice, container, bob, here=here, within=within)
    posts: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("Posted", "text/plain", {"Slug": "doc"}),
        ("<> <#p> 1 .", TURTLE, {}),
        ("", TURTLE, {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}),
    )
    for body, content_type, headers in posts:
        response = bob.post(container, body, content_type, headers)
        assert response.status == status
        if status == 201:
            assert alice.get(response.location).status == 200
            assert bob.get(response.location).status == (200 if "Read" in within else 403)
        assert public.post(container, body, content_type, headers).status == 401
    assert len(alice.read(container).members) == (3 if status == 201 else 0)


@pytest.mark.parametrize("name", ["doc.ttl", "inner/"])
def test_w_33_put_of_what_exists_takes_write_on_it_alone(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str
) -> None:
    path = alice.create(container + name, "<#old> <#p> 1 .")
    for modes, status in (("Write", 204), ("Read Append Control", 403)):
        share(alice, container, bob)
        alice.grant(path, Rule(bob.named, modes))
        assert put(bob, path).status == status
        assert put(public, path).status == 401
    share(alice, container, bob, here="Write", within="Write")
    assert put(bob, path).status == 403


CREATIONS = [
    # modes on the container, modes inherited; whether PUT, and whether a patch that inserts, passes
    ("Append", "Write", True, True),
    ("Write", "Write", True, True),
    ("Append", "Append", False, True),
    ("Write", "Append", False, True),
    ("", "Write Read Append", False, False),
    ("Read Control", "Write", False, False),
    ("Write Append", "", False, False),
    ("Write", "Read Control", False, False),
    ("", "", False, False),
]


@pytest.mark.parametrize(("here", "within", "by_put", "by_patch"), CREATIONS)
def test_w_34_put_of_what_is_new_takes_append_there_and_write_on_it(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    here: str,
    within: str,
    by_put: bool,
    by_patch: bool,
) -> None:
    assert by_patch or not by_put
    share(alice, container, bob, here=here, within=within)
    for name in ("new.ttl", "new.txt", "new/"):
        assert put(public, container + name).status == 401
        assert put(bob, container + name).status == (201 if by_put else 403)
        assert alice.get(container + name).status == (200 if by_put else 404)


def test_w_35_patch_of_what_exists_takes_nothing_on_the_container(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    for name in ("doc.ttl", "inner/"):
        path = alice.create(container + name, "<#a> <#p> 1 .")
        share(alice, container, bob)
        for modes, status in (("Append", 204), ("Write", 204), ("Read Control", 403)):
            alice.grant(path, Rule(bob.named, modes))
            assert insert(bob, path).status == status
            assert insert(public, path).status == 401
        share(alice, container, bob, here="Append", within="Append")
        assert insert(bob, path).status == 403


@pytest.mark.parametrize(("here", "within", "by_put", "by_patch"), CREATIONS)
def test_w_36_patch_of_what_is_new_takes_append_there_and_what_its_content_takes(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    here: str,
    within: str,
    by_put: bool,
    by_patch: bool,
) -> None:
    assert by_patch or not by_put
    share(alice, container, bob, here=here, within=within)
    for number, (content_type, text) in enumerate(
        ((N3_PATCH, INSERT), (SPARQL_UPDATE, "INSERT DATA { <#a> <#p> 1 }"))
    ):
        path = f"{container}new{number}"
        assert public.patch(path, text, content_type).status == 401
        assert bob.patch(path, text, content_type).status == (201 if by_patch else 403)
        assert alice.get(path).status == (200 if by_patch else 404)


def test_w_36_conditions_about_what_is_new_take_read(
    alice: Agent, bob: Agent, container: str
) -> None:
    text = n3(where="?x ex:p 1 .", inserts="?x ex:q 1 .")
    for within, status in (("Write", 403), ("Append", 403), ("Read Append", 409)):
        share(alice, container, bob, here="Append", within=within)
        assert bob.patch(f"{container}new", text, N3_PATCH).status == status


@pytest.mark.parametrize(("here", "within", "by_put", "by_patch"), CREATIONS)
def test_w_37_containers_in_between_are_creations_too(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    here: str,
    within: str,
    by_put: bool,
    by_patch: bool,
) -> None:
    share(alice, container, bob, here=here, within=within)
    for send, passes, name in (
        (put, by_put, "a/b/new.ttl"),
        (put, by_put, "c/d/"),
        (insert, by_patch, "e/f/new.ttl"),
    ):
        path = container + name
        assert send(public, path).status == 401
        assert send(bob, path).status == (201 if passes else 403)
        assert alice.get(path).status == (200 if passes else 404)
        first = container + name.partition("/")[0] + "/"
        assert alice.get(first).status == (200 if passes else 404)


# --- W-38, W-39, W-41, W-45: deleting -------------------------------------------------------------

DELETIONS = [
    # modes on the container, those of the target's own ACL (None: inherited ones), inherited ones;
    # what DELETE of a document, of a container, and of nothing gives
    ("Write", None, "Write", 204, 403, 403),
    ("Write", None, "Read Write", 204, 204, 404),
    ("Write", None, "Read Append Control", 403, 403, 403),
    ("Read Append Control", None, "Read Write", 403, 403, 403),
    ("", None, "Read Write", 403, 403, 403),
    ("Write", None, "", 403, 403, 403),
    ("Read Write", None, "", 403, 403, 403),
    ("Write", "Write", "", 204, 403, None),
    ("Write", "Read Write", "", 204, 204, None),
    ("Write", "Read Append Control", "Write", 403, 403, None),
    ("", "Read Write", "", 403, 403, None),
    ("Append", "Read Write", "Read Write", 403, 403, None),
]


def delete(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    target: str,
    *,
    here: str,
    own: str | None,
    within: str,
) -> int:
    """The status of Bob's DELETE, after which the target is gone or is what it was."""
    if target:
        alice.create(container + target, "<#a> <#p> 1 .")
    path = container + (target or "fictive")
    if own is not None:
        alice.grant(path, Rule(bob.named, own))
    share(alice, container, bob, here=here, within=within)
    before = alice.get(path)
    assert public.delete(path).status == 401
    status = bob.delete(path).status
    after = alice.get(path)
    if status == 204:
        assert after.status == 404
    else:
        assert (after.status, after.body) == (before.status, before.body)
    return status


@pytest.mark.parametrize(
    ("here", "own", "within", "status"), [(*row[:3], row[3]) for row in DELETIONS]
)
def test_w_38_delete_of_a_document_takes_write_on_it_and_its_container(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    here: str,
    own: str | None,
    within: str,
    status: int,
) -> None:
    for target in ("doc.ttl", "doc"):
        found = delete(alice, bob, public, container, target, here=here, own=own, within=within)
        assert found == status


@pytest.mark.parametrize(
    ("here", "own", "within", "status"), [(*row[:3], row[4]) for row in DELETIONS]
)
def test_w_39_delete_of_a_container_takes_read_besides(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    here: str,
    own: str | None,
    within: str,
    status: int,
) -> None:
    found = delete(alice, bob, public, container, "inner/", here=here, own=own, within=within)
    assert found == status


def test_w_40_whatever_is_done_with_an_acl_takes_control(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    path = alice.create(f"{container}doc.ttl")
    rules = acl_turtle(
        alice.url(path),
        Rule(alice.named, "Read Write Control"),
        Rule(bob.named, "Control"),
        Rule(EVERYONE, "Read Write Append"),
    )
    acl = alice.acl_of(path)
    assert alice.put(acl, rules).status == 201
    steps: list[tuple[str, str | None, str, int]] = [
        ("GET", None, "", 200),
        ("HEAD", None, "", 200),
        ("PUT", rules, TURTLE, 204),
        ("PATCH", INSERT, N3_PATCH, 204),
        ("PATCH", n3(deletes="<#new> ex:p 1 ."), N3_PATCH, 204),
        ("PATCH", "DELETE { ?s a ?o } INSERT { ?s a ?o } WHERE { ?s a ?o }", SPARQL_UPDATE, 204),
        ("DELETE", None, "", 204),
    ]
    for method, body, content_type, status in steps:
        headers = {"Content-Type": content_type} if content_type else {}
        assert public.request(method, acl, body, headers).status == 401
        assert bob.request(method, acl, body, headers).status == status
    share(alice, container, bob, here="Control", within="Control")
    assert bob.get(acl).status == 404
    assert bob.put(acl, rules).status == 201
    share(alice, container, bob, here="Read Write Append", within="Read Write Append")
    other = alice.create(f"{container}other.ttl")
    for method, body, content_type, _ in steps:
        headers = {"Content-Type": content_type} if content_type else {}
        assert bob.request(method, f"{other}.acl", body, headers).status == 403


@pytest.mark.parametrize(
    ("here", "within", "status"),
    [(row[0], row[2], row[5]) for row in DELETIONS if row[5] is not None],
)
def test_w_41_delete_of_what_is_missing_takes_the_same_and_read(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    here: str,
    within: str,
    status: int,
) -> None:
    for name in ("fictive", "fictive/"):
        share(alice, container, bob, here=here, within=within)
        assert public.delete(container + name).status == 401
        assert bob.delete(container + name).status == status


def test_w_45_read_and_write_on_a_document_do_not_allow_deleting_it(
    alice: Agent, bob: Agent, container: str
) -> None:
    for name in ("doc.ttl", "doc.txt", "inner/"):
        path = alice.create(container + name)
        alice.grant(path, Rule(bob.named, "Read Write", default=name.endswith("/")))
        share(alice, container, bob, here="Read Append Control")
        assert bob.delete(path).status == 403
        assert alice.get(path).status == 200


def test_w_45_read_and_write_on_a_container_alone_do_not_allow_deleting_members(
    alice: Agent, bob: Agent, container: str
) -> None:
    share(alice, container, bob, here="Read Write")
    for name in ("doc.ttl", "doc.txt", "inner/"):
        path = alice.create(container + name)
        assert bob.delete(path).status == 403
        assert alice.get(path).status == 200


# --- W-42, W-43: what is not a resource of its own ------------------------------------------------


@pytest.mark.parametrize("name", ["doc.ttl", "doc.txt"])
@pytest.mark.parametrize("is_own", [True, False], ids=["own", "inherited"])
def test_w_42_a_description_takes_the_modes_of_its_subject(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str, is_own: bool
) -> None:
    path = alice.create(container + name, "<#a> <#p> 1 .")
    description = alice.get(path).target("describedby")
    assert alice.put(description, f"<{name}> <#is> <#described> .").status == 201
    allowed = {
        "Read": {"GET", "HEAD"},
        "Append": {"PATCH"},
        "Write": {"PATCH", "PUT"},
        "Control": set(),
        "Read Append": {"GET", "HEAD", "PATCH"},
    }
    for modes, methods in allowed.items():
        if is_own:
            alice.grant(path, Rule(bob.named, modes))
        else:
            share(alice, container, bob, within=modes)
        statuses = {
            "GET": bob.get(description).status,
            "HEAD": bob.head(description).status,
            "PATCH": insert(bob, description).status,
            "PUT": put(bob, description).status,
        }
        passed = {method for method, status in statuses.items() if status in {200, 204}}
        assert passed == methods
        assert set(statuses.values()) <= {200, 204, 403}
        assert public.get(description).status == 401
        assert put(public, description).status == 401


def test_w_42_the_description_of_a_container_is_as_the_container(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    description = alice.get(container).target("describedby")
    for here, read, write in (("Read", 200, 403), ("Write", 403, 204), ("Control", 403, 403)):
        share(alice, container, bob, here=here, within="Read Write")
        assert [bob.get(description).status, put(bob, description).status] == [read, write]
        assert public.get(description).status == 401


def test_w_43_descriptions_of_storages_and_the_servers_documents_are_public(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    alice.create(f"{container}doc.ttl")
    storage = public.get(f"{container}doc.ttl").target(
        "http://www.w3.org/ns/solid/terms#storageDescription"
    )
    assert public.get(f"{container}doc.ttl").status == 401
    for agent in (public, bob, alice):
        response = agent.read(storage)
        assert f"{PIM}Storage" in {str(o) for _, _, o in response.triples}
        assert agent.head(storage).status == 200
        for path in ("/", "/.well-known/solid"):
            assert agent.get(path).status == 200
    assert storage == alice.url(f"{alice.pod}.well-known/solid")
