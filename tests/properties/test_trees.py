"""Any sequence of writes, copies, moves and deletions leaves what a plain tree says.

The model is a dict of paths. It knows nothing of versions, rows or rules.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Server, running, with_two_pods
from tests.support.transfers import tree_at

HOME = "/alice/private/t/"
LARGE = "x" * 70_000

names = st.sampled_from("ab")
paths = st.builds(
    lambda parts, slash: "/".join(parts) + slash,
    st.lists(names, min_size=1, max_size=3),
    st.sampled_from(["", "/"]),
)
Step = tuple[str, str, str, bool]
steps = st.tuples(
    st.sampled_from(["PUT", "PUT", "COPY", "MOVE", "COPY", "MOVE", "DELETE"]),
    paths,
    paths,
    st.booleans(),
)


class Tree:
    """Documents with their content, and containers with none, by their paths."""

    def __init__(self) -> None:
        self.stored: dict[str, str | None] = {"": None}

    def do(self, step: Step, content: str) -> int:
        """Carry out a step; the status that it has."""
        method, source, destination, overwrite = step
        if method == "PUT":
            return self._put(source, None if source.endswith("/") else content)
        if method == "DELETE":
            return self._delete(source)
        if method != "PUT" and not source.endswith("/") and f"{source}/" in self.stored:
            source = f"{source}/"
        if source.endswith("/") and not destination.endswith("/"):
            destination = f"{destination}/"
        into_itself = source.endswith("/") and destination.startswith(source)
        if source == destination or into_itself:
            return 403
        if source.endswith("/") != destination.endswith("/"):
            return 409
        if source not in self.stored:
            return 404
        return self._transfer(source, destination, moves=method == "MOVE", overwrite=overwrite)

    def _delete(self, path: str) -> int:
        if path not in self.stored:
            return 404
        self._remove(path)
        return 204

    def _put(self, path: str, content: str | None) -> int:
        above = _above(path)
        if any(_other(each) in self.stored for each in [path, *above] if each):
            return 409
        existed = path in self.stored
        for container in above:
            self.stored.setdefault(container, None)
        self.stored[path] = content
        return 204 if existed else 201

    def _transfer(self, source: str, destination: str, *, moves: bool, overwrite: bool) -> int:
        status = 201
        if destination in self.stored:
            if not overwrite:
                return 412
            if destination.endswith("/"):
                return 409
            status = 204
        elif _above(destination)[0] not in self.stored or _other(destination) in self.stored:
            return 409
        taken = {path: self.stored[path] for path in self._tree(source)}
        if moves:
            self._remove(source)
        for path, content in taken.items():
            self.stored[destination + path[len(source) :]] = content
        return status

    def _tree(self, root: str) -> list[str]:
        if not root.endswith("/"):
            return [root]
        return [path for path in self.stored if path.startswith(root)]

    def _remove(self, root: str) -> None:
        for path in self._tree(root):
            del self.stored[path]


def _above(path: str) -> list[str]:
    """The containers above a path, the nearest first; the last is that of all."""
    parts = path.rstrip("/").split("/")[:-1]
    return ["".join(f"{part}/" for part in parts[:count]) for count in range(len(parts), -1, -1)]


def _other(path: str) -> str:
    return path[:-1] if path.endswith("/") else f"{path}/"


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=3, max_size=25))
def test_a_pod_is_the_tree_that_its_operations_make(drawn: list[Step]) -> None:
    asyncio.run(_compare(drawn))


async def _compare(drawn: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "root"
        ensure_token_key(KeyFiles(prepare_root(root).keys))
        options = Settings(root=root, base_url=BASE, pod_creations_per_hour=0, workers=1)
        store = SqliteStore(root)
        async with running(options) as application:
            server = await with_two_pods(application)
            assert (await server.alice.put(HOME, None, "text/turtle")).status == 201
            await store.open()
            try:
                used = await store.used_bytes("alice")
                await _run(server, store, drawn)
                answer = await server.alice.request("DELETE", HOME, headers={"Depth": "infinity"})
                assert answer.status == 204
                await store.sweep(now_ms=2**45)
                # Nothing is left behind, and nothing is charged for.
                assert await store.used_bytes("alice") < used
            finally:
                await store.close()


async def _run(server: Server, store: SqliteStore, drawn: list[Step]) -> None:
    tree = Tree()
    for number, step in enumerate(drawn):
        content = f"{number} " + (LARGE if number % 5 == 0 else "")
        expected = tree.do(step, content)
        assert await _send(server, step, content) == expected, (step, tree.stored.keys())
        found = await tree_at(store, HOME)
        assert {path: body.decode() for path, (_, body) in found.items()} == {
            path: content or "" for path, content in tree.stored.items()
        }


async def _send(server: Server, step: Step, content: str) -> int:
    method, source, destination, overwrite = step
    if method == "PUT":
        is_container = source.endswith("/")
        kind = "text/turtle" if is_container else "text/plain"
        body = None if is_container else content
        return (await server.alice.put(HOME + source, body, kind)).status
    headers = {"Depth": "infinity"}
    if method != "DELETE":
        headers |= {"Destination": HOME + destination, "Overwrite": "T" if overwrite else "F"}
    return (await server.alice.request(method, HOME + source, headers=headers)).status
