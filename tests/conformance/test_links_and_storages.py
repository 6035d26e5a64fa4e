"""Link headers, storages and their descriptions, and inboxes (P-29 to P-38)."""

from __future__ import annotations

import json
import re

import pytest
from rdflib import URIRef

from tests.conformance.agents import (
    LDP,
    PIM,
    RDF_TYPE,
    SOLID,
    Agent,
    Response,
    Rule,
    create_agent,
)
from tests.conformance.conformance_places import EXISTING, PLACES
from tests.support.rdf import JSON_LD, TURTLE
from tests.support.server import ServerProcess, server_fixture

READS = ("GET", "HEAD")
STORAGE_DESCRIPTION = f"{SOLID}storageDescription"
STORAGE = f"{PIM}Storage"
CONTAINER_TYPES = {f"{LDP}Resource", f"{LDP}Container", f"{LDP}BasicContainer"}
TYPES = {
    "root": CONTAINER_TYPES | {STORAGE},
    "container": CONTAINER_TYPES,
    "rdf": {f"{LDP}Resource", f"{LDP}RDFSource"},
    "text": {f"{LDP}Resource", f"{LDP}NonRDFSource"},
    "root ACL": {f"{LDP}Resource", f"{LDP}RDFSource"},
    "ACL": {f"{LDP}Resource", f"{LDP}RDFSource"},
    "description": {f"{LDP}Resource", f"{LDP}RDFSource"},
}
WITH_ACL = ("root", "container", "rdf", "text", "description", "missing", "missing container")
IN_STORAGE = tuple(kind for kind in PLACES if kind != "storage description")
INSERT = "INSERT DATA { <#a> <#b> <#c> . }"


@pytest.fixture
def members(alice: Agent, container: str) -> dict[str, str]:
    """One new member of each kind."""
    return {
        "container": alice.create(f"{container}x/"),
        "rdf": alice.create(f"{container}x.ttl"),
        "text": alice.create(f"{container}x.txt", "x", "text/plain"),
    }


talkative = server_fixture(("--list-storages", "--advertise-owners"))
"""A server that tells everybody which storages there are, and whose they are."""


# --- P-29: types ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("method", READS)
def test_p_29_links_say_what_a_resource_is(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    types = alice.request(method, places[kind]).targets("type")
    assert set(types) == TYPES[kind]
    assert len(types) == len(TYPES[kind])


@pytest.mark.parametrize(
    ("name", "content_type", "kind"),
    [("x/", TURTLE, "container"), ("x", JSON_LD, "rdf"), ("x", "image/png", "text")],
)
def test_p_29_links_say_what_was_created(
    alice: Agent, container: str, name: str, content_type: str, kind: str
) -> None:
    body = "{}" if content_type == JSON_LD else ""
    created = alice.put(container + name, body, content_type)
    assert created.status == 201
    assert set(created.targets("type")) == TYPES[kind]


# --- P-30, P-31: ACL and description ----------------------------------------------------------


@pytest.mark.parametrize("kind", WITH_ACL)
@pytest.mark.parametrize("who", ["alice", "bob", "public"])
@pytest.mark.parametrize("method", READS)
def test_p_30_every_response_links_to_one_acl(
    alice: Agent,
    bob: Agent,
    public: Agent,
    places: dict[str, str],
    method: str,
    who: str,
    kind: str,
) -> None:
    """Refusals as well: 401, 403 and 404."""
    agent = {"alice": alice, "bob": bob, "public": public}[who]
    response = agent.request(method, places[kind])
    [target] = re.findall(r'<([^>]*)>; rel="acl"', response.header("Link") or "")
    assert target.startswith(f"{alice.server.base_url}{alice.pod}")


def test_p_30_no_two_resources_have_the_same_acl(alice: Agent, places: dict[str, str]) -> None:
    kinds = ("root", "container", "rdf", "text", "missing", "missing container")
    assert len({alice.acl_of(places[kind]) for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("how", ["PUT", "PUT container", "PATCH", "POST"])
def test_p_30_what_creates_a_resource_links_to_its_acl(
    alice: Agent, container: str, how: str
) -> None:
    created = {
        "PUT": lambda: alice.put(f"{container}x"),
        "PUT container": lambda: alice.put(f"{container}x/"),
        "PATCH": lambda: alice.patch(f"{container}x", INSERT),
        "POST": lambda: alice.post(container),
    }[how]()
    assert created.status == 201
    assert created.target("acl") == alice.acl_of(created.location)


@pytest.mark.parametrize("kind", ["root", "container", "rdf", "text"])
@pytest.mark.parametrize("method", READS)
def test_p_31_a_resource_and_its_description_link_to_each_other(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    description = alice.request(method, places[kind]).target("describedby")
    described = alice.request(method, description)
    assert described.status == 200
    assert described.target("describes") == alice.url(places[kind])


@pytest.mark.parametrize("kind", EXISTING)
@pytest.mark.parametrize("who", ["alice", "public"])
def test_p_31_there_is_at_most_one_description(
    alice: Agent, public: Agent, places: dict[str, str], who: str, kind: str
) -> None:
    response = (alice if who == "alice" else public).get(places[kind])
    relations = [link.rel for link in response.links if link.rel.lower() == "describedby"]
    assert relations in ([], ["describedby"])


@pytest.mark.parametrize("kind", ["container", "rdf", "text"])
def test_p_31_a_description_has_the_access_rules_of_its_subject(
    alice: Agent, bob: Agent, members: dict[str, str], kind: str
) -> None:
    subject = members[kind]
    description = alice.head(subject).target("describedby")
    assert bob.get(description).status == 403
    alice.grant(subject, Rule(bob.named, "Read"))
    assert bob.get(description).status == 200
    assert bob.patch(description, INSERT).status == 403
    alice.grant(subject, Rule(bob.named, "Append"))
    assert bob.get(description).status == 403
    assert bob.patch(description, INSERT).status in {201, 204}


# --- P-32, P-33, P-34: storages ---------------------------------------------------------------


@pytest.mark.parametrize("kind", IN_STORAGE)
@pytest.mark.parametrize("method", [*READS, "OPTIONS"])
@pytest.mark.parametrize("who", ["alice", "bob", "public"])
def test_p_32_everything_in_a_storage_links_to_its_description(
    alice: Agent,
    bob: Agent,
    public: Agent,
    places: dict[str, str],
    who: str,
    method: str,
    kind: str,
) -> None:
    agent = {"alice": alice, "bob": bob, "public": public}[who]
    found = agent.request(method, places[kind]).target(STORAGE_DESCRIPTION)
    assert found == alice.url(places["storage description"])


@pytest.mark.parametrize("accept", [TURTLE, JSON_LD])
def test_p_32_everybody_reads_in_the_description_that_it_is_a_storage(
    alice: Agent, public: Agent, places: dict[str, str], accept: str
) -> None:
    url = public.head(places["rdf"]).target(STORAGE_DESCRIPTION)
    description = public.read(url, accept)
    assert description.media_type == accept
    storage = (URIRef(alice.url(alice.pod)), RDF_TYPE, URIRef(STORAGE))
    assert storage in description.triples


def test_p_33_a_pod_is_a_storage_and_its_owner_says_so(alice: Agent, public: Agent) -> None:
    profile = public.read(alice.web_id.partition("#")[0])
    [storage] = [
        str(value)
        for subject, predicate, value in profile.triples
        if (str(subject), str(predicate)) == (alice.web_id, f"{PIM}storage")
    ]
    assert storage == alice.url(alice.pod)
    assert STORAGE in public.head(storage).targets("type")


def test_p_33_the_owner_controls_the_storage(alice: Agent, bob: Agent) -> None:
    assert alice.get(alice.acl_of(alice.pod)).status == 200
    assert bob.get(alice.acl_of(alice.pod)).status == 403


def test_p_33_storages_do_not_overlap(alice: Agent, bob: Agent, container: str) -> None:
    roots = [alice.pod, bob.pod]
    assert not alice.pod.startswith(bob.pod)
    assert not bob.pod.startswith(alice.pod)
    nested = [alice.create(f"{container}a/"), alice.create(f"{container}a/b/"), container]
    marked = [path for path in roots + nested if STORAGE in alice.head(path).targets("type")]
    assert marked == roots


@pytest.mark.parametrize("method", READS)
def test_p_33_a_root_links_to_its_owner_only_if_configured(
    public: Agent, alice: Agent, talkative: ServerProcess, method: str
) -> None:
    relations = (f"{SOLID}owner", f"{SOLID}podOwner")
    quiet = public.request(method, alice.pod)
    assert [quiet.targets(relation) for relation in relations] == [[], []]
    owner = create_agent(talkative)
    told = Agent(talkative).request(method, owner.pod)
    assert [told.target(relation) for relation in relations] == [owner.web_id, owner.web_id]


def ancestors(path: str) -> list[str]:
    """The containers of a path, from the nearest to the server's root."""
    parts = path.rstrip("/").split("/")
    return ["/".join(parts[:count]) + "/" for count in range(len(parts) - 1, 0, -1)]


@pytest.mark.parametrize("who", ["alice", "bob", "public"])
@pytest.mark.parametrize("depth", [1, 4])
def test_p_34_walking_up_leads_to_the_storage(
    alice: Agent, bob: Agent, public: Agent, container: str, who: str, depth: int
) -> None:
    agent = {"alice": alice, "bob": bob, "public": public}[who]
    walked: list[Response] = []
    for path in ancestors(f"{container}{'deep/' * depth}x.ttl"):
        walked.append(agent.head(path))
        if STORAGE in walked[-1].targets("type"):
            break
    assert walked[-1].url == alice.url(alice.pod)
    assert all(response.status in {200, 401, 403, 404} for response in walked)


def test_p_34_the_root_is_marked_although_reading_it_is_refused(
    alice: Agent, bob: Agent, public: Agent
) -> None:
    before = alice.get(alice.acl_of(alice.pod)).body
    own = Rule(alice.named, "Read Write Control", default=True)
    alice.put_acl(alice.pod, own)
    try:
        for agent, status in ((bob, 403), (public, 401)):
            for method in READS:
                response = agent.request(method, alice.pod)
                assert response.status == status
                assert STORAGE in response.targets("type")
    finally:
        alice.put(alice.acl_of(alice.pod), before)


def test_p_34_ancestors_above_the_storage_answer(public: Agent) -> None:
    assert public.head("/").status in {200, 401, 403, 404}


# --- P-35: the format of the header -----------------------------------------------------------


@pytest.mark.parametrize("kind", IN_STORAGE)
@pytest.mark.parametrize("method", [*READS, "OPTIONS"])
def test_p_35_all_links_stand_in_one_line(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    [line] = alice.request(method, places[kind]).values("Link")
    assert all(re.fullmatch(r'\s*<[^<>,;]+>; ?rel="[^",;]+"', link) for link in line.split(","))


@pytest.mark.parametrize("name", ["a,b.ttl", "a;b.ttl", "a,b/", "a%2Cb%3Bc.ttl"])
def test_p_35_no_target_has_a_comma_or_a_semicolon(alice: Agent, container: str, name: str) -> None:
    created = alice.put(container + name)
    assert created.status == 201
    for response in (created, alice.get(container + name)):
        [line] = response.values("Link")
        assert not any(set(",;") & set(target) for target in re.findall("<([^>]*)>", line))
        assert alice.get(response.target("describedby")).status == 200


# --- P-36, P-38: the server, and inboxes ------------------------------------------------------


@pytest.mark.parametrize("accept", [None, TURTLE, JSON_LD])
def test_p_36_everybody_reads_what_the_server_is(public: Agent, accept: str | None) -> None:
    fields = {} if accept is None else {"Accept": accept}
    response = public.get("/.well-known/solid", headers=fields)
    assert (response.status, response.media_type) == (200, accept or TURTLE)
    assert response.triples


def named_storages(server: Agent) -> set[str]:
    """The storages that the server names to everybody."""
    description = server.read("/.well-known/solid")
    return {
        str(storage)
        for subject, predicate, storage in description.triples
        if (str(subject), str(predicate)) == (server.url("/"), f"{PIM}storage")
    }


def test_p_36_the_server_lists_its_storages_only_if_configured(
    public: Agent, talkative: ServerProcess
) -> None:
    assert named_storages(public) == set()
    owners = [create_agent(talkative) for _ in range(2)]
    roots = {owner.url(owner.pod) for owner in owners}
    assert named_storages(Agent(talkative)) >= roots


NOTIFICATION = {
    "@context": "https://www.w3.org/ns/activitystreams",
    "type": "Announce",
    "object": "https://elsewhere.example/thing",
}


def inbox_of(agent: Agent, reader: Agent) -> str:
    """The inbox that an agent's profile names."""
    profile = reader.read(agent.web_id.partition("#")[0])
    [inbox] = [
        str(value)
        for subject, predicate, value in profile.triples
        if (str(subject), str(predicate)) == (agent.web_id, f"{LDP}inbox")
    ]
    return inbox


@pytest.mark.parametrize("who", ["bob", "public"])
def test_p_38_an_inbox_takes_notifications_and_its_owner_reads_them(
    alice: Agent, bob: Agent, public: Agent, who: str
) -> None:
    sender = bob if who == "bob" else public
    inbox = inbox_of(alice, sender)
    sent = sender.post(inbox, json.dumps(NOTIFICATION), JSON_LD)
    assert sent.status == 201
    assert sent.location in alice.read(inbox).members
    received = alice.read(sent.location, JSON_LD)
    assert json.loads(received.body) == NOTIFICATION
    [announced] = {
        str(value)
        for _, predicate, value in alice.read(sent.location).triples
        if str(predicate) == "https://www.w3.org/ns/activitystreams#object"
    }
    assert announced == NOTIFICATION["object"]


@pytest.mark.parametrize("who", ["bob", "public"])
def test_p_38_senders_read_nothing_of_an_inbox(
    alice: Agent, bob: Agent, public: Agent, who: str
) -> None:
    sender = bob if who == "bob" else public
    inbox = inbox_of(alice, sender)
    sent = sender.post(inbox, json.dumps(NOTIFICATION), JSON_LD)
    for target in (inbox, sent.location):
        assert sender.get(target).status == {"bob": 403, "public": 401}[who]


def test_p_38_any_container_can_be_an_inbox(alice: Agent, public: Agent, container: str) -> None:
    alice.grant(container, Rule("acl:agentClass foaf:Agent", "Append"))
    sent = public.post(container, json.dumps(NOTIFICATION), JSON_LD)
    assert sent.status == 201
    assert alice.read(container, JSON_LD).members == [sent.location]
