"""A server, its clock, and a Nostr key that Alice lets in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.asgi import Answer
from tests.support.clock import FakeClock
from tests.support.nostr import Change, Json, NostrKey, nostr
from tests.support.rdf import TURTLE

PLACE = "/alice/private/shared/"
DOC = f"{PLACE}doc"
URL = f"{BASE}{DOC}"
TEXT = "text/plain"


@dataclass(frozen=True)
class World:
    """``key`` may read and write below ``PLACE``."""

    server: Server
    clock: FakeClock
    key: NostrKey
    base: str = BASE

    @property
    def now_s(self) -> int:
        return self.clock.now_s()

    def event(
        self, *changes: Change, method: str = "GET", target: str = DOC, body: bytes | None = None
    ) -> Json:
        """An event for a request; with a body, for that body."""
        return self.key.event(method, self.base + target, self.now_s, *changes, payload=body)

    async def send(
        self,
        fields: Mapping[str, str],
        method: str = "GET",
        target: str = DOC,
        body: bytes | list[bytes] | None = None,
    ) -> Answer:
        """A request with these fields."""
        sent = dict(fields) if body is None else {"Content-Type": TEXT, **fields}
        return await self.server.public.request(method, target, headers=sent, body=body)

    async def get(self, *changes: Change) -> Answer:
        """A GET of the document with a fresh event."""
        return await self.send(nostr(self.event(*changes)))

    async def put(
        self, body: bytes, *changes: Change, target: str = DOC, signed: bytes | None = None
    ) -> Answer:
        """A PUT with a fresh event, which names a body or none."""
        event = self.event(*changes, method="PUT", target=target, body=signed)
        return await self.send(nostr(event), "PUT", target, body)

    async def stored(self, target: str = DOC) -> tuple[int, str]:
        """What the owner sees."""
        answer = await self.server.alice.get(target)
        return answer.status, answer.text if answer.status == 200 else ""

    async def let_in(self, *rules: tuple[str, str]) -> None:
        """Replace the rules of the place."""
        answer = await self.server.alice.put(f"{PLACE}.acl", acl_turtle(PLACE, *rules), TURTLE)
        assert answer.status in {201, 204}, answer.text


async def prepared(start: Start, clock: FakeClock, **settings: object) -> World:
    settings = {"invalid_credentials_per_minute": 0, **settings}
    world = World(await start(clock=clock, **settings), clock, NostrKey.new())
    assert (await world.server.alice.put(DOC, "text", TEXT)).status == 201
    await world.let_in((f"acl:agent <{world.key.did}>", "+Read +Write"))
    return world


def assert_refused(answer: Answer, phrase: str) -> None:
    """A 401 that says what is wrong, on the scheme that was used and no other (A-7 to A-9)."""
    assert (answer.status, answer.json()) == (401, {"error": "Unauthorized", "message": phrase})
    dpop, bearer, own = answer.header_lines("www-authenticate")
    assert own == f'Nostr realm="{BASE}", error="invalid_token", error_description="{phrase}"'
    assert "error=" not in dpop + bearer
