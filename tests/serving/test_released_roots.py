"""The data roots of every released schema are opened, read and written by this version.

The oracle is what the server of that version answered (``tests/support/released_roots.py``).
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest
from rdflib import Graph, URIRef
from rdflib.namespace import Namespace

from podstead.storage.migrations import read_migrations
from tests.support.released_roots import (
    ACCOUNT,
    BASE_URL,
    FOLDER,
    SCHEMA_OF_ACCOUNTS,
    Recorded,
    bearer,
    schema_of,
    send,
    unpack,
)
from tests.support.server import ServerProcess, run_command

LDP = Namespace("http://www.w3.org/ns/ldp#")
NEWEST = read_migrations()[-1].number
SCHEMAS = sorted(int(path.name[len("schema-") :][:4]) for path in FOLDER.iterdir())


def test_there_is_a_root_of_each_earlier_schema() -> None:
    """Before a migration is added, ``python -m tests.support.released_roots`` writes the root of
    the schema so far."""
    assert set(range(1, NEWEST)) <= set(SCHEMAS)


@pytest.fixture(params=SCHEMAS)
def schema(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def released(schema: int, tmp_path: Path) -> tuple[dict[str, str], list[Recorded]]:
    return unpack(FOLDER / f"schema-{schema:04}.tar.xz", tmp_path)


@pytest.fixture
def port(schema: int, released: object, tmp_path: Path) -> Iterator[int]:
    """The port of a server of this version on the root."""
    assert released is not None
    root = tmp_path / "root"
    assert schema_of(root) == schema
    idp = ("--idp",) if schema >= SCHEMA_OF_ACCOUNTS else ()
    options = ("--base-url", BASE_URL, "--port", "0", "--workers", "1", *idp)
    server = ServerProcess(root=root, options=options)
    server.launch()
    try:
        line = server.wait_for_line("  listening")
        yield int(line.split(", port ")[1].split(",")[0])
        assert server.stop() == 0
        assert schema_of(root) == NEWEST
    finally:
        server.close()


def test_a_root_of_each_schema_is_opened_read_and_written(
    released: tuple[dict[str, str], list[Recorded]], port: int, schema: int, tmp_path: Path
) -> None:
    tokens, answers = released
    for expected in answers:
        check(expected, port, tokens[expected.agent])
    alice = {**bearer(tokens["alice"]), "Content-Type": "text/plain"}
    path, new = "/alice/data/one.txt", "/alice/data/new/four.txt"
    for target, status in ((path, http.client.NO_CONTENT), (new, http.client.CREATED)):
        assert send(port, "PUT", target, "of this version", alice)[0].status == status
        assert send(port, "GET", target, None, alice)[1] == "of this version"
    bob = {**bearer(tokens["bob"]), "Content-Type": "text/plain"}
    shared = "/alice/shared/for-bob.txt"
    assert send(port, "PUT", shared, "changed", bob)[0].status == http.client.FORBIDDEN
    for target in (path, "/alice/data/large.txt"):
        assert send(port, "DELETE", target, None, alice)[0].status == http.client.NO_CONTENT
        assert send(port, "GET", target, None, alice)[0].status == http.client.NOT_FOUND
    if schema >= SCHEMA_OF_ACCOUNTS:
        listed = run_command("account", "list", "--root", str(tmp_path / "root"))
        assert f"{ACCOUNT}@example.org" in listed.stdout
    pods = run_command("pod", "list", "--root", str(tmp_path / "root"))
    assert f"{BASE_URL}/alice/#me" in pods.stdout


def check(expected: Recorded, port: int, token: str) -> None:
    """The answer is the same now; of a container, the members are."""
    container = expected.path.endswith("/")
    headers = {**bearer(token), "Accept": "text/turtle" if container else "*/*"}
    response, body = send(port, "GET", expected.path, None, headers)
    assert response.status == expected.status, expected.path
    if response.status != http.client.OK:
        return
    assert response.getheader("Content-Type") == expected.content_type
    if container:
        assert members(expected.path, body) == members(expected.path, expected.body)
    else:
        assert body == expected.body


def members(path: str, turtle: str) -> set[str]:
    """What a container contains."""
    url = BASE_URL + path
    graph = Graph().parse(data=turtle, format="turtle", publicID=url)
    return {str(member) for member in graph.objects(URIRef(url), LDP.contains)}
