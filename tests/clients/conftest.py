"""One server for the clients of a module, and a container of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.process import Agent, ClientProcess, running_client
from tests.http.rdf import FORMATS, Triples, triples
from tests.support.client import Client, Pod, create_pod
from tests.support.server import Answer, ServerProcess, running_server

_numbers = itertools.count()

StartClient = Callable[[str | Path], ClientProcess]


@dataclass(frozen=True, slots=True)
class Home:
    """A container of one test, in a pod that other tests use as well; and the oracle for it."""

    pod: Pod
    owner: Client
    """Another client than the one under test, for the same agent."""
    path: str

    @property
    def url(self) -> str:
        """With a slash at the end."""
        return f"{self.pod.server.base_url}{self.path}"

    @property
    def agent(self) -> Agent:
        """The owner, as scenarios take agents."""
        return Agent(self.pod.web_id, self.pod.token)

    def get(self, name: str = "", accept: str = "*/*") -> Answer:
        """What the server itself says about a resource in the container."""
        return self.owner.get(self.path + name, Accept=accept)

    def put(self, name: str, body: str | bytes, content_type: str = "text/turtle") -> str:
        """Make or replace a resource in the container; its URL."""
        answer = self.owner.put(self.path + name, body, content_type)
        assert answer.status in {201, 204}, answer.text
        return self.url + name

    def triples(self, name: str = "") -> Triples:
        """What a resource in the container says, as rdflib for Python reads it."""
        answer = self.get(name, "text/turtle")
        assert answer.status == 200, answer.text
        content_type = answer.headers["content-type"].partition(";")[0]
        assert content_type in FORMATS
        return triples(answer.body, content_type, self.url + name)

    def members(self) -> set[str]:
        """The members' names, relative to the container."""
        return {path.removeprefix(self.path) for path in self.owner.members(self.path)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("clients") / "root"
    with running_server(ServerProcess(root=root)) as server:
        yield server


@pytest.fixture(scope="module")
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


@pytest.fixture(scope="module")
def other(server: ServerProcess) -> Agent:
    """Somebody with a pod of their own."""
    pod = create_pod(server)
    return Agent(pod.web_id, pod.token)


@pytest.fixture
def home(pod: Pod) -> Iterator[Home]:
    """A container that only its owner may use."""
    path = f"{pod.root}private/test-{next(_numbers)}/"
    with pod.owner() as owner:
        assert owner.put(path, "", "text/turtle").status == 201
        yield Home(pod, owner, path)


@pytest.fixture(scope="module")
def start_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartClient]:
    """Start the node process of a scenario module; it ends with the tests of the module."""
    logs: Path = tmp_path_factory.mktemp("node")
    with ExitStack() as running:
        yield lambda scenario: running.enter_context(
            running_client(scenario, logs / f"{next(_numbers)}.stderr")
        )
