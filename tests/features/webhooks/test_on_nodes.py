"""The node that sends to webhooks is killed meanwhile: another one goes on, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamWriter
from collections.abc import Sequence
from pathlib import Path

from tests.support.client import Pod, create_pod
from tests.support.cluster import ClusterNode
from tests.support.nodes import running_nodes
from tests.support.server import DEADLINE_S, ServerProcess
from tests.support.webhook_receiver import Receiver, running_receiver
from tests.support.workers import holds_connection

CHANGES = 5
KILLED_AT = 3
"""The number of the message that the node does not survive."""


def subscribe(pod: Pod, path: str, receiver: Receiver) -> None:
    sent = {
        "@context": ["https://www.w3.org/ns/solid/notification/v1"],
        "type": "WebhookChannel2023",
        "topic": pod.server.base_url + path,
        "sendTo": receiver.url,
    }
    with pod.owner() as owner:
        place, fields = (
            "/.notifications/WebhookChannel2023/",
            {"Content-Type": "application/ld+json"},
        )
        answer = owner.request("POST", place, json.dumps(sent), fields)
    assert answer.status == 200, answer.text


def write(node: ServerProcess, pod: Pod, path: str, numbers: range) -> None:
    fields = {"Authorization": f"Bearer {pod.token}", "Content-Type": "text/plain"}
    for number in numbers:
        answer = node.request("PUT", path, str(number), fields)
        assert answer.status in {201, 204}, answer.text


class Killer:
    """Kills the node that sends a message, which gets no response."""

    def __init__(self, nodes: Sequence[ClusterNode], receiver: Receiver) -> None:
        self._nodes = nodes
        self._port = receiver.port
        self.survivors: asyncio.Queue[ClusterNode] = asyncio.Queue()

    async def __call__(self, writer: StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        # Nothing holds the connection once its node is killed.
        sends = [holds_connection(node, port, self._port) for node in self._nodes]
        for node, is_sender in zip(self._nodes, sends, strict=True):
            if is_sender:
                await asyncio.to_thread(node.kill)
            else:
                self.survivors.put_nowait(node)


async def test_no_message_is_lost_with_the_node_that_sends_it(tmp_path: Path) -> None:
    """N-21: only the message that was not answered is sent twice. Another node continues when the
    lease is over, 20 seconds later."""
    async with running_receiver() as receiver:
        with running_nodes(tmp_path, nodes=2) as nodes:
            pod = await asyncio.to_thread(create_pod, nodes[0])
            path = f"{pod.root}private/notes.txt"
            killer = Killer(nodes, receiver)
            receiver.answers = [*(200 for _ in range(1, KILLED_AT)), killer]
            await asyncio.to_thread(subscribe, pod, path, receiver)
            await asyncio.to_thread(write, nodes[0], pod, path, range(1, KILLED_AT + 1))
            survivor = await asyncio.wait_for(killer.survivors.get(), DEADLINE_S)
            await asyncio.to_thread(write, survivor, pod, path, range(KILLED_AT + 1, CHANGES + 1))
            delivered = [await receiver.next() for _ in range(CHANGES + 1)]
    ids = [each.json()["id"] for each in delivered]
    assert ids[KILLED_AT - 1] == ids[KILLED_AT]
    assert len(set(ids)) == CHANGES
    assert [each.json()["type"] for each in delivered] == ["Create", *["Update"] * CHANGES]
    assert receiver.is_quiet
