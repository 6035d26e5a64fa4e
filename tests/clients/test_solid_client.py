"""@inrupt/solid-client saves, reads, changes, lists and deletes."""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from rdflib import RDF, XSD, Literal, URIRef
from rdflib.namespace import FOAF

from tests.clients.client_home import Home, StartClient
from tests.support.client import create_pod
from tests.support.client_process import Agent, ClientFailed, ClientProcess
from tests.support.rdf import TURTLE, triples
from tests.support.server import ServerProcess, running_server

LDP = "http://www.w3.org/ns/ldp#"
BYTES = bytes(range(256))


@pytest.fixture(scope="module")
def solid_client(start_client: StartClient) -> ClientProcess:
    return start_client("solid-client.mjs")


def named(url: str, *names: str) -> set[tuple[URIRef, URIRef, Literal]]:
    return {(URIRef(f"{url}#me"), FOAF.name, Literal(name)) for name in names}


# --- Datasets ---------------------------------------------------------------------------------


def test_a_new_dataset_is_saved(solid_client: ClientProcess, home: Home) -> None:
    """PUT of Turtle, with If-None-Match and a link to its type."""
    url = home.url + "card"
    report = solid_client.run("saveNewDataset", home.agent, url=url, name="Alice")
    assert report.value == "Alice"
    [put] = report.requests
    assert (put.method, put.status) == ("PUT", 201)
    assert put.headers["if-none-match"] == "*"
    assert put.headers["link"] == f'<{LDP}Resource>; rel="type"'
    assert home.triples("card") == named(url, "Alice")


def test_a_new_dataset_makes_the_containers_on_the_way(
    solid_client: ClientProcess, home: Home
) -> None:
    solid_client.run("saveNewDataset", home.agent, url=home.url + "a/b/card", name="Alice")
    assert home.members() == {"a/"}
    assert home.triples("a/b/card") == named(home.url + "a/b/card", "Alice")


def test_a_new_dataset_never_replaces_another_one(solid_client: ClientProcess, home: Home) -> None:
    """The library tells the refused precondition."""
    url = home.put("card", '<#me> <http://xmlns.com/foaf/0.1/name> "Alice".')
    with pytest.raises(ClientFailed) as failed:
        solid_client.run("saveNewDataset", home.agent, url=url, name="Mallory")
    assert failed.value.status == 412
    assert home.triples("card") == named(url, "Alice")


def test_a_dataset_that_was_read_is_changed(solid_client: ClientProcess, home: Home) -> None:
    """PATCH with DELETE DATA and INSERT DATA, each with its semicolon."""
    url = home.put("card", '<#me> <http://xmlns.com/foaf/0.1/name> "Alice".')
    report = solid_client.run("changeDataset", home.agent, url=url, name="Alicia", nicks=["Al"])
    [patch] = report.sent("PATCH")
    assert patch.headers["content-type"] == "application/sparql-update"
    me = URIRef(f"{url}#me")
    assert home.triples("card") == {
        (me, FOAF.name, Literal("Alicia")),
        (me, FOAF.nick, Literal("Al")),
    }


def test_a_saved_dataset_is_changed_again_without_being_read(
    solid_client: ClientProcess, home: Home
) -> None:
    url = home.put("card", '<#me> <http://xmlns.com/foaf/0.1/name> "Alice".')
    nicks = ["Al", "Ali", "Lis"]
    report = solid_client.run("changeDataset", home.agent, url=url, name="Alicia", nicks=nicks)
    assert set(report.value) == set(nicks)
    assert len(report.sent("PATCH")) == 3
    nick = {str(value) for _, predicate, value in home.triples("card") if predicate == FOAF.nick}
    assert nick == set(nicks)


def test_a_change_to_missing_triples_still_adds(solid_client: ClientProcess, home: Home) -> None:
    """As SPARQL has it, DELETE DATA of an absent triple is no error."""
    url = home.put("card", '<#me> <http://xmlns.com/foaf/0.1/name> "Alice".')
    report = solid_client.run("changeOutdatedDataset", home.agent, url=url)
    assert len(report.sent("PATCH")) == 2
    assert home.triples("card") == named(url, "first", "second")


def test_blank_nodes_beside_a_change_stay_as_they_are(
    solid_client: ClientProcess, home: Home
) -> None:
    document = '<#me> a _:kind; <http://xmlns.com/foaf/0.1/name> "{}". _:kind <#in> [ <#b> 1 ].'
    url = home.put("card", document.format("Alice"))
    solid_client.run("changeDataset", home.agent, url=url, name="Alicia", nicks=["Al"])
    expected = document.format("Alicia") + '<#me> <http://xmlns.com/foaf/0.1/nick> "Al".'
    assert home.triples("card") == triples(expected, TURTLE, url)


def test_a_json_ld_document_is_read_and_changed(solid_client: ClientProcess, home: Home) -> None:
    """The library asks for Turtle, whatever is stored."""
    json_ld = '{"@id": "#me", "http://xmlns.com/foaf/0.1/name": "Alice"}'
    url = home.put("card", json_ld, "application/ld+json")
    assert solid_client.run("readName", home.agent, url=url).value == "Alice"
    solid_client.run("changeDataset", home.agent, url=url, name="Alicia", nicks=["Al"])
    assert (URIRef(f"{url}#me"), FOAF.name, Literal("Alicia")) in home.triples("card")
    assert home.get("card").headers["content-type"] == "application/ld+json"


def test_literals_of_every_kind_come_back(solid_client: ClientProcess, home: Home) -> None:
    url = home.url + "literals"
    string = 'quotes " and \\ and\nlines, 日本'
    report = solid_client.run("saveLiterals", home.agent, url=url)
    assert report.value == {
        "string": string,
        "locale": "grüezi",
        "integer": -42,
        "decimal": 1.5,
        "boolean": True,
        "datetime": "2026-11-21T08:00:00.125Z",
        "url": "https://example.org/?a=b&c=%20#d",
    }
    stored = {predicate: value for _, predicate, value in home.triples("literals")}
    assert stored == {
        URIRef(f"{url}#string"): Literal(string),
        URIRef(f"{url}#locale"): Literal("grüezi", lang="de-ch"),
        URIRef(f"{url}#integer"): Literal(-42),
        URIRef(f"{url}#decimal"): Literal("1.5", datatype=XSD.decimal),
        URIRef(f"{url}#boolean"): Literal(True),
        URIRef(f"{url}#datetime"): Literal("2026-11-21T08:00:00.125Z", datatype=XSD.dateTime),
        URIRef(f"{url}#url"): URIRef("https://example.org/?a=b&c=%20#d"),
    }


def test_a_dataset_is_deleted(solid_client: ClientProcess, home: Home) -> None:
    url = home.put("card", "<#me> a <#it>.")
    solid_client.run("removeDataset", home.agent, url=url)
    assert home.get("card").status == 404
    assert home.members() == set()


@pytest.mark.parametrize("behaviour", ["readName", "readFile", "removeFile", "describeResource"])
def test_what_is_not_there_is_a_404_of_the_library(
    solid_client: ClientProcess, home: Home, behaviour: str
) -> None:
    with pytest.raises(ClientFailed) as failed:
        solid_client.run(behaviour, home.agent, url=home.url + "nothing")
    assert failed.value.status == 404


@pytest.mark.parametrize("behaviour", ["readName", "readFile", "removeFile"])
def test_the_public_gets_401_and_an_authenticated_agent_403(
    solid_client: ClientProcess, home: Home, other: Agent, behaviour: str
) -> None:
    """The status is the answer, not a page to sign in on."""
    url = home.put("card", "<#me> a <#it>.")
    for agent, status in ((None, 401), (other, 403)):
        with pytest.raises(ClientFailed) as failed:
            solid_client.run(behaviour, agent, url=url)
        assert failed.value.status == status
    assert home.get("card").status == 200


# --- Containers -------------------------------------------------------------------------------


def test_a_container_is_made_at_a_url(solid_client: ClientProcess, home: Home) -> None:
    """PUT without a body."""
    report = solid_client.run("makeContainerAt", home.agent, url=home.url + "box/")
    [put] = report.requests
    assert put.status == 201
    assert put.headers["if-none-match"] == "*"
    assert put.headers["link"] == f'<{LDP}BasicContainer>; rel="type"'
    assert report.value == home.url + "box/"
    assert home.members() == {"box/"}


def test_a_container_is_made_with_content(solid_client: ClientProcess, home: Home) -> None:
    url = home.url + "box/"
    solid_client.run("makeContainerWithContentAt", home.agent, url=url, name="Box")
    said = home.triples("box/")
    assert named(url, "Box") <= said
    assert (URIRef(url), RDF.type, URIRef(f"{LDP}BasicContainer")) in said


def test_a_container_is_not_made_twice(solid_client: ClientProcess, home: Home) -> None:
    """The caller is told, and what is in it stays."""
    solid_client.run("makeContainerAt", home.agent, url=home.url + "box/")
    home.put("box/card", "<#me> a <#it>.")
    with pytest.raises(ClientFailed) as failed:
        solid_client.run("makeContainerAt", home.agent, url=home.url + "box/")
    assert failed.value.status == 412
    assert home.get("box/card").status == 200


def test_a_container_is_made_in_a_container(solid_client: ClientProcess, home: Home) -> None:
    """POST with a slug; the answer names the new container."""
    report = solid_client.run("makeContainerIn", home.agent, url=home.url, slug="box")
    assert report.value == home.url + "box/"
    assert home.members() == {"box/"}


def test_a_container_in_a_container_needs_no_slug(solid_client: ClientProcess, home: Home) -> None:
    made = {solid_client.run("makeContainerIn", home.agent, url=home.url).value for _ in range(2)}
    assert {url.removeprefix(home.url) for url in made} == home.members()
    assert len(made) == 2
    assert all(url.endswith("/") for url in made)


def test_a_slug_that_is_taken_leads_to_another_name(
    solid_client: ClientProcess, home: Home
) -> None:
    for name in ("one", "two"):
        report = solid_client.run("saveDatasetIn", home.agent, url=home.url, name=name, slug="card")
        relative = report.value.removeprefix(home.url)
        assert home.triples(relative) == named(report.value, name)
    assert len(home.members()) == 2
    assert "card" in home.members()


def test_a_container_lists_its_members_with_what_they_are(
    solid_client: ClientProcess, home: Home
) -> None:
    """Type, media type, size and time of each."""
    home.put("card", "<#me> a <#it>.")
    home.put("photo.png", BYTES, "image/png")
    home.put("box/", "")
    listing = solid_client.run("listContainer", home.agent, url=home.url).value
    assert listing["isContainer"]
    assert listing["isValid"]
    members = {member["url"].removeprefix(home.url): member for member in listing["members"]}
    assert members.keys() == {"card", "photo.png", "box/"}
    assert members["photo.png"]["size"] == len(BYTES)
    assert members["card"]["size"] == len("<#me> a <#it>.")
    assert set(members["photo.png"]["types"]) == {
        "http://www.w3.org/ns/iana/media-types/image/png#Resource",
        f"{LDP}Resource",
    }
    assert {f"{LDP}Container", f"{LDP}BasicContainer"} <= set(members["box/"]["types"])
    for name, member in members.items():
        modified = parsedate_to_datetime(home.get(name).headers["last-modified"])
        assert datetime.fromisoformat(member["modified"]) == modified


def test_an_empty_container_lists_nothing(solid_client: ClientProcess, home: Home) -> None:
    assert solid_client.run("listContainer", home.agent, url=home.url).value["members"] == []


def test_an_empty_container_is_deleted(solid_client: ClientProcess, home: Home) -> None:
    home.put("box/", "")
    solid_client.run("removeContainer", home.agent, url=home.url + "box/")
    assert home.members() == set()


def test_a_container_with_members_is_not_deleted(solid_client: ClientProcess, home: Home) -> None:
    """The library tells the conflict."""
    home.put("box/card", "<#me> a <#it>.")
    with pytest.raises(ClientFailed) as failed:
        solid_client.run("removeContainer", home.agent, url=home.url + "box/")
    assert failed.value.status == 409
    assert home.get("box/card").status == 200


# --- Files ------------------------------------------------------------------------------------


def test_a_file_is_saved_in_a_container(solid_client: ClientProcess, home: Home) -> None:
    """POST whose Slug is the file's name; the answer says where it went."""
    report = solid_client.run(
        "saveFileIn",
        home.agent,
        url=home.url,
        name="photo.png",
        type="image/png",
        bytes=list(BYTES),
    )
    assert report.value == home.url + "photo.png"
    stored = home.get("photo.png")
    assert (stored.headers["content-type"], stored.body) == ("image/png", BYTES)


def test_a_file_is_read_as_it_was_stored(solid_client: ClientProcess, home: Home) -> None:
    url = home.put("photo.png", BYTES, "image/png")
    file = solid_client.run("readFile", home.agent, url=url).value
    assert file == {"type": "image/png", "bytes": list(BYTES), "isRawData": True}


def test_a_file_is_overwritten(solid_client: ClientProcess, home: Home) -> None:
    """PUT without a precondition, new and again, also with another media type."""
    url = home.url + "a/note"
    for content_type, content in (("text/plain", b"one"), ("application/x-note", b"two")):
        report = solid_client.run(
            "writeFile", home.agent, url=url, type=content_type, bytes=list(content)
        )
        assert report.value == url
        stored = home.get("a/note")
        assert (stored.headers["content-type"], stored.body) == (content_type, content)


def test_a_file_is_deleted(solid_client: ClientProcess, home: Home) -> None:
    url = home.put("photo.png", BYTES, "image/png")
    solid_client.run("removeFile", home.agent, url=url)
    assert home.get("photo.png").status == 404


# --- What a resource, a person and a server say of themselves ---------------------------------


def test_the_library_knows_data_from_files_and_what_it_may_do(
    solid_client: ClientProcess, home: Home
) -> None:
    """Content-Type and WAC-Allow as the library reads them."""
    everything = {"read": True, "append": True, "write": True}
    nothing = {"read": False, "append": False, "write": False}
    for name, content_type, raw in (("card", TURTLE, False), ("note", "text/plain", True)):
        url = home.put(name, "", content_type)
        assert solid_client.run("describeResource", home.agent, url=url).value == {
            "access": {"user": everything, "public": nothing},
            "contentType": content_type,
            "isRawData": raw,
        }


def test_what_the_public_may_do_is_seen_without_a_token(
    solid_client: ClientProcess, home: Home
) -> None:
    url = f"{home.pod.server.base_url}{home.pod.root}public/"
    reading = {"read": True, "append": False, "write": False}
    described = solid_client.run("describeResource", url=url).value
    assert described["access"] == {"user": reading, "public": reading}


def test_the_pods_of_a_person_are_found(solid_client: ClientProcess, home: Home) -> None:
    """The storage is in the profile, which the library reads without a token."""
    root = home.pod.server.base_url + home.pod.root
    assert solid_client.run("findPods", home.agent).value == [root]
    assert solid_client.run("isStorage", home.agent, url=root).value


def test_the_owner_of_a_pod_is_found_where_the_operator_lets_it(
    solid_client: ClientProcess, home: Home, tmp_path: Path
) -> None:
    """The podOwner link of the root; by default there is none."""
    hidden = home.pod.server.base_url + home.pod.root
    assert solid_client.run("findPodOwner", home.agent, url=hidden).value is None
    telling = ServerProcess(root=tmp_path / "root", options=("--advertise-owners",))
    with running_server(telling) as server:
        pod = create_pod(server)
        found = solid_client.run("findPodOwner", url=server.base_url + pod.root)
        assert found.value == pod.web_id


def test_the_description_of_the_server_is_found(solid_client: ClientProcess, home: Home) -> None:
    """At the origin's /.well-known/solid, as Turtle."""
    found = solid_client.run("readWellKnown", home.agent, url=home.url).value
    assert found == home.pod.server.base_url + "/.well-known/solid"
