"""What is heard over a channel, however often one is away, is what the log has (N-19, N-23)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.app.adapters.keys import ensure_token_key
from podstead.app.services import build_application
from podstead.config import Settings
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from tests.support.asgi import Client
from tests.support.notification_channels import TURTLE, channel, path_of
from tests.support.streams import EventReader, opened

BASE = "http://localhost:3000"
TYPE = "EventSourceChannel2023"
CONTAINER = "/alice/private/box/"
NAMES = ("a", "b")

Step = tuple[str, str]
steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "put in", "listen", "leave"]), st.sampled_from(NAMES)
    ),
    max_size=25,
)


class Model:
    """A plain account of what each topic has to be told."""

    def __init__(self) -> None:
        self.present: set[str] = set()
        self.told: dict[str, list[tuple[str, str]]] = {CONTAINER: []}
        self.told |= {CONTAINER + name: [] for name in NAMES}

    def put(self, name: str) -> None:
        path = CONTAINER + name
        self.told[path].append(("Update" if name in self.present else "Create", path))
        if name not in self.present:
            self.told[CONTAINER].append(("Add", path))
        self.present.add(name)

    def delete(self, name: str) -> None:
        path = CONTAINER + name
        if name in self.present:
            self.told[path].append(("Delete", path))
            self.told[CONTAINER].append(("Remove", path))
        self.present.discard(name)


class Receiver:
    """One EventSource on a channel: it comes and goes, and remembers the last id."""

    def __init__(self, client: Client, target: str) -> None:
        self._client = client
        self._target = target
        self._last_id: str | None = None
        self._stack: AsyncExitStack | None = None
        self._reader: EventReader | None = None
        self.heard: list[tuple[str, str]] = []

    async def come(self) -> None:
        if self._stack is None:
            self._stack = AsyncExitStack()
            headers = {} if self._last_id is None else {"Last-Event-ID": self._last_id}
            stream = await self._stack.enter_async_context(
                opened(self._client, self._target, headers)
            )
            assert stream.status == 200
            self._reader = EventReader(stream, self._last_id or "")

    async def hear(self, count: int) -> None:
        """Listen until so much has been heard in all."""
        await self.come()
        assert self._reader is not None
        while len(self.heard) < count:
            event = await self._reader.next()
            assert event is not None
            assert event.type == "message"
            message = event.json()
            self.heard.append((message["type"], message["object"].removeprefix(BASE)))

    async def leave(self) -> None:
        if self._stack is not None and self._reader is not None:
            self._last_id = self._reader.last_id or self._last_id
            await self._stack.aclose()
            self._stack = self._reader = None


async def run(root: Path, asked: Sequence[Step]) -> None:
    chosen = Settings(root=root, base_url=BASE, pod_creations_per_hour=0)
    ensure_token_key(KeyFiles(prepare_root(root).keys))
    application = build_application(chosen)
    await application.lifespan.start()
    try:
        public = Client(application, host="localhost:3000")
        made = await public.post("/.pods", '{"name": "alice"}', "application/json")
        await check(public.with_token(made.json()["token"]), asked)
    finally:
        await application.lifespan.stop()


async def check(alice: Client, asked: Sequence[Step]) -> None:
    model, receivers = Model(), {}
    await alice.put(CONTAINER, "", TURTLE)
    for topic in model.told:
        described = await channel(alice, TYPE, topic)
        receivers[topic] = Receiver(alice, path_of(described["receiveFrom"]))
    for number, (step, name) in enumerate(asked):
        path = CONTAINER + name
        if step == "put":
            assert (await alice.put(path, f"<> a <#{number}> .", TURTLE)).status in (201, 204)
            model.put(name)
        elif step == "delete":
            await alice.delete(path)
            model.delete(name)
        elif step == "put in":  # elsewhere, and refused: neither is anybody's news
            await alice.put(f"/alice/public/{name}", "", TURTLE)
            assert (await alice.put(path, "{", TURTLE)).status == 400
        elif step == "listen":
            await receivers[path].hear(len(model.told[path]))
            await receivers[CONTAINER].hear(len(model.told[CONTAINER]))
        else:
            await receivers[path].leave()
            await receivers[CONTAINER].leave()
    # One more change each, so that anything told too much would have come before it.
    for name in NAMES:
        assert (await alice.put(CONTAINER + name, "<> a <#Last> .", TURTLE)).status in (201, 204)
        model.put(name)
        assert (await alice.delete(CONTAINER + name)).status == 204
        model.delete(name)
    for topic, receiver in receivers.items():
        await receiver.hear(len(model.told[topic]))
        assert receiver.heard == model.told[topic]
        await receiver.leave()


@settings(max_examples=20)
@given(steps)
def test_everything_is_heard_once_and_in_order(asked: Sequence[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "root", asked))
