"""Streams of notifications of a server that runs as a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.support.client import Client
from tests.support.notification_channels import CONTEXT, JSON_LD
from tests.support.server import ServerProcess


def subscribe(owner: Client, channel_type: str, topic: str, **members: str) -> dict[str, str]:
    """A channel, as it is described; the topic is a URL."""
    sent = {"@context": [CONTEXT], "type": channel_type, "topic": topic, **members}
    answer = owner.request(
        "POST",
        f"/.notifications/{channel_type}/",
        json.dumps(sent),
        {"Content-Type": JSON_LD},
    )
    assert answer.status == 200, answer.text
    described: dict[str, str] = json.loads(answer.body)
    return described


class Listener:
    """A long response on a connection of its own."""

    def __init__(self, server: ServerProcess, url: str) -> None:
        self._connection = server.connect()
        self._connection.request("GET", urlsplit(url).path)
        self._response = self._connection.getresponse()
        self.status = self._response.status

    def lines(self) -> Iterator[str]:
        """The lines that come, until the response ends."""
        while line := self._response.readline():
            yield line.decode().rstrip("\n")

    def next_type(self) -> str:
        """The type of the next message of an event stream."""
        for line in self.lines():
            if line.startswith("data: "):
                return str(json.loads(line.removeprefix("data: "))["type"])
        raise AssertionError("the stream has ended")

    def close(self) -> None:
        self._response.close()
        self._connection.close()
