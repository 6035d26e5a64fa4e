"""SIGKILL at any moment loses nothing that was acknowledged and corrupts nothing (P-54).

The processes die, the system lives on: what this cannot show is that acknowledged writes survive a
power cut, for which they must have reached the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from threading import Event

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.quota import fixed_charge
from tests.support.client import Client, Pod, create_pod
from tests.support.engine import bodies_in, new_store
from tests.support.server import DEADLINE_S, Answer, ServerProcess
from tests.support.workers import clients_of_every_worker, kill_everything, processes_of, worker_of

# Writers that know what a server owes them after it was killed at any moment.
#
# Each writer has its own resources, makes one request at a time and keeps a plain model: what is
# there by all that was acknowledged, and the one step whose answer never came. After a crash the
# server must show the model, with that one step wholly done or wholly not.

INLINE_BYTES = 64 * 1024
"""Larger bodies are kept in files of their own."""
_LARGEST_BYTES = 250_000
_MANY_DOCUMENTS = 25


@dataclass(frozen=True, slots=True)
class Document:
    """The outcome of one write; ``etag`` is ``None`` while no answer has told it."""

    content: bytes
    content_type: str
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """A container; what it contains follows from the paths of the others."""


Thing = Document | Container | None
"""What is at a path; ``None`` for nothing."""
Model = dict[str, Thing]


@dataclass(frozen=True, slots=True)
class Step:
    """One request and all that it changes, at once or not at all.

    ``posted`` is what a POST makes at a path that only its answer tells.
    """

    method: str
    target: str
    status: int
    effects: Mapping[str, Thing] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    posted: Document | None = None

    @property
    def body(self) -> bytes | None:
        written = self.posted or self.effects.get(self.target)
        return written.content if isinstance(written, Document) else None


class Writer:
    """One writer. ``model`` and ``unanswered`` are its claims on the server."""

    def __init__(self, pod: Pod, number: int, *, seed: str) -> None:
        self.model: Model = {}
        self.unanswered: Step | None = None
        self.acknowledged = 0
        self._pod = pod
        self._slug = f"writer{number}"
        self._home = f"{pod.root}w{number}/"
        self._random = random.Random(f"{seed} writer {number}")

    # --- writing ------------------------------------------------------------------------------

    def write(self, client: Client, *, dying: Event, enough: Event) -> bool:
        """Write and write until it is ``enough``; whether the connection broke before.

        Any answer but the expected one is an error, unless the server is ``dying``.
        """
        try:
            while not enough.is_set():
                step = self.unanswered = self._next_step()
                answer = client.request(step.method, step.target, step.body, step.headers)
                if answer.status >= 500 and dying.is_set():
                    return True
                self._acknowledge(step, answer)
                self.unanswered = None
        except (OSError, HTTPException):
            return True
        return False

    def _acknowledge(self, step: Step, answer: Answer) -> None:
        asked = f"{step.method} {step.target}"
        assert answer.status == step.status, f"{asked}: {answer.status} {answer.text}"
        self.acknowledged += 1
        self.model.update(step.effects)
        path = step.target
        if step.posted is not None:
            path = "/" + answer.headers["location"].partition("://")[2].partition("/")[2]
            assert self.model.get(path) is None, f"{asked}: {path} was given twice"
            self.model[path] = step.posted
        written = self.model[path]
        if isinstance(written, Document):
            self.model[path] = replace(written, etag=answer.headers["etag"])

    def _next_step(self) -> Step:
        documents = self._documents()
        choices = [self._put, self._put, self._put, self._post]
        if documents:
            choices += [self._replace, self._replace, self._put_acl, self._delete]
        if len(documents) > _MANY_DOCUMENTS:
            choices += [self._delete] * 4
        if self._empty_containers():
            choices.append(self._delete_container)
        return self._random.choice(choices)()

    def _put(self) -> Step:
        """Write one of a hundred places, whatever is there, containers and all."""
        containers = [self._home]
        for name in self._random.choices("ab", k=self._random.randrange(4)):
            containers.append(f"{containers[-1]}{name}/")
        path = f"{containers[-1]}{self._random.randrange(7)}.bin"
        missing = [container for container in containers if self.model.get(container) is None]
        written = self._document()
        status = 201 if self.model.get(path) is None else 204
        effects: Model = {container: Container() for container in missing}
        effects[path] = written
        return Step("PUT", path, status, effects, {"Content-Type": written.content_type})

    def _replace(self) -> Step:
        """Replace a known document if it is still as it was acknowledged."""
        path, current = self._any_document()
        written = self._document()
        headers = {"Content-Type": written.content_type}
        if current.etag is not None:
            headers["If-Match"] = current.etag
        return Step("PUT", path, 204, {path: written}, headers)

    def _post(self) -> Step:
        written = self._document()
        headers = {"Content-Type": written.content_type}
        if self._random.random() < 0.5:
            headers["Slug"] = self._slug  # often taken
        return Step("POST", shared_container(self._pod), 201, {}, headers, posted=written)

    def _put_acl(self) -> Step:
        path, _ = self._any_document()
        note = f"# {self._random.getrandbits(64)}\n"
        rules = Document((note + self._pod.acl(path, public=("Read",))).encode(), "text/turtle")
        status = 201 if self.model.get(f"{path}.acl") is None else 204
        headers = {"Content-Type": "text/turtle"}
        return Step("PUT", f"{path}.acl", status, {f"{path}.acl": rules}, headers)

    def _delete(self) -> Step:
        """Delete a document, and its rules with it (C-20)."""
        path, _ = self._any_document()
        return Step("DELETE", path, 204, {path: None, f"{path}.acl": None})

    def _delete_container(self) -> Step:
        path = self._random.choice(self._empty_containers())
        return Step("DELETE", path, 204, {path: None})

    def _any_document(self) -> tuple[str, Document]:
        path = self._random.choice(self._documents())
        document = self.model[path]
        assert isinstance(document, Document)
        return path, document

    def _document(self) -> Document:
        """Content and a type that no other write has."""
        large = self._random.random() < 0.15
        smallest, largest = (INLINE_BYTES + 1, _LARGEST_BYTES) if large else (0, 2000)
        content = self._random.randbytes(self._random.randint(smallest, largest))
        return Document(content, f"application/x-w{self._random.getrandbits(64)}")

    def _documents(self) -> list[str]:
        """Where something of ours is that is no access rules."""
        return [
            path
            for path, thing in self.model.items()
            if isinstance(thing, Document) and not path.endswith(".acl")
        ]

    def _empty_containers(self) -> list[str]:
        return [
            path
            for path, thing in self.model.items()
            if isinstance(thing, Container) and not members_in(self.model, path)
        ]

    # --- after the crash ----------------------------------------------------------------------

    def settle(self, client: Client, new_in_shared: dict[str, Document]) -> None:
        """Find out whether the unanswered step was done, and take it into the model if it was.

        ``new_in_shared`` is what nobody had an answer about; what this writer posted is taken
        out. Raises AssertionError if it was done in part.
        """
        step, self.unanswered = self.unanswered, None
        if step is None:
            return
        if step.posted is not None:
            self._settle_post(step.posted, new_in_shared)
            return
        found = {path: look(client, path) for path in step.effects}
        before = {path: self.model.get(path) for path in step.effects}
        done = all(is_like(found[path], step.effects[path]) for path in found)
        undone = all(is_like(found[path], before[path]) for path in found)
        assert done or undone, f"{step.method} {step.target} was done in part"
        if done and not undone:
            self.model.update(found)

    def _settle_post(self, posted: Document, new_in_shared: dict[str, Document]) -> None:
        made = [path for path, found in new_in_shared.items() if is_like(found, posted)]
        assert len(made) <= 1, "one POST was done twice"
        for path in made:
            self.model[path] = new_in_shared.pop(path)

    def forget_posted(self) -> None:
        """Forget what was posted and is gone; there would be more and more of it."""
        posted = shared_container(self._pod)
        self.model = {
            path: thing
            for path, thing in self.model.items()
            if thing is not None or not path.startswith(posted)
        }


def shared_container(pod: Pod) -> str:
    """Where all writers post."""
    return f"{pod.root}shared/"


def look(client: Client, path: str) -> Thing:
    """What the server has at a path."""
    answer = client.get(path)
    if answer.status == 404:
        return None
    assert answer.status == 200, f"{path}: {answer.status} {answer.text}"
    if path.endswith("/"):
        return Container()
    return Document(answer.body, answer.headers["content-type"], answer.headers["etag"])


def is_like(found: Thing, claimed: Thing) -> bool:
    """Whether what was found is what was claimed, to the entity tag if that was told."""
    if isinstance(found, Document) and isinstance(claimed, Document) and claimed.etag is None:
        found = replace(found, etag=None)
    return found == claimed


def members_in(model: Mapping[str, Thing], container: str) -> list[str]:
    """The members that a container has by the model."""
    return [
        path
        for path, thing in model.items()
        if thing is not None
        and path.startswith(container)
        and path != container
        and "/" not in path[len(container) : -1]
        and not path.endswith(".acl")
    ]


def settle_all(pod: Pod, writers: Sequence[Writer]) -> Model:
    """Settle what was under way; the model that the server must show now."""
    with pod.owner() as client:
        known = {path for writer in writers for path, thing in writer.model.items() if thing}
        unknown = client.members(shared_container(pod)) - known
        found = {path: look(client, path) for path in unknown}
        new_in_shared = {path: it for path, it in found.items() if isinstance(it, Document)}
        assert set(new_in_shared) == unknown, "the listing holds what is not there"
        for writer in writers:
            writer.settle(client, new_in_shared)
        assert not new_in_shared, "something was stored that nobody sent"
    model: Model = {shared_container(pod): Container()}
    for writer in writers:
        model.update(writer.model)
        writer.forget_posted()
    return model


def check_server(pod: Pod, model: Model) -> None:
    """The server shows the model: things, absences, listings and access rules."""
    with pod.owner() as owner, Client(pod.server) as public:
        assert owner.members(pod.root) - _given(pod) == set(members_in(model, pod.root))
        for path, claimed in model.items():
            found = look(owner, path)
            assert is_like(found, claimed), f"{path} is not as acknowledged"
            if isinstance(claimed, Container):
                listed, expected = owner.members(path), set(members_in(model, path))
                assert listed == expected, f"{path}: {sorted(listed ^ expected)}"
            if isinstance(claimed, Document) and not path.endswith(".acl"):
                is_public = model.get(f"{path}.acl") is not None
                assert public.head(path).status == (200 if is_public else 401)


def _given(pod: Pod) -> set[str]:
    """The members that a pod's root has from the start."""
    names = ("inbox", "private", "profile", "public", "settings")
    return {f"{pod.root}{name}/" for name in names}


def document_sizes(model: Mapping[str, Thing]) -> list[int]:
    """The sizes of all that is stored, in bytes."""
    return [len(thing.content) for thing in model.values() if isinstance(thing, Document)]


ROUNDS = 10
WRITERS = 6
LONGEST_S = 0.5
"""How long a round of writing lasts at most before the server is killed."""
LONGEST_START_S = 0.8
A_DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def chance() -> random.Random:
    """Decides moments and requests. To have the same again, give pytest its --randomly-seed."""
    seed = random.getrandbits(32)
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    return random.Random(seed)


@pytest.fixture(params=[1, 2], ids="{} workers".format)
def server(request: pytest.FixtureRequest, disk_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(root=disk_path / "root", options=("--workers", str(request.param)))
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(params=["first", "second"])
def repetition(request: pytest.FixtureRequest) -> str:
    """The same again with other moments: two tests of half the length run at the same time."""
    part: str = request.param
    return part


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    pod = create_pod(server)
    with pod.owner() as client:
        assert client.put(shared_container(pod), "", "text/turtle").status == 201
    return pod


@pytest.fixture
def writers(pod: Pod, chance: random.Random) -> Sequence[Writer]:
    seed = str(chance.random())
    return [Writer(pod, number, seed=seed) for number in range(WRITERS)]


@contextlib.contextmanager
def writing(
    writers: Sequence[Writer], clients: Sequence[Client], *, dying: Event, enough: Event
) -> Iterator[list[Future[bool]]]:
    """Have all writers write, and wait for their end; the results tell who was cut off."""
    with ThreadPoolExecutor(len(writers)) as threads:
        under_way = [
            threads.submit(writer.write, client, dying=dying, enough=enough)
            for writer, client in zip(writers, clients, strict=True)
        ]
        yield under_way
        for writer in under_way:
            writer.result(DEADLINE_S)


def until_a_moment(chance: random.Random, longest_s: float) -> None:
    time.sleep(chance.uniform(0, longest_s))  # for nothing: any moment is as good


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("repetition")
def test_a_killed_server_has_all_that_it_acknowledged_and_nothing_torn(
    server: ServerProcess, pod: Pod, writers: Sequence[Writer], chance: random.Random
) -> None:
    used_at_first = asyncio.run(used_bytes(server.root, pod))
    model: Model = {}
    for _ in range(ROUNDS):
        dying = Event()
        with contextlib.ExitStack() as connections:
            clients = [connections.enter_context(pod.owner()) for _ in writers]
            with writing(writers, clients, dying=dying, enough=Event()):
                until_a_moment(chance, LONGEST_S)
                dying.set()
                kill_everything(server, chance)
        if chance.random() < 0.3:
            server.launch()
            until_a_moment(chance, LONGEST_START_S)
            kill_everything(server, chance)
        server.start()
        model = settle_all(pod, writers)
        check_server(pod, model)
    assert server.stop() == 0
    assert sum(writer.acknowledged for writer in writers) > 10 * ROUNDS
    asyncio.run(check_disk(server.root, pod, model, used_at_first))


async def used_bytes(root: Path, pod: Pod) -> int:
    store = new_store(root)
    await store.open()
    try:
        return await store.used_bytes(pod.name)
    finally:
        await store.close()


async def check_disk(root: Path, pod: Pod, model: Model, used_at_first: int) -> None:
    """Nothing is lost to the quota, and after a sweep each large body is in use or kept of the
    past."""
    sizes = document_sizes(model)
    store = new_store(root)
    await store.open()
    try:
        await store.sweep(now_ms=time.time_ns() // 1_000_000 + A_DAY_MS)
        former = await store.fetch("SELECT size_bytes FROM former_states WHERE blob IS NOT NULL")
    finally:
        await store.close()
    paths = [path for path, thing in model.items() if thing and path != shared_container(pod)]
    fixed = sum(fixed_charge(ResourcePath(path)) for path in paths)
    assert await used_bytes(root, pod) == used_at_first + sum(sizes) + fixed
    large = [size for size in sizes if size > INLINE_BYTES] + [size for (size,) in former]
    assert sorted(bodies_in(root).sizes_bytes()) == sorted(large)


@pytest.mark.parametrize("server", [2], indirect=True)
def test_a_killed_worker_costs_only_the_connections_it_had(
    server: ServerProcess, pod: Pod, writers: Sequence[Writer], chance: random.Random
) -> None:
    """Its unfinished writes are undone by whoever writes next, and the others notice nothing."""
    # Each once: a server whose worker dies again and again stops.
    for victim in processes_of(server) - {server.pid}:
        enough = Event()
        every_worker = clients_of_every_worker(
            server, workers=2, each=WRITERS // 2, token=pod.token
        )
        with every_worker as clients:
            doomed = [worker_of(server, client) == victim for client in clients]
            with writing(writers, clients, dying=Event(), enough=enough) as under_way:
                until_a_moment(chance, LONGEST_S)
                os.kill(victim, signal.SIGKILL)
                until_a_moment(chance, LONGEST_S)
                enough.set()
            assert [writer.result() for writer in under_way] == doomed
        check_server(pod, settle_all(pod, writers))
    assert server.errors.count("Unexpected exit from worker") == 2
