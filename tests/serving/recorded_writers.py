"""Writers that record when each of their writes was acknowledged, and what was there after it.

Each writer has a container of its own and makes one request at a time. A copy of the server that is
consistent shows, for each writer, what was there after one of its writes: all earlier ones, and
none of the later ones.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Event

from tests.support.client import Client, Pod
from tests.support.server import DEADLINE_S

LARGE_BYTES = 90_000
"""More than the database takes, so it is a file of its own."""
_COUNTER = "counter.ttl"
_COUNTED = re.compile(r'"(\d+)"')
_PATCH = (
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n"
    '_:p a solid:InsertDeletePatch; solid:inserts {{ <#s> <#p> "{number}". }}.'
)

Documents = Mapping[str, bytes]
"""The content of each document; that of the counter is the numbers that it has."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A write: when its answer had arrived, and what was there then."""

    acknowledged_ms: float
    documents: Documents


class RecordedWriter:
    """One writer."""

    def __init__(self, pod: Pod, number: int, *, seed: str) -> None:
        self.home = f"{pod.root}writer{number}/"
        self.history: list[Recorded] = []
        self.has_begun = Event()
        self._number = number
        self._documents: dict[str, bytes] = {}
        self._random = random.Random(f"{seed} {number}")
        self._serial = 0

    def write_until(self, enough: Event, client: Client) -> None:
        """Write and write, and record every acknowledged write."""
        while not enough.is_set():
            self._serial += 1
            chosen = self._random.choice(
                [self._put, self._put, self._replace, self._post, self._patch, self._delete]
            )
            chosen(client)
            self.history.append(Recorded(time.time() * 1000, dict(self._documents)))
            self.has_begun.set()

    def find(self, documents: Documents, *, moment_ms: float) -> Recorded | None:
        """The write after which the documents were there, of those that a copy of that moment may
        show: the last one before the moment, or a later one."""
        before = [each for each in self.history if each.acknowledged_ms < moment_ms]
        possible = self.history[max(len(before) - 1, 0) :]
        return next((each for each in possible if each.documents == documents), None)

    def read(self, client: Client) -> Documents:
        """What a server shows, each member of the container."""
        found = {}
        for path in client.members(self.home):
            answer = client.get(path)
            assert answer.status == 200, f"{path} is listed and answers {answer.status}"
            name = path.removeprefix(self.home)
            found[name] = _numbers(answer.text) if name == _COUNTER else answer.body
        return found

    def _content(self) -> bytes:
        unit = f"{self._number} {self._serial} ".encode()
        is_large = self._random.random() < 0.3
        return unit * (LARGE_BYTES // len(unit) if is_large else 10)

    def _put(self, client: Client) -> None:
        name = f"{self._serial}.txt"
        self._documents[name] = self._content()
        assert client.put(self.home + name, self._documents[name]).status == 201

    def _replace(self, client: Client) -> None:
        names = [name for name in self._documents if name != _COUNTER]
        if not names:
            return self._put(client)
        name = self._random.choice(names)
        self._documents[name] = self._content()
        assert client.put(self.home + name, self._documents[name]).status == 204
        return None

    def _post(self, client: Client) -> None:
        if not self._documents:
            return self._put(client)
        content = self._content()
        answer = client.request("POST", self.home, content, {"Content-Type": "text/plain"})
        assert answer.status == 201, answer.text
        self._documents[answer.headers["location"].rpartition("/")[2]] = content
        return None

    def _patch(self, client: Client) -> None:
        fields = {"Content-Type": "text/n3"}
        text = _PATCH.format(number=self._serial)
        answer = client.request("PATCH", self.home + _COUNTER, text, fields)
        assert answer.status in {201, 204}, answer.text
        known = self._documents.get(_COUNTER, b"").decode()
        self._documents[_COUNTER] = f"{known} {self._serial}".strip().encode()

    def _delete(self, client: Client) -> None:
        names = [name for name in self._documents if name != _COUNTER]
        if not names:
            return self._put(client)
        name = self._random.choice(names)
        del self._documents[name]
        assert client.delete(self.home + name).status == 204
        return None


def _numbers(turtle: str) -> bytes:
    return " ".join(sorted(_COUNTED.findall(turtle), key=int)).encode()


@contextmanager
def writing(pod: Pod, writers: Sequence[RecordedWriter]) -> Iterator[None]:
    """Let each write over a connection of its own, from before the beginning to after the end of
    what is done meanwhile."""
    enough = Event()
    with ExitStack() as connections, ThreadPoolExecutor(len(writers)) as threads:
        clients = [connections.enter_context(pod.owner()) for _ in writers]
        under_way = [
            threads.submit(writer.write_until, enough, client)
            for writer, client in zip(writers, clients, strict=True)
        ]
        try:
            for writer in writers:
                assert writer.has_begun.wait(DEADLINE_S)
            yield
        finally:
            enough.set()
        for each in under_way:
            each.result()
