"""A server, a provider that Alice's WebID names, and the refusals that her requests may get.

Every test of a refusal changes one thing in a request that is good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.asgi import Answer
from tests.support.clock import FakeClock
from tests.support.provider import App, Provider
from tests.support.rdf import TURTLE
from tests.support.signing import (
    Change,
)

DOC = "/alice/private/doc"
URL = f"{BASE}{DOC}"
ISSUER_TERM = "http://www.w3.org/ns/solid/terms#oidcIssuer"
UNVERIFIABLE = "The token's issuer could not be verified"
NOT_NAMED = "The WebID does not name the token's issuer"
NO_DOCUMENT = "The WebID's document could not be read"
MISNAMED = "The WebID leads to this server but does not begin with its base URL"
NOT_NOW = "Access token expired or not valid yet"
NOT_FOR_US = "The token is not meant for Solid resource servers"
NO_ADDRESS = "The token has no valid issuer or no valid WebID"


@dataclass(frozen=True)
class World:
    """A server, its clock, and a provider that Alice trusts."""

    server: Server
    clock: FakeClock
    provider: Provider

    @property
    def now_s(self) -> int:
        return self.clock.now_s()

    def app(self, *changes: Change, web_id: str | None = None, **more: Any) -> App:  # noqa: ANN401
        """An application of Alice's."""
        return self.provider.app(
            web_id or self.server.alice_web_id, *changes, now_s=self.now_s, **more
        )

    async def send(
        self, fields: dict[str, str] | list[tuple[str, str]], method: str = "GET", target: str = DOC
    ) -> Answer:
        return await self.server.public.request(method, target, headers=fields)

    async def get(self, app: App, *changes: Change, **more: Any) -> Answer:  # noqa: ANN401
        """A GET of Alice's private document with a fresh proof."""
        return await self.send(app.fields("GET", URL, *changes, **more))

    async def name_issuer(self, *issuers: str) -> None:
        """Let Alice's WebID document name these issuers and no other."""
        named = "".join(f"<#me> <{ISSUER_TERM}> <{each}>.\n" for each in issuers) or "<> a <#x>."
        answer = await self.server.alice.put("/alice/", named, TURTLE)
        assert answer.status == 204, answer.text

    async def let_in(self, web_id: str) -> None:
        """Let another WebID read the document."""
        rules = acl_turtle(DOC, (f"acl:agent <{web_id}>", "Read"))
        assert (await self.server.alice.put(f"{DOC}.acl", rules, TURTLE)).status in {201, 204}


async def prepared(start: Start, clock: FakeClock, provider: Provider, **settings: Any) -> World:  # noqa: ANN401
    settings = {"invalid_credentials_per_minute": 0, **settings}
    world = World(await start(clock=clock, **settings), clock, provider)
    await world.name_issuer(provider.issuer)
    assert (await world.server.alice.put(DOC, "text", "text/plain")).status == 201
    return world


def assert_refused(answer: Answer, phrase: str, error: str = "invalid_token") -> None:
    """A 401 that says what is wrong, on the scheme that was used (A-7 to A-9)."""
    assert (answer.status, answer.json()) == (401, {"error": "Unauthorized", "message": phrase})
    dpop, bearer, *_ = answer.header_lines("www-authenticate")
    assert dpop.startswith("DPoP ")
    assert f'error="{error}", error_description="{phrase}"' in dpop
    assert bearer.startswith("Bearer ")
    assert "error=" not in bearer
