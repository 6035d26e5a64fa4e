"""A server that is searched, whose index is brought up when a test says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from podstead.features.search.indexer import Indexer
from tests.support.application import BASE, Server
from tests.support.asgi import Client


@dataclass
class Searched:
    """A server, and its index."""

    server: Server
    indexers: Sequence[Indexer] = field(default_factory=list)

    async def catch_up(self) -> None:
        await self.indexers[-1].catch_up()

    async def ask(
        self, client: Client, text: str, below: str = "/alice/", **parameters: str
    ) -> dict[str, Any]:
        """The answer to a question."""
        more = "".join(f"&{name}={value}" for name, value in parameters.items())
        answer = await client.get(f"/.search/in{below}?q={quote(text)}{more}")
        assert answer.status == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def paths(
        self, client: Client, text: str, below: str = "/alice/", **parameters: str
    ) -> list[str]:
        """The paths of what is found, in the order of the answer."""
        found = await self.ask(client, text, below, **parameters)
        return [each["id"].removeprefix(BASE) for each in found["items"]]
