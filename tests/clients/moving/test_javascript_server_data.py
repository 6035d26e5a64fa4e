"""Pods that javascript-solid-server wrote, imported and compared with what it had answered."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest

from podstead.core.media_types import JSON_LD
from tests.clients.client_home import StartClient
from tests.clients.moving.javascript_server import (
    PASSWORD,
    JavaScriptServer,
    running_javascript_server,
)
from tests.clients.moving.reading_clients import LIBRARIES, SCENARIO, assert_read
from tests.support import rdf_oracle
from tests.support.client_process import Agent, ClientProcess
from tests.support.recorded_pod import (
    TURTLE,
    Asking,
    Recorded,
    assert_same,
    members,
    naming_issuer,
    record_all,
)
from tests.support.server import Answer, ServerProcess, request_to, run_command, running_server

pytestmark = pytest.mark.feature("importers")


PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + bytes(range(256))
NOTE = b'<#note> <http://purl.org/dc/terms/title> "Caf\xc3\xa9"; <#maker> <#me>.'
DOCUMENTS = {
    "public/plain.txt": ("text/plain", b"plain"),
    "public/a%20b.txt": ("text/plain", b"a space"),
    "public/%C3%BCn%C3%AFcode.ttl": ("text/turtle", NOTE),
    "public/note.ttl": ("text/turtle", NOTE),
    "public/data.jsonld": ("application/ld+json", b'{"@id": "#x", "http://e.example/y": "z"}'),
    "private/note.ttl": ("text/turtle", NOTE),
    "private/data.json": ("application/json", b'{"not": "linked"}'),
    "private/picture.png": ("image/png", PNG),
    "private/page.html": ("text/html", b"<!DOCTYPE html><title>a page</title>"),
    "private/bytes.bin": ("application/octet-stream", b"\x00\xff"),
    "shared/with-bob.ttl": ("text/turtle", NOTE),
}
CREATED = ("profile/card", "Settings/Preferences.ttl", "Settings/publicTypeIndex.ttl")
CONTAINERS = ("", "public/", "private/", "shared/", "Settings/")
ACLS = ("", "public/", "private/", "shared/", "inbox/")
RDF = (".ttl", ".jsonld", "/card", ".acl")


def asking(tokens: Mapping[str, str]) -> dict[str, Asking]:
    def ask(token: str) -> Asking:
        credentials = {"Authorization": f"Bearer {token}"} if token else {}
        return lambda url, accept: request_to("GET", url, None, {"Accept": accept, **credentials})

    return {name: ask(token) for name, token in tokens.items()}


@dataclass
class Written:
    data: Path
    base_url: str
    port: int
    documents: dict[str, Recorded]
    acls: dict[str, Recorded]
    members: dict[str, set[str]]


def rdf_of(urls: Mapping[str, Recorded] | list[str]) -> list[str]:
    return [url for url in urls if url.endswith(RDF)]


def write(server: JavaScriptServer) -> Written:
    alice, bob = server.create_pod("alice"), server.create_pod("bob")
    pod = f"{server.base_url}alice/"
    headers = {"Authorization": f"Bearer {alice}"}

    def put(name: str, content_type: str, body: bytes) -> str:
        fields = {**headers, "Content-Type": content_type}
        answer = request_to("PUT", pod + name, body, fields)
        assert answer.status in {201, 204}, (name, answer.text)
        return pod + name

    urls = [put(name, *content) for name, content in DOCUMENTS.items()]
    rules = {
        "@context": {"acl": "http://www.w3.org/ns/auth/acl#"},
        "@graph": [
            {
                "@id": f"#{name}",
                "@type": "acl:Authorization",
                "acl:agent": {"@id": f"{server.base_url}{name}/profile/card#me"},
                "acl:accessTo": {"@id": f"{pod}shared/"},
                "acl:default": {"@id": f"{pod}shared/"},
                "acl:mode": [{"@id": f"acl:{mode}"} for mode in modes],
            }
            for name, modes in (("alice", ("Read", "Write", "Control")), ("bob", ("Read",)))
        ],
    }
    put("shared/.acl", "application/ld+json", json.dumps(rules).encode())
    everybody = asking({"alice": alice, "bob": bob, "public": ""})
    documents = [*urls, *(pod + name for name in CREATED)]
    acls = [f"{pod}{name}.acl" for name in ACLS]
    recorded = record_all(documents, everybody, rdf=rdf_of(documents))
    # The issuer as this server's discovery document spells it (OpenID Connect Discovery 4.3).
    profile, issuer = f"{pod}profile/card", server.base_url.removesuffix("/")
    recorded[profile] = naming_issuer(recorded[profile], issuer)
    return Written(
        server.data,
        server.base_url,
        server.port,
        recorded,
        record_all(acls, everybody, rdf=acls),
        {pod + name: members(pod + name, everybody["alice"]) for name in CONTAINERS},
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    with running_javascript_server(tmp_path_factory.mktemp("javascript")) as server:
        return write(server)


@pytest.fixture(scope="module")
def server(written: Written, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server that took over the address, with everything imported while it runs."""
    root = tmp_path_factory.mktemp("moved") / "root"
    with running_server(ServerProcess(root, ("--idp",), port=written.port)) as running:
        ended = run_command("import", "jss", str(written.data), "--root", str(root), "--json")
        assert ended.returncode == 0, ended.stdout
        yield running


def sign_in(server: ServerProcess, name: str) -> Answer:
    login = json.dumps({"email": f"{name}@example.com", "password": PASSWORD})
    url = f"{server.base_url}/idp/credentials"
    return request_to("POST", url, login, {"Content-Type": "application/json"})


@pytest.fixture(scope="module")
def alice(written: Written, server: ServerProcess) -> Agent:
    token = json.loads(sign_in(server, "alice").body)["access_token"]
    return Agent(f"{written.base_url}alice/profile/card#me", token)


@pytest.fixture(scope="module")
def reader(start_client: StartClient) -> ClientProcess:
    return start_client(SCENARIO)


@pytest.fixture(scope="module")
def everybody(server: ServerProcess) -> dict[str, Asking]:
    """Signed in here with the old passwords."""
    tokens = {
        name: json.loads(sign_in(server, name).body)["access_token"] for name in ("alice", "bob")
    }
    return asking({**tokens, "public": ""})


def test_every_resource_is_answered_as_before(
    written: Written, everybody: dict[str, Asking]
) -> None:
    here = record_all(written.documents, everybody, rdf=rdf_of(written.documents))
    for url, there in written.documents.items():
        if url.endswith(".json"):  # the other server calls all JSON JSON-LD, and indents it
            assert here[url].content_type == "application/json"
            assert json.loads(here[url].body) == json.loads(there.body)
        else:
            assert_same(there, here[url])


def test_access_rules_say_the_same(written: Written, everybody: dict[str, Asking]) -> None:
    here = record_all(written.acls, everybody, rdf=written.acls)
    for url, there in written.acls.items():
        # The other server calls them octets, whatever is asked for.
        rules = rdf_oracle.read(there.body, JSON_LD, base_iri=url)
        as_turtle = dataclasses.replace(
            there, content_type=TURTLE, body=rules.serialize(format="turtle").encode(), modes={}
        )
        assert_same(as_turtle, here[url])


def test_every_container_has_the_same_members(
    written: Written, everybody: dict[str, Asking]
) -> None:
    for url, there in written.members.items():
        # The other server lists access rules and its own record, too, and does not escape names.
        expected = {each for each in there if not each.endswith((".acl", "/.quota.json"))}
        assert {unquote(each) for each in members(url, everybody["alice"])} == expected, url


def test_a_client_library_finds_the_pod_and_reads_it(
    written: Written, alice: Agent, start_client: StartClient
) -> None:
    client = start_client("solid-client.mjs")
    assert client.run("findPods", alice).value == [f"{written.base_url}alice/"]
    url = f"{written.base_url}alice/private/picture.png"
    read = client.run("readFile", alice, url=url).value
    assert (read["type"], bytes(read["bytes"])) == ("image/png", PNG)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_reads_documents_as_they_were(
    written: Written, alice: Agent, reader: ClientProcess, library: str
) -> None:
    pod = f"{written.base_url}alice/"
    assert_read(reader, library, alice, written.documents[f"{pod}private/note.ttl"])
    assert_read(reader, library, alice, written.documents[f"{pod}profile/card"])
    assert_read(reader, library, None, written.documents[f"{pod}public/note.ttl"])
