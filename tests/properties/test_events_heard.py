"""Whatever is written at whichever worker, each listener hears what a plain model says, no more.

The model knows paths and what is there, and nothing of change logs, notices or hubs. Two workers,
which are two applications on one data root, take the requests in turn as drawn; a socket at each
watches everything. Requests that fail are drawn as well: those are not heard (N-19, L-6, L-7).
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from podstead.web.application import Application
from tests.support.application import BASE, Server, running, with_two_pods
from tests.support.asgi import Client
from tests.support.notification_sockets import heard, watching

pytestmark = pytest.mark.feature("legacy_notifications")

TOP = "/alice/public/"
DOCUMENTS = (f"{TOP}a", f"{TOP}c/a", f"{TOP}c/b", f"{TOP}c/d/a")
CONTAINERS = (f"{TOP}c/", f"{TOP}c/d/")
TOPICS = (TOP, *DOCUMENTS, *CONTAINERS)
TURTLE = "text/turtle"


def container_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0] + "/"


@dataclass
class Model:
    """What is there: each document with its number, each container with ``None``."""

    there: dict[str, int | None] = field(default_factory=dict)

    def write(self, path: str, number: int) -> set[str]:
        """Make or change a document; who hears of it."""
        told = {path, container_of(path)}
        self.there[path] = number
        place = container_of(path)
        while place != TOP and place not in self.there:
            self.there[place] = None
            told |= {place, container_of(place)}
            place = container_of(place)
        return told

    def delete(self, path: str) -> set[str]:
        """Delete what is there, unless it is a container with members."""
        if path not in self.there or any(container_of(each) == path for each in self.there):
            return set()
        del self.there[path]
        return {path, container_of(path)}


@dataclass(frozen=True)
class Step:
    method: str
    path: str
    number: int
    worker: int
    fails: bool


steps = st.builds(
    Step,
    method=st.sampled_from(["PUT", "PUT", "PATCH", "PATCH", "DELETE"]),
    path=st.sampled_from((*DOCUMENTS, *DOCUMENTS, *CONTAINERS)),
    number=st.integers(0, 2),
    worker=st.integers(0, 1),
    fails=st.integers(0, 5).map(lambda number: number == 5),
)


async def act(step: Step, client: Client, model: Model) -> set[str]:
    """Do one step; who must hear of it."""
    condition = {"If-Match": '"none"'} if step.fails else {}
    if step.method == "DELETE" or step.path in CONTAINERS:
        answer = await client.request("DELETE", step.path, headers=condition)
        told = set() if step.fails else model.delete(step.path)
        assert (answer.status == 204) is bool(told)
        return told
    if step.method == "PUT":
        body, content_type = f"<#it> <#n> {step.number}.", TURTLE
    else:
        body = (
            f"DELETE {{ ?a <#n> ?b }} INSERT {{ <#it> <#n> {step.number} }} WHERE {{ ?a <#n> ?b }}"
        )
        if step.path not in model.there:
            body = f"INSERT DATA {{ <#it> <#n> {step.number} }}"
        content_type = "application/sparql-update"
    headers = {"Content-Type": content_type, **condition}
    answer = await client.request(step.method, step.path, headers=headers, body=body.encode())
    assert (answer.status in (201, 204)) is not step.fails, answer.text
    if step.fails:
        return set()
    if step.method == "PATCH" and model.there.get(step.path) == step.number:
        return {step.path}
    return model.write(step.path, step.number)


async def compare(root: Path, drawn: list[Step]) -> None:
    chosen = Settings(root=root / "root", base_url=BASE, pod_creations_per_hour=0)
    ensure_token_key(KeyFiles(prepare_root(chosen.root).keys))
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(running(chosen)) for _ in range(2)]
        server = await with_two_pods(workers[0])
        servers = [server, _at(workers[1], server)]
        sockets = [await stack.enter_async_context(watching(each, *TOPICS)) for each in servers]
        model, expected = Model(), Counter[str]()
        for step in drawn:
            told = await act(step, servers[step.worker].alice, model)
            expected.update(f"pub {BASE}{topic}" for topic in told)
        for each, socket in zip(servers, sockets, strict=True):
            assert Counter(await heard(each, socket)) == expected


def _at(worker: Application, server: Server) -> Server:
    """The same agents, asking another worker."""
    return replace(
        server,
        application=worker,
        public=server.public.asking(worker),
        alice=server.alice.asking(worker),
        bob=server.bob.asking(worker),
    )


@settings(max_examples=25)
@given(st.lists(steps, min_size=1, max_size=25))
def test_each_listener_gets_what_the_model_predicts(drawn: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(compare(Path(directory), drawn))
