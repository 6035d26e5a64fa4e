"""soukai-solid: models of people and films, as its applications store them.

It creates by PATCH with SPARQL Update, changes by ``DELETE DATA`` and ``INSERT DATA``, makes
containers by PUT without a body and Content-Type (C-9), and describes them at the URL that
``describedby`` names.
"""

from __future__ import annotations

import datetime as dt
from email.utils import parsedate_to_datetime

import pytest
from rdflib import Literal, URIRef
from rdflib.namespace import FOAF, RDF, RDFS, XSD, Namespace

from tests.clients.client_home import Home, StartClient
from tests.support.client import Client, create_pod
from tests.support.client_process import Agent, ClientFailed, ClientProcess
from tests.support.rdf import JSON_LD, TURTLE, Triples, triples
from tests.support.server import ServerProcess

CRDT = Namespace("https://vocab.noeldemartin.com/crdt/")
LDP = Namespace("http://www.w3.org/ns/ldp#")
SCHEMA = Namespace("https://schema.org/")
SOLID = Namespace("http://www.w3.org/ns/solid/terms#")
SPARQL = "application/sparql-update"

ALICE = """\
@prefix foaf: <http://xmlns.com/foaf/0.1/>.
@prefix ex: <http://example.org/>.

<#it> a foaf:Person; foaf:name "Alice"; foaf:age 41; foaf:nick "al", "ally"; ex:shoeSize 38.
<#dog> a ex:Dog; foaf:name "Rex".
"""


@pytest.fixture(scope="module")
def soukai(start_client: StartClient) -> ClientProcess:
    return start_client("soukai.mjs")


def person(name: str) -> str:
    return f'<#it> a <{FOAF.Person}>; <{FOAF.name}> "{name}".'


def _name(home: Home, url: str) -> str:
    """The name in the test's container of the document that a model lies in."""
    assert url.startswith(home.url)
    return url.removeprefix(home.url).partition("#")[0]


def _saying(home: Home, name: str, turtle: str) -> Triples:
    return triples(turtle, TURTLE, home.url + name)


# --- models -----------------------------------------------------------------------------------


def test_a_model_is_created_with_all_kinds_of_values(soukai: ClientProcess, home: Home) -> None:
    """X-30, X-37, C-2: the container of the new document is made as well."""
    name = 'Zoë "Zo" O\'Neil \\ 3\nlines\t'
    attributes = {
        "name": name,
        "age": 41.5,
        "birthday": "1984-02-29T23:59:59.123Z",
        "nicks": ["zo", "żółw"],
        "friend": "https://bob.example/#me",
    }
    container = home.url + "people/"
    report = soukai.run("create", home.agent, container=container, attributes=attributes)
    [patch] = report.sent("PATCH")
    assert (patch.status, patch.headers["if-none-match"]) == (201, "*")
    me = URIRef(report.value)
    assert home.triples(_name(home, report.value)) == {
        (me, RDF.type, FOAF.Person),
        (me, FOAF.name, Literal(name)),
        (me, FOAF.age, Literal("41.5", datatype=XSD.decimal)),
        (me, FOAF.birthday, Literal("1984-02-29T23:59:59.123Z", datatype=XSD.dateTime)),
        (me, FOAF.nick, Literal("zo")),
        (me, FOAF.nick, Literal("żółw")),
        (me, FOAF.knows, URIRef("https://bob.example/#me")),
    }
    assert home.members() == {"people/"}


def test_the_server_may_choose_the_url_of_a_model(soukai: ClientProcess, home: Home) -> None:
    """C-3: the relative IRIs of the posted model are those of the new document (R-7)."""
    report = soukai.run("createWhereTheServerSays", home.agent, container=home.url, name="Guest")
    [post] = report.sent("POST")
    assert post.status == 201
    name = _name(home, report.value)
    assert home.members() == {name}
    assert home.triples(name) == _saying(home, name, person("Guest"))


@pytest.mark.parametrize("stored_as", [TURTLE, JSON_LD])
def test_a_model_is_found_in_what_others_stored(
    soukai: ClientProcess, home: Home, stored_as: str
) -> None:
    """R-1."""
    document = {
        TURTLE: ALICE,
        JSON_LD: f"""{{"@context": {{"@vocab": "{FOAF}"}}, "@id": "#it", "@type": "Person",
            "name": "Alice", "age": 41, "nick": ["al", "ally"]}}""",
    }[stored_as]
    url = home.put("alice", document, stored_as) + "#it"
    found = soukai.run("find", home.agent, url=url).value
    nicks = sorted(found.pop("nicks"))
    assert (found, nicks) == ({"url": url, "name": "Alice", "age": 41}, ["al", "ally"])


@pytest.mark.parametrize("name", ["nobody#it", "alice#dog", "alice#nothing"])
def test_what_is_not_there_or_no_person_is_not_found(
    soukai: ClientProcess, home: Home, name: str
) -> None:
    home.put("alice", ALICE)
    assert soukai.run("find", home.agent, url=home.url + name).value is None


def test_models_of_a_container_are_listed(soukai: ClientProcess, home: Home) -> None:
    """C-23: those of each document, also of more than the library reads at once."""
    names = [f"Person {number}" for number in range(12)]
    for number, name in enumerate(names):
        home.put(f"person-{number}", person(name))
    home.put("things", "<#a> a <#Thing>.")
    home.put("nested/person", person("Nested"))
    report = soukai.run("list", home.agent, container=home.url)
    assert report.value == sorted(names)


@pytest.mark.parametrize(
    ("filters", "found"), [({"name": "Bob"}, ["Bob"]), ({"name": "Zed"}, []), ({}, ["Al", "Bob"])]
)
def test_models_are_found_by_what_they_say(
    soukai: ClientProcess, home: Home, filters: dict[str, str], found: list[str]
) -> None:
    for name in ("Al", "Bob"):
        home.put(name.lower(), person(name))
    report = soukai.run("list", home.agent, container=home.url, filters=filters)
    assert report.value == found


def test_models_are_read_from_documents_that_are_named(soukai: ClientProcess, home: Home) -> None:
    urls = [home.put(name, person(name)) for name in ("a", "b", "c")][:2]
    report = soukai.run("listOfDocuments", home.agent, urls=[*urls, home.url + "missing"])
    assert report.value == ["a", "b"]


def test_a_model_is_changed_and_the_rest_of_its_document_stays(
    soukai: ClientProcess, home: Home
) -> None:
    """X-33: ``DELETE DATA {…} ; INSERT DATA {…}``."""
    url = home.put("alice", ALICE) + "#it"
    changes = {"name": "Alice L.", "nicks": ["ally", "liz"]}
    report = soukai.run("update", home.agent, url=url, changes=changes, removed=["age"])
    assert (report.value["name"], "age" in report.value) == ("Alice L.", False)
    assert [patch.status for patch in report.sent("PATCH")] == [204]
    expected = ALICE.replace('"Alice"', '"Alice L."').replace('"al", "ally"', '"ally", "liz"')
    assert home.triples("alice") == _saying(home, "alice", expected.replace("foaf:age 41; ", ""))


def test_a_model_in_json_ld_is_changed_and_stays_json_ld(soukai: ClientProcess, home: Home) -> None:
    """X-37."""
    document = f'{{"@context": {{"@vocab": "{FOAF}"}}, "@id": "#it", "@type": "Person", "age": 4}}'
    url = home.put("child.jsonld", document, JSON_LD) + "#it"
    soukai.run("update", home.agent, url=url, changes={"age": 5, "name": "Kim"}, removed=[])
    stored = home.get("child.jsonld")
    assert stored.headers["content-type"].startswith(JSON_LD)
    expected = person("Kim") + f"<#it> <{FOAF.age}> 5."
    assert triples(stored.body, JSON_LD, home.url + "child.jsonld") == _saying(
        home, "child.jsonld", expected
    )


def test_two_clients_change_different_attributes(soukai: ClientProcess, home: Home) -> None:
    url = home.put("alice", person("Alice")) + "#it"
    report = soukai.run("updateTwice", home.agent, url=url, name="Liz", age=42)
    assert (report.value["name"], report.value["age"]) == ("Liz", 42)
    expected = person("Liz") + f"<#it> <{FOAF.age}> 42."
    assert home.triples("alice") == _saying(home, "alice", expected)


def test_a_model_is_deleted_with_its_document(soukai: ClientProcess, home: Home) -> None:
    """C-17."""
    url = home.put("alice", person("Alice")) + "#it"
    report = soukai.run("remove", home.agent, url=url)
    assert report.value is False
    assert len(report.sent("DELETE")) == 1
    assert home.get("alice").status == 404
    assert home.members() == set()


def test_a_model_is_deleted_from_a_document_that_holds_others(
    soukai: ClientProcess, home: Home
) -> None:
    url = home.put("alice", ALICE) + "#it"
    report = soukai.run("remove", home.agent, url=url)
    assert report.sent("DELETE") == []
    kept = f'<#dog> a <http://example.org/Dog>; <{FOAF.name}> "Rex".'
    assert home.triples("alice") == _saying(home, "alice", kept)


@pytest.mark.parametrize(("stranger", "status"), [(False, 401), (True, 403)])
def test_agents_without_write_access_create_nothing(
    soukai: ClientProcess, home: Home, other: Agent, stranger: bool, status: int
) -> None:
    """W-30, C-21: the library asks first, and learns nothing."""
    agent = other if stranger else None
    with pytest.raises(ClientFailed, match=f"got {status} response") as failed:
        soukai.run("create", agent, container=home.url, attributes={"name": "Mallory"})
    assert [sent.method for sent in failed.value.requests] == ["GET"]
    assert home.members() == set()


# --- history ----------------------------------------------------------------------------------


def test_a_model_keeps_its_history_in_its_document(soukai: ClientProcess, home: Home) -> None:
    """Operations and times of creation and change, which another client reads."""
    changes = [{"name": "Chihiro"}, {"rating": 9, "genres": ["drama", "fantasy"]}]
    url = soukai.run(
        "createWithHistory", home.agent, container=home.url, name="Spirited Away", changes=changes
    ).value
    stored = home.triples(_name(home, url))
    movie, metadata = URIRef(url), URIRef(f"{url}-metadata")
    assert (movie, SCHEMA.name, Literal("Chihiro")) in stored
    assert {
        each for one, predicate, each in stored if (one, predicate) == (movie, SCHEMA.genre)
    } == {
        Literal("drama"),
        Literal("fantasy"),
    }
    operations = {one for one, predicate, _ in stored if predicate == CRDT.property}
    [created] = [when for one, what, when in stored if (one, what) == (metadata, CRDT.createdAt)]
    [updated] = [when for one, what, when in stored if (one, what) == (metadata, CRDT.updatedAt)]
    found = soukai.run("readHistory", home.agent, url=url).value
    assert found["name"] == "Chihiro"
    assert found["operations"] == len(operations)
    for told, date in (("created", created), ("updated", updated)):
        assert isinstance(date, Literal)
        assert dt.datetime.fromisoformat(found[told]) == date.toPython()
    # Of each value at first and of each change: two names, a rating, and two genres.
    assert len(operations) == 5


def test_changes_that_two_clients_made_apart_are_brought_together(
    soukai: ClientProcess, home: Home
) -> None:
    url = soukai.run(
        "createWithHistory", home.agent, container=home.url, name="First", changes=[]
    ).value
    report = soukai.run("synchronize", home.agent, url=url, name="Second", rating=7)
    assert report.value == {"name": "Second", "rating": 7}
    stored = home.triples(_name(home, url))
    assert {each for _, predicate, each in stored if predicate == SCHEMA.rating} == {Literal(7)}
    assert {each for _, predicate, each in stored if predicate == SCHEMA.name} == {
        Literal("Second")
    }


def test_a_deleted_model_leaves_a_tombstone(soukai: ClientProcess, home: Home) -> None:
    """One PATCH that deletes everything, and inserts the tombstone."""
    report = soukai.run("leaveTombstone", home.agent, container=home.url, name="Gone")
    url, found = report.value["url"], report.value["found"]
    assert found is False
    metadata = URIRef(f"{url}-metadata")
    stored = home.triples(_name(home, url))
    [when] = [each for _, predicate, each in stored if predicate == CRDT.deletedAt]
    assert stored == {
        (metadata, RDF.type, CRDT.Tombstone),
        (metadata, CRDT.resource, URIRef(url)),
        (metadata, CRDT.deletedAt, when),
    }


# --- containers -------------------------------------------------------------------------------


def test_a_container_is_created_without_content(soukai: ClientProcess, home: Home) -> None:
    """C-9, P-21; and named by a PATCH of its description (C-30)."""
    report = soukai.run("createContainer", home.agent, parent=home.url, name="My Films")
    assert report.value == home.url + "my-films/"
    [put] = report.sent("PUT")
    assert put.headers["link"] == f'<{LDP.BasicContainer}>; rel="type"'
    assert put.headers["if-none-match"] == "*"
    assert "content-type" not in put.headers
    assert put.status == 201
    [patch] = report.sent("PATCH")
    assert (patch.url, patch.status) == (f"{report.value}.meta", 204)
    container = URIRef(report.value)
    said = home.triples("my-films/")
    assert (container, RDFS.label, Literal("My Films")) in said
    assert (container, RDF.type, LDP.BasicContainer) in said
    assert home.members() == {"my-films/"}


def test_a_container_of_a_name_that_is_taken_gets_another(
    soukai: ClientProcess, home: Home
) -> None:
    """C-4: nothing that exists is touched."""
    taken = home.put("films/", f'<> <{RDFS.label}> "First".')
    created = soukai.run("createContainer", home.agent, parent=home.url, name="Films").value
    assert created != taken
    assert home.members() == {"films/", _name(home, created)}
    assert (URIRef(taken), RDFS.label, Literal("First")) in home.triples("films/")


def test_a_container_is_renamed_and_its_members_stay(soukai: ClientProcess, home: Home) -> None:
    """C-13, C-30: what is said of it changes, containment does not."""
    url = home.put("films/", f'<> <{RDFS.label}> "Old"; <{RDFS.comment}> "mine".')
    home.put("films/a", "")
    assert soukai.run("renameContainer", home.agent, url=url, name="New").value == "New"
    said = home.triples("films/")
    assert {each for _, what, each in said if what == RDFS.label} == {Literal("New")}
    assert (URIRef(url), RDFS.comment, Literal("mine")) in said
    assert (URIRef(url), LDP.contains, URIRef(url + "a")) in said


def test_a_container_notifies_of_its_members(soukai: ClientProcess, home: Home) -> None:
    """C-24: documents by their media types, and when they changed; the films among them."""
    url = home.put("films/", "")
    film = soukai.run("addToContainer", home.agent, url=url, name="Ran").value.partition("#")[0]
    note = home.put("films/note.jsonld", "{}", JSON_LD)
    nested = home.put("films/old/", "")
    found = soukai.run("readContainer", home.agent, url=url).value
    assert set(found["resources"]) == {film, note, nested}
    assert found["movies"] == ["Ran"]
    assert set(found["documents"]) == {film, note, nested}
    for member, updated_s in found["documents"].items():
        name = member.removeprefix(home.url)
        assert updated_s == _last_modified_s(home, name)
    assert found["updated"] == _last_modified_s(home, "films/")


def test_containers_of_a_container_are_listed_with_their_names(
    soukai: ClientProcess, home: Home
) -> None:
    """C-23."""
    home.put("a/", f'<> <{RDFS.label}> "First".')
    home.put("b/", "")
    home.put("note", person("No container"))
    report = soukai.run("listContainers", home.agent, parent=home.url)
    assert report.value == {f"{home.url}a/": "First", f"{home.url}b/": None}


def test_an_empty_container_is_deleted(soukai: ClientProcess, home: Home) -> None:
    """C-17."""
    url = home.put("films/", f'<> <{RDFS.label}> "Old".')
    report = soukai.run("removeContainer", home.agent, url=url)
    assert report.value is False
    assert home.get("films/").status == 404
    assert home.members() == set()


def _last_modified_s(home: Home, name: str) -> float:
    return parsedate_to_datetime(home.get(name, TURTLE).headers["last-modified"]).timestamp()


# --- access and discovery ---------------------------------------------------------------------


def test_a_model_is_made_public_and_private_again(
    soukai: ClientProcess, home: Home, server: ServerProcess
) -> None:
    """W-50, W-3, W-5: the library reads WAC-Allow, climbs to the effective ACL, and patches one."""
    url = home.put("alice", ALICE)
    with Client(server) as anybody:
        for is_public, status in ((True, 200), (False, 401)):
            arguments = {"url": f"{url}#it", "isPublic": is_public}
            report = soukai.run("setPublic", home.agent, **arguments)
            assert report.value == {"before": not is_public, "after": is_public}
            assert anybody.get(home.path + "alice").status == status
    assert home.get("alice").status == 200


def test_a_profile_tells_applications_what_they_need(soukai: ClientProcess, home: Home) -> None:
    """A-98: from the WebID alone."""
    pod = home.url.removesuffix(home.path) + home.pod.root
    assert soukai.run("readProfile", home.agent).value == {
        "webId": home.pod.web_id,
        "cloaked": False,
        "writableProfileUrl": pod,
        "storageUrls": [pod],
        "name": home.pod.name,
        "publicTypeIndexUrl": f"{pod}settings/publicTypeIndex.ttl",
        "privateTypeIndexUrl": f"{pod}settings/privateTypeIndex.ttl",
    }


def test_a_container_is_registered_and_found_by_what_it_holds(
    soukai: ClientProcess, server: ServerProcess
) -> None:
    """A-98, C-30: the new index is told in the profile, by a PATCH of the pod's root."""
    pod = create_pod(server)
    root = f"{server.base_url}{pod.root}"
    arguments = {"pod": root, "container": f"{root}films/"}
    report = soukai.run("registerContainer", Agent(pod.web_id, pod.token), **arguments)
    index = report.value["index"]
    assert report.value["found"] == [f"{root}films/"]
    with Client(server) as anybody:  # to whom a public index is open
        answer = anybody.get(pod.root, Accept=TURTLE)
        profile = triples(answer.body, TURTLE, root)
        assert (URIRef(pod.web_id), SOLID.publicTypeIndex, URIRef(index)) in profile
        answer = anybody.get(index.removeprefix(server.base_url), Accept=TURTLE)
        registered = {
            each for each in triples(answer.body, TURTLE, index) if each[2] == SCHEMA.Movie
        }
        assert [predicate for _, predicate, _ in registered] == [SOLID.forClass]
