"""Whatever happens between them, uploads hold what was acknowledged and become what was sent.

The model of an upload is how many bytes the server has acknowledged. Between any two requests, of
two workers, connections break, the server crashes and bytes beyond the offset are on the disk, and
other clients guess offsets.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.features.uploads import service
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from tests.support import tus
from tests.support.application import BASE, running, with_two_pods
from tests.support.asgi import Client
from tests.support.tus import append, cancel, create, created, inspect, location

UPLOADS = 3
MAX_BYTES = 150_000
"""Beyond what is kept in the database."""

uploads = st.integers(0, UPLOADS - 1)
workers = st.integers(0, 1)
share = st.floats(0, 1)
Act = tuple[str, int, int, float]
acts = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "append", "append", "broken", "wrong", "crash", "cancel", "ask", "finish"]
        ),
        uploads,
        workers,
        share,
    ),
    max_size=25,
)


@dataclass
class Model:
    """One upload, as its client knows it."""

    target: str
    content: bytes
    path: str = ""
    offset: int = 0
    is_cancelled: bool = False

    @property
    def is_over(self) -> bool:
        return self.is_cancelled or self.offset == len(self.content)


@dataclass
class World:
    """Two workers on one data root, and the uploads."""

    root: Path
    clients: list[Client]
    models: list[Model] = field(default_factory=list)

    async def act(self, what: str, model: Model, client: Client, share: float) -> None:
        if model.is_cancelled:
            assert (await inspect(client, model.path)).status == 404
            return
        if what == "ask":
            await self.ask(model, client)
        elif what == "cancel" and not model.is_over:
            assert (await cancel(client, model.path)).status == 204
            model.is_cancelled = True
        elif what == "crash":
            self.leave_unacknowledged_bytes(share)
        elif what == "wrong":
            wrong = model.offset + 1 + int(share * 1000)
            assert (await append(client, model.path, wrong, b"x")).status == 409
        elif what == "broken":
            await self.append(model, client, share, breaks=True)
        else:
            await self.append(model, client, 1 if what == "finish" else share)

    async def ask(self, model: Model, client: Client) -> None:
        answer = await inspect(client, model.path)
        assert answer.status == 200
        assert int(answer.header("upload-offset") or "") == model.offset

    async def append(
        self, model: Model, client: Client, share: float, *, breaks: bool = False
    ) -> None:
        rest = model.content[model.offset :]
        sent = rest[: round(share * len(rest))]
        if breaks:
            length = len(sent) + 1
            answer = await append(
                client, model.path, model.offset, [sent], content_length=length, disconnect=True
            )
            assert answer.status in {204, 400, 413}
            # Not acknowledged, so the client has to ask; the last byte is kept with the resource.
            answer = await inspect(client, model.path)
            offset = int(answer.header("upload-offset") or "")
            assert model.offset <= offset <= model.offset + len(sent)
            if model.offset + length <= len(model.content):
                assert offset == min(model.offset + len(sent), max(0, len(model.content) - 1))
        else:
            answer = await append(client, model.path, model.offset, sent)
            assert answer.status == 204, answer.text
            offset = int(answer.header("upload-offset") or "")
            assert offset == model.offset + len(sent)
        model.offset = offset

    def leave_unacknowledged_bytes(self, share: float) -> None:
        """As after a crash in the middle of a request, whose last bytes may be anything."""
        for body in self.root.glob("blobs/uploads/*/body"):
            with body.open("ab") as file:
                file.write(random.randbytes(round(share * 1000)))

    async def check(self) -> None:
        """Finish all that can be finished, with the first worker."""
        for model in self.models:
            client = self.clients[0]
            if not model.is_over:
                assert (await client.get(model.target)).status == 404
                await self.append(model, client, 1)
            answer = await client.get(model.target)
            if model.is_cancelled:
                assert answer.status == 404
            else:
                stored = answer.body
                if answer.file_path is not None:
                    stored = Path(answer.file_path).read_bytes()  # noqa: ASYNC240
                assert stored == model.content
        assert not list((self.root / "blobs/uploads").iterdir())


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, MAX_BYTES), min_size=UPLOADS, max_size=UPLOADS),
    acts=acts,
    checkpoint_bytes=st.sampled_from([1, 1000, 50_000, 8_000_000]),
)
def test_an_upload_becomes_what_was_sent(
    sizes: list[int], acts: list[Act], checkpoint_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "CHECKPOINT_BYTES", checkpoint_bytes)
        asyncio.run(_upload(Path(folder) / "root", sizes, acts))


async def _upload(root: Path, sizes: Sequence[int], acts: Sequence[Act]) -> None:
    changed = Settings(root=root, base_url=BASE, pod_creations_per_hour=0, workers=1)
    ensure_token_key(KeyFiles(prepare_root(root).keys))
    async with AsyncExitStack() as stack:
        server = await with_two_pods(await stack.enter_async_context(running(changed)))
        second = await stack.enter_async_context(running(changed))
        world = World(root, [server.alice, server.alice.asking(second)])
        for number, size in enumerate(sizes):
            model = Model(f"/alice/private/{number}", random.randbytes(size))
            model.path = await created(server.alice, model.target, size)
            world.models.append(model)
        for what, upload, worker, share in acts:
            await world.act(what, world.models[upload], world.clients[worker], share)
        await world.check()


@settings(max_examples=20, deadline=None)
@given(sizes=st.lists(st.integers(1, 1000), min_size=2, max_size=6), seed=st.integers(0, 2**16))
def test_simultaneous_requests_never_mix(sizes: list[int], seed: int) -> None:
    """Some clients send different content to one upload at once; one of them wins each part."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_compete(Path(folder) / "root", sizes, random.Random(seed)))


async def _compete(root: Path, sizes: Sequence[int], chance: random.Random) -> None:
    changed = Settings(root=root, base_url=BASE, pod_creations_per_hour=0, workers=1)
    ensure_token_key(KeyFiles(prepare_root(root).keys))
    async with AsyncExitStack() as stack:
        server = await with_two_pods(await stack.enter_async_context(running(changed)))
        second = await stack.enter_async_context(running(changed))
        clients = [server.alice, server.alice.asking(second)]
        answer = await create(server.alice, "/alice/private/x", sum(sizes) + 1)
        path, expected = location(answer), b""
        for size in sizes:
            parts = [chance.randbytes(size) for _ in range(3)]
            answers = await asyncio.gather(
                *(append(chance.choice(clients), path, len(expected), part) for part in parts)
            )
            won = [part for part, each in zip(parts, answers, strict=True) if each.status == 204]
            assert len(won) == 1
            expected += won[0]
        assert await tus.offset(server.alice, path) == len(expected)
        await append(server.alice, path, len(expected), b"!")
        assert (await server.alice.get("/alice/private/x")).body == expected + b"!"
