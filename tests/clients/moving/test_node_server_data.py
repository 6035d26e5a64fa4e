"""Pods that Node Solid Server wrote, imported and compared with what it had answered.

Its packages take half a gigabyte, so its files and answers are recorded
(``tests/servers/node/record.py``). Each pod had a host name of its own there.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import rdflib

from tests.clients.client_home import StartClient
from tests.clients.moving.reading_clients import LIBRARIES, SCENARIO, assert_read
from tests.support.client_process import Agent, ClientProcess
from tests.support.recorded_pod import TURTLE, Asking, Recorded, assert_same, members, wac_modes
from tests.support.server import Answer, ServerProcess, request_to, run_command, running_server

pytestmark = pytest.mark.feature("importers")


RECORDED = Path(__file__).resolve().parents[2] / "servers/node/recorded"
THERE = "https://alice.localhost:8443/"
PASSWORD = "password123"
CONTAINS = rdflib.URIRef("http://www.w3.org/ns/ldp#contains")
SERVERS_OWN = (".acl", ".meta")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("moved") / "root"
    with running_server(ServerProcess(root, ("--idp",))) as running:
        command = ("import", "nss", str(RECORDED / "server"), "--root", str(root), "--json")
        ended = run_command(*command)
        report = json.loads(ended.stdout)
        assert {pod["name"]: pod["account"] for pod in report["pods"]} == {
            "alice": True,
            "bob": True,
        }
        # The server's own site is nobody's data.
        assert report["left_out"] == []
        assert ended.returncode == 0
        yield running


def sign_in(server: ServerProcess, name: str) -> Answer:
    login = json.dumps({"email": f"{name}@example.com", "password": PASSWORD})
    url = f"{server.base_url}/idp/credentials"
    return request_to("POST", url, login, {"Content-Type": "application/json"})


@pytest.fixture(scope="module")
def everybody(server: ServerProcess) -> dict[str, Asking]:
    """Signed in here with the old passwords."""

    def ask(token: str) -> Asking:
        credentials = {"Authorization": f"Bearer {token}"} if token else {}
        return lambda url, accept: request_to("GET", url, None, {"Accept": accept, **credentials})

    tokens = {
        name: json.loads(sign_in(server, name).body)["access_token"] for name in ("alice", "bob")
    }
    return {name: ask(token) for name, token in {**tokens, "public": ""}.items()}


def recorded() -> Iterator[Recorded]:
    for answer in json.loads((RECORDED / "answers.json").read_text()):
        yield Recorded(
            THERE + answer["name"],
            TURTLE if answer["type"].partition(";")[0] == TURTLE else answer["type"],
            base64.b64decode(answer["body"]),
            answer["statuses"],
            wac_modes(answer["wac_allow"]),
        )


def renamed(there: Recorded, server: ServerProcess) -> Recorded:
    """With the names here of the provider and of the other pod."""
    body = there.body.replace(b"<https://localhost:8443>", f"<{server.base_url}>".encode())
    bob = f"{server.base_url}/bob/".encode()
    return dataclasses.replace(there, body=body.replace(b"https://bob.localhost:8443/", bob))


def test_every_resource_is_answered_as_before(
    server: ServerProcess, everybody: dict[str, Asking]
) -> None:
    """With names that begin with a slash now below the pod, since the host is everybody's."""
    here = f"{server.base_url}/alice/"
    compared = 0
    for there in recorded():
        url = there.url.replace(THERE, here)
        if url.endswith("/"):
            listed = {each.replace(here, THERE) for each in members(url, everybody["alice"])}
            before = {str(each) for each in there.graph.objects(None, CONTAINS)}
            assert listed == {each for each in before if not each.endswith(SERVERS_OWN)}
            continue
        accept = "*/*" if there.content_type != TURTLE else TURTLE
        answers = {name: ask(url, accept) for name, ask in everybody.items()}
        found = Recorded(
            url,
            answers["alice"].headers["content-type"],
            answers["alice"].body,
            {name: answer.status for name, answer in answers.items()},
            wac_modes(answers["alice"].headers["wac-allow"]),
        )
        expected = renamed(there, server)
        if url.endswith(".acl"):
            expected = dataclasses.replace(expected, modes={})
        assert_same(expected, found, old=THERE, new=here)
        compared += 1
    assert compared == 21


@pytest.fixture(scope="module")
def alice(server: ServerProcess) -> Agent:
    signed_in = json.loads(sign_in(server, "alice").body)
    assert signed_in["webid"] == f"{server.base_url}/alice/profile/card#me"
    return Agent(signed_in["webid"], signed_in["access_token"])


@pytest.fixture(scope="module")
def reader(start_client: StartClient) -> ClientProcess:
    return start_client(SCENARIO)


def test_a_client_library_finds_the_pod_and_reads_it(
    server: ServerProcess, alice: Agent, start_client: StartClient
) -> None:
    client = start_client("solid-client.mjs")
    pod = f"{server.base_url}/alice/"
    assert client.run("findPods", alice).value == [pod]
    read = client.run("readFile", alice, url=f"{pod}notes/picture").value
    assert read["type"] == "image/png"
    described = client.run("describeResource", alice, url=f"{pod}notes/one%2Ftwo.txt").value
    assert described["contentType"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_reads_documents_as_they_were(
    server: ServerProcess, alice: Agent, reader: ClientProcess, library: str
) -> None:
    here = f"{server.base_url}/alice/"
    documents = {each.url: renamed(each, server) for each in recorded()}
    for name, agent in (
        ("notes/page.html", alice),
        ("profile/card", alice),
        ("settings/publicTypeIndex.ttl", None),
    ):
        assert_read(reader, library, agent, documents[THERE + name], old=THERE, new=here)
