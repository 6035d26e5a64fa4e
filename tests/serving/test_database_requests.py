"""How often does a request ask PostgreSQL? As docs/operate/scale.md says."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.database_proxy import DatabaseProxy, of_requests, running_database_proxy
from tests.support.features import LEFT_OUT
from tests.support.postgresql import new_database
from tests.support.server import Answer, ServerProcess

_PAGE = Path(__file__).parents[2] / "docs/operate/scale.md"
_ROW = re.compile(
    r"^\| (?P<request>[A-Z]\S.*?) \| (?P<trips>\d+) \| (?P<statements>\d+) \|", re.MULTILINE
)

BASE = "http://pods.example"
TURTLE = "text/turtle"
PATCH = (
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>."
    " _:p a solid:InsertDeletePatch; solid:inserts { <#x> <#y> %d }."
)


@dataclass
class Node(ServerProcess):
    """A server whose database is behind the proxy."""

    token: str = ""

    @property
    def base_url(self) -> str:
        return BASE


@dataclass
class Counted:
    """Sends requests, and notes what each has cost."""

    node: Node
    proxy: DatabaseProxy
    costs: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Round trips and statements."""

    def ask(self, method: str, target: str, body: str | None = None, **fields: str) -> Answer:
        """A request of the pod's owner."""
        credentials = {"Authorization": f"Bearer {self.node.token}"}
        return self.ask_as_stranger(method, target, body, **credentials, **fields)

    def ask_as_stranger(
        self, method: str, target: str, body: str | None = None, **fields: str
    ) -> Answer:
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        answer = self.node.request(method, target, body, {"Host": "pods.example", **named})
        assert answer.status in (200, 201, 204, 205, 401, 404), answer.text
        return answer

    def note(self, request: str) -> None:
        """Note what was asked since the last note."""
        taken = of_requests(self.proxy.take())
        self.costs[request] = (len(taken), sum(map(len, taken)))


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    with contextlib.ExitStack() as stack:
        proxy, url = stack.enter_context(
            running_database_proxy(stack.enter_context(new_database()))
        )
        folder = tmp_path_factory.mktemp("node")
        options: tuple[str, ...] = ("--workers", "1", "--base-url", BASE, "--admin-listen", "off")
        if "search" not in LEFT_OUT:  # which asks the database in the background
            options += ("--no-search",)
        node = Node(folder / "root", options=options, environment={"PODSTEAD_DATABASE": url})
        stack.callback(node.close)
        node.start()
        fields = {"Host": "pods.example", "Content-Type": "application/json"}
        created = node.request("POST", "/.pods", json.dumps({"name": "ann"}), fields)
        node.token = json.loads(created.body)["token"]
        yield Counted(node, proxy)


def test_requests_cost_as_many_round_trips_as_the_page_says(counted: Counted) -> None:
    _prepare(counted)
    counted.proxy.take()
    _reads(counted)
    _writes(counted)
    written = {
        row["request"]: (int(row["trips"]), int(row["statements"]))
        for row in _ROW.finditer(_PAGE.read_text(encoding="utf-8"))
    }
    assert counted.costs == written


def _prepare(counted: Counted) -> None:
    """Store what is read, and let the worker read what it keeps about the pod."""
    for target in ("/ann/public/note", "/ann/private/note", "/ann/private/patched"):
        counted.ask("PUT", target, "<#a> <#b> 1 .", Content_Type=TURTLE)
        counted.ask("GET", target)
    counted.ask_as_stranger("GET", "/ann/public/note")


def _reads(counted: Counted) -> None:
    counted.ask_as_stranger("GET", "/ann/public/note")
    counted.note("GET, public")
    counted.ask("GET", "/ann/private/note")
    counted.note("GET, private, with a bearer token")
    counted.ask("GET", "/ann/private/note", Accept="application/ld+json")
    counted.note("GET, of content that the worker has not kept")
    counted.ask("GET", "/ann/private/")
    counted.note("GET, listing that the worker has not kept")
    counted.ask("GET", "/ann/private/")
    counted.note("GET, listing that the worker has kept")
    counted.ask_as_stranger("GET", "/ann/private/note")
    counted.note("GET, refused")


def _writes(counted: Counted) -> None:
    counted.ask("PUT", "/ann/private/new", "text", Content_Type="text/plain")
    counted.note("PUT, creating")
    counted.ask("PUT", "/ann/private/new", "other text", Content_Type="text/plain")
    counted.note("PUT, replacing")
    counted.ask("POST", "/ann/private/", "text", Content_Type="text/plain")
    counted.note("POST, creating")
    counted.ask("PATCH", "/ann/private/patched", PATCH % 1, Content_Type="text/n3")
    counted.note("PATCH, first of a document")
    counted.ask("PATCH", "/ann/private/patched", PATCH % 2, Content_Type="text/n3")
    counted.note("PATCH, further")
    counted.ask("DELETE", "/ann/private/new")
    counted.note("DELETE")
