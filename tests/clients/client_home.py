"""A container in a pod for the test of one client library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.client import Client, Pod
from tests.support.client_process import Agent, ClientProcess
from tests.support.rdf import FORMATS, Triples, triples
from tests.support.server import Answer

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
