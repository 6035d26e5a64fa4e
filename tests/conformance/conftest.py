"""One server for the conformance tests of each test process, and two pods for each module."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.conformance.agents import Agent, create_agent
from tests.conformance.conformance_places import OPTIONS, PLACES
from tests.support.server import ServerProcess, running_server

_names = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server; whatever the tests ask, nothing in it fails."""
    root = tmp_path_factory.mktemp("conformance") / "root"
    started = ServerProcess(root=root, options=OPTIONS, own_interpreter=True)
    with running_server(started) as server:
        yield server
        assert "Traceback" not in server.errors


@pytest.fixture(scope="module")
def alice(server: ServerProcess) -> Agent:
    """The owner of what the tests are about."""
    return create_agent(server)


@pytest.fixture(scope="module")
def bob(server: ServerProcess) -> Agent:
    """Another agent, who has a pod of his own."""
    return create_agent(server)


@pytest.fixture(scope="session")
def public(server: ServerProcess) -> Agent:
    """A client without credentials."""
    return Agent(server)


@pytest.fixture
def container(alice: Agent) -> str:
    """The path of a new, empty container of Alice's, which only she has access to."""
    return alice.create(f"{alice.pod}c{next(_names)}/")


@pytest.fixture(scope="module")
def places(alice: Agent) -> dict[str, str]:
    """The paths of one resource of each kind, and of what is missing, for tests that only read.

    All but the pod's root and its storage description is only Alice's.
    """
    found = {kind: alice.pod + path for kind, path in PLACES.items()}
    alice.create(found["container"])
    alice.create(found["rdf"], '<> <#says> "something".')
    alice.create(found["text"], "Hello", "text/plain")
    alice.create(found["description"], "<rdf.ttl> <#is> <#described>.")
    alice.grant(found["container"])
    return found
