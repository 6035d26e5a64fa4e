"""Two nodes on one PostgreSQL database: what one acknowledges, the other has, whatever dies."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from tests.support.postgresql import PostgresServer, new_database, server_on_disk
from tests.support.server import DEADLINE_S, Answer, ServerProcess

BASE = "http://pods.example"
WRITERS = 8
WRITES = 6
"""How many writes each writer has acknowledged before something dies, at least one of them."""
ATTEMPTS = 2000
_STATE = re.compile(r'notify:state ("[^"]+")')


@dataclass
class Node(ServerProcess):
    """A server with the database and the base URL of others."""

    token: str = ""

    @property
    def base_url(self) -> str:
        return BASE

    def ask(self, method: str, target: str, body: str = "") -> Answer:
        """A request of the pod's owner."""
        fields = {"Host": "pods.example", "Content-Type": "text/plain"}
        if self.token:
            fields["Authorization"] = f"Bearer {self.token}"
        return self.request(method, target, body or None, fields)


@dataclass
class Acknowledged:
    """What writers know to be stored, by target."""

    contents: dict[str, str] = field(default_factory=dict)

    def write(self, node: Node, name: str, *, reached: Event, gone: Event) -> None:
        """Replace one document of each writer, until the node or its database is gone."""
        for number in range(ATTEMPTS):
            target, content = f"/ann/private/{name}", f"{name} {number}"
            try:
                answer = node.ask("PUT", target, content)
            except (OSError, http.client.HTTPException):
                return
            if answer.status in (200, 201, 204, 205):
                self.contents[target] = content
            if number == WRITES:
                reached.set()
            if gone.is_set():
                return

    def check(self, node: Node) -> None:
        """Everything is there, as it was acknowledged or newer."""
        assert self.contents
        for target, content in self.contents.items():
            answer = node.ask("GET", target)
            assert answer.status == 200, (target, answer)
            name, number = answer.text.split()
            assert name == content.split()[0]
            assert int(number) >= int(content.split()[1]), "an acknowledged write is lost"


@pytest.fixture
def database() -> Iterator[str]:
    with new_database() as url:
        yield url


@contextlib.contextmanager
def running_nodes(folder: Path, database: str) -> Iterator[list[Node]]:
    """Two nodes, and a pod on them."""
    (folder / "root").mkdir()
    nodes = []
    with contextlib.ExitStack() as stack:
        for name in ("first", "second"):
            # Each has a name of its own for the shared folder, for its log.
            (folder / name).symlink_to(folder / "root")
            options = ("--workers", "1", "--base-url", BASE, "--admin-listen", "off")
            environment = {"PODSTEAD_DATABASE": database}
            node = Node(folder / name, options=options, environment=environment)
            stack.callback(node.close)
            node.start()
            nodes.append(node)
        fields = {"Host": "pods.example", "Content-Type": "application/json"}
        created = nodes[0].request("POST", "/.pods", json.dumps({"name": "ann"}), fields)
        assert created.status == 201, created.text
        for node in nodes:
            node.token = json.loads(created.body)["token"]
        yield nodes


@pytest.fixture
def nodes(disk_path: Path, database: str) -> Iterator[list[Node]]:
    with running_nodes(disk_path, database) as started:
        yield started


def test_a_write_to_one_node_is_seen_by_the_next_read_from_the_other(nodes: list[Node]) -> None:
    for number in range(30):
        writing, reading = nodes[number % 2], nodes[1 - number % 2]
        put = writing.ask("PUT", "/ann/private/note", f"text {number}")
        assert put.status in (201, 204, 205), put.text
        assert reading.ask("GET", "/ann/private/note").text == f"text {number}"
    assert nodes[0].ask("DELETE", "/ann/private/note").status in (200, 204, 205)
    assert nodes[1].ask("GET", "/ann/private/note").status == 404


def test_access_that_one_node_takes_away_is_gone_on_the_other(nodes: list[Node]) -> None:
    first, second = nodes
    assert first.ask("PUT", "/ann/public/page", "text").status == 201
    strangers = {"Host": "pods.example"}
    for _ in range(3):
        assert second.request("GET", "/ann/public/page", headers=strangers).status == 200
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>. <#owner> a acl:Authorization;"
        f" acl:accessTo <{BASE}/ann/public/page>; acl:agent <{BASE}/ann/#me>;"
        " acl:mode acl:Read, acl:Write, acl:Control."
    )
    fields = {
        "Host": "pods.example",
        "Content-Type": "text/turtle",
        "Authorization": f"Bearer {first.token}",
    }
    put = first.request("PUT", "/ann/public/page.acl", rules, fields)
    assert put.status in (201, 204, 205), put.text
    assert second.request("GET", "/ann/public/page", headers=strangers).status == 401


def test_a_watcher_hears_of_the_writes_to_another_node_in_their_order(nodes: list[Node]) -> None:
    first, second = nodes
    assert first.ask("PUT", "/ann/private/note", "text").status == 201
    target = f"/.notifications/StreamingHTTPChannel2023/{_quoted(BASE + '/ann/private/note')}"
    connection = second.connect()
    with contextlib.closing(connection):
        fields = {"Host": "pods.example", "Authorization": f"Bearer {second.token}"}
        connection.request("GET", target, headers=fields)
        stream = connection.getresponse()
        assert stream.status == 200
        tags = []
        for number in range(5):
            put = first.ask("PUT", "/ann/private/note", f"text {number}")
            tags.append(put.headers["etag"])
        heard = ""
        while f"notify:state {tags[-1]}" not in heard:
            heard += stream.read1(100).decode()
    # A message names the state at the time it is sent, which may be newer than its change.
    states = [tags.index(tag) for tag in _STATE.findall(heard) if tag in tags]
    assert states == sorted(states)


def test_a_killed_node_has_stored_all_that_it_acknowledged(nodes: list[Node]) -> None:
    first, second = nodes
    acknowledged, reached, gone = Acknowledged(), Event(), Event()
    with ThreadPoolExecutor(WRITERS) as threads:
        for number in range(WRITERS):
            node = nodes[number % 2]
            threads.submit(acknowledged.write, node, f"doc{number}", reached=reached, gone=gone)
        assert reached.wait(DEADLINE_S)
        first.kill()
        gone.set()
    acknowledged.check(second)
    first.start()
    acknowledged.check(first)


def test_a_killed_database_has_stored_all_that_was_acknowledged(disk_path: Path) -> None:
    with server_on_disk(PostgresServer) as server:
        server.create()
        with running_nodes(disk_path, server.create_database()) as nodes:
            acknowledged, reached, gone = Acknowledged(), Event(), Event()
            with ThreadPoolExecutor(WRITERS) as threads:
                for number in range(WRITERS):
                    node, name = nodes[number % 2], f"doc{number}"
                    threads.submit(acknowledged.write, node, name, reached=reached, gone=gone)
                assert reached.wait(DEADLINE_S)
                server.kill()
                gone.set()
            # Trouble is answered as such, and ends when the database is back.
            assert nodes[0].ask("GET", "/ann/private/doc0").status == 503
            server.start()
            for node in nodes:
                _wait_until_it_answers(node)
                acknowledged.check(node)


def _wait_until_it_answers(node: Node) -> None:
    for _ in range(ATTEMPTS):
        if node.ask("GET", "/ann/private/doc0").status == 200:
            return
    raise AssertionError("the node does not recover")


def _quoted(url: str) -> str:
    return url.replace(":", "%3A").replace("/", "%2F")
