"""Channels of a real server: every worker, a stop while many listen, and webhooks sent once."""

from __future__ import annotations

import asyncio
import http.client
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.client import Pod, create_pod
from tests.support.event_streams import Listener, subscribe
from tests.support.server import ServerProcess, running_server
from tests.support.webhook_receiver import running_receiver
from tests.support.workers import clients_of_every_worker

WORKERS = 2


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    options = ["--workers", str(WORKERS), "--drain-timeout-s", "3600"]
    with running_server(ServerProcess(root=tmp_path / "root", options=options)) as server:
        yield server


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


def test_a_server_that_stops_ends_every_stream(server: ServerProcess, pod: Pod) -> None:
    """Streams have no end of their own; they neither keep the server nor are they cut off."""
    with pod.owner() as owner, ExitStack() as open_streams:
        listeners = []
        for channel_type in ("EventSourceChannel2023", "StreamingHTTPChannel2023") * 5:
            made = subscribe(owner, channel_type, f"{server.base_url}{pod.root}")
            listeners.append(Listener(server, made["receiveFrom"]))
            open_streams.enter_context(closing(listeners[-1]))
        assert server.stop() == 0
        for listener in listeners:
            assert all(not line.startswith("data") for line in listener.lines())
    assert server.errors == ""


def test_listeners_on_every_worker_get_the_writes_of_each(server: ServerProcess, pod: Pod) -> None:
    """N-19."""
    path = f"{pod.root}private/notes.ttl"
    with pod.owner() as owner, ExitStack() as open_streams:
        made = subscribe(owner, "EventSourceChannel2023", server.base_url + path)
        # So many that no worker is left without any, but by a chance of one in a million.
        listeners = [
            open_streams.enter_context(closing(Listener(server, made["receiveFrom"])))
            for _ in range(20)
        ]
        with clients_of_every_worker(server, workers=WORKERS, token=pod.token) as writers:
            for number, writer in enumerate(writers):
                assert writer.put(path, f"<> a <#{number}> .", "text/turtle").status in {201, 204}
        for listener in listeners:
            assert [listener.next_type() for _ in range(WORKERS)] == ["Create", "Update"]


def test_a_client_that_goes_away_frees_its_place(tmp_path: Path) -> None:
    """N-31: at once, not with the next message."""
    options = ["--sockets-per-address", "1"]
    with running_server(ServerProcess(root=tmp_path / "root", options=options)) as server:
        pod = create_pod(server)
        with pod.owner() as owner:
            made = subscribe(owner, "EventSourceChannel2023", f"{server.base_url}{pod.root}")
            listener = Listener(server, made["receiveFrom"])
            for _ in range(5):
                assert listener.status == http.client.OK
                assert owner.get(urlsplit(made["receiveFrom"]).path).status == 429
                listener.close()
                listener = Listener(server, made["receiveFrom"])
                while listener.status == http.client.TOO_MANY_REQUESTS:  # it is not yet known
                    listener.close()
                    listener = Listener(server, made["receiveFrom"])
            listener.close()


@pytest.mark.feature("webhooks")
async def test_every_message_of_a_webhook_is_sent_once(tmp_path: Path) -> None:
    """N-21: by one of three workers, through a restart."""
    options = ["--workers", "3"]
    async with running_receiver() as receiver:
        server = ServerProcess(root=tmp_path / "root", options=options)
        with running_server(server):
            pod = await asyncio.to_thread(create_pod, server)
            path = f"{pod.root}private/notes.ttl"

            def subscribe_and_write() -> None:
                with pod.owner() as owner:
                    topic = server.base_url + path
                    subscribe(owner, "WebhookChannel2023", topic, sendTo=receiver.url)

            def write(numbers: range) -> None:
                for number in numbers:
                    with pod.owner() as owner:
                        answer = owner.put(path, f"<> a <#{number}> .", "text/turtle")
                        assert answer.status in {201, 204}

            await asyncio.to_thread(subscribe_and_write)
            await asyncio.to_thread(write, range(10))
            delivered = [await receiver.next() for _ in range(10)]
            await asyncio.to_thread(server.restart)
            await asyncio.to_thread(write, range(10, 20))
            delivered += [await receiver.next() for _ in range(10)]
            await asyncio.to_thread(server.stop)
    ids = Counter(each.json()["id"] for each in delivered)
    assert set(ids.values()) == {1}
    assert [each.json()["type"] for each in delivered] == ["Create", *["Update"] * 19]
    assert receiver.is_quiet
