"""The data roots and databases of every released schema are opened, read and written by this
version.

The oracle is what the server of that version answered (``tests/serving/released_roots.py``).
"""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rdflib import Graph, URIRef
from rdflib.namespace import Namespace

from podstead.storage.migrations import read_migrations
from tests.serving.released_roots import (
    ACCOUNT,
    BASE_URL,
    FOLDER,
    SCHEMA_OF_ACCOUNTS,
    Recorded,
    bearer,
    load_dump,
    schema_of,
    send,
    unpack,
)
from tests.support.postgresql import new_database
from tests.support.server import ServerProcess, run_command

pytestmark = pytest.mark.embedded

LDP = Namespace("http://www.w3.org/ns/ldp#")
NEWEST = {
    "schema": read_migrations()[-1].number,
    "postgresql": read_migrations("podstead.storage.postgresql.migrations")[-1].number,
}
ARCHIVES = sorted(path.name.partition(".")[0] for path in FOLDER.iterdir())


@pytest.mark.parametrize("engine", NEWEST)
def test_there_is_a_root_of_each_earlier_schema(engine: str) -> None:
    """Before a migration is added, ``python -m tests.serving.released_roots`` writes the root of
    the schema so far."""
    assert {f"{engine}-{number:04}" for number in range(1, NEWEST[engine])} <= set(ARCHIVES)


@dataclass(frozen=True)
class Released:
    """A data root as a released version has left it, and its database."""

    engine: str
    schema: int
    root: Path
    database: str | None
    tokens: dict[str, str]
    answers: list[Recorded]

    @property
    def environment(self) -> dict[str, str]:
        return {} if self.database is None else {"PODSTEAD_DATABASE": self.database}

    @property
    def has_accounts(self) -> bool:
        return self.engine == "postgresql" or self.schema >= SCHEMA_OF_ACCOUNTS


@pytest.fixture(params=ARCHIVES)
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Released]:
    engine, _, schema = request.param.partition("-")
    with contextlib.ExitStack() as stack:
        tokens, answers = unpack(FOLDER / f"{request.param}.tar.xz", tmp_path)
        database = None
        if engine == "postgresql":
            database = stack.enter_context(new_database())
            load_dump(tmp_path, database)
        yield Released(engine, int(schema), tmp_path / "root", database, tokens, answers)


@pytest.fixture
def port(released: Released) -> Iterator[int]:
    """The port of a server of this version on the root."""
    assert schema_of(released.root, released.database) == released.schema
    idp = ("--idp",) if released.has_accounts else ()
    options = ("--base-url", BASE_URL, "--port", "0", "--workers", "1", *idp)
    server = ServerProcess(root=released.root, options=options, environment=released.environment)
    server.launch()
    try:
        line = server.wait_for_line("  listening")
        yield int(line.split(", port ")[1].split(",")[0])
        assert server.stop() == 0
        assert schema_of(released.root, released.database) == NEWEST[released.engine]
    finally:
        server.close()


def test_a_root_of_each_schema_is_opened_read_and_written(released: Released, port: int) -> None:
    tokens = released.tokens
    for expected in released.answers:
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
    place = ("--root", str(released.root))
    if released.has_accounts:
        listed = run_command("account", "list", *place, environment=released.environment)
        assert f"{ACCOUNT}@example.org" in listed.stdout
    pods = run_command("pod", "list", *place, environment=released.environment)
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
