"""A server that accepts client certificates, and Alice, whose profile names her key.

Every test of a refusal changes one thing in a request that is good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.asgi import Answer
from tests.support.certificates import Holder, holder, key_turtle, rsa_key
from tests.support.clock import FakeClock
from tests.support.rdf import TURTLE

WEB_ID = f"{BASE}/alice/#me"
PROFILE = "/alice/"
PRIVATE, PUBLIC = "/alice/private/doc", "/alice/public/doc"
TEXT = "text/plain"

SHORT = "its key is too short"
UNSUPPORTED = "unsupported key type"
EXPIRED, EARLY = "it has expired", "it is not valid yet"
NO_NAME = "it names no WebID that can be used"
NO_KEY = "the WebID's document does not name its key"
SEVERAL = "it names a document in which several have its key"
NO_DOCUMENT = "the WebID's document could not be read"
DISABLED = "the WebID's account is disabled"
NO_CERTIFICATE = "it cannot be read"
NO_FORM = "the proxy did not forward it in the configured form"
MISNAMED = "the WebID leads to this server but does not begin with its base URL"
TOO_MANY = "Too many WebIDs or issuers that are not known here: try again later"
UNREACHABLE = "The remote server could not be reached"


@dataclass(frozen=True)
class World:
    """A server, its clock and Alice's key."""

    server: Server
    clock: FakeClock
    key: rsa.RSAPrivateKey

    @property
    def now_s(self) -> int:
        return self.clock.now_s()

    def holder(self, *uris: str, **changes: object) -> Holder:
        """A certificate for Alice's WebID and with her key, but for what is said otherwise."""
        made = {"key": self.key, "now_s": self.now_s, **changes}
        return holder(*(uris or (WEB_ID,)), **made)  # type: ignore[arg-type]

    async def send(
        self,
        shown: Holder | None = None,
        method: str = "GET",
        target: str = PRIVATE,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        peer: str = "127.0.0.1",
    ) -> Answer:
        """A request on a connection with the certificate, Alice's own if none is given."""
        pem = (shown or self.holder()).pem
        fields = dict(headers or {}) if body is None else {"Content-Type": TEXT, **(headers or {})}
        client = self.server.public.with_certificate(pem)
        return await client.request(method, target, headers=fields, body=body, peer=peer)

    async def say(self, *statements: str, target: str = PROFILE, media_type: str = TURTLE) -> None:
        """Let Alice's document say just this."""
        answer = await self.server.alice.put(
            target, "".join(statements) or "<> a <#x>.", media_type
        )
        assert answer.status in {201, 204}, answer.text

    async def let_in(self, agent: str, target: str = PRIVATE) -> None:
        """Let another agent read Alice's document."""
        rules = acl_turtle(target, (f"acl:agent <{agent}>", "Read"))
        assert (await self.server.alice.put(f"{target}.acl", rules, TURTLE)).status in {201, 204}


async def prepared(start: Start, clock: FakeClock, **settings: object) -> World:
    settings = {"webid_tls": True, "invalid_credentials_per_minute": 0, **settings}
    world = World(await start(clock=clock, **settings), clock, rsa_key())
    for target in (PRIVATE, PUBLIC):
        assert (await world.server.alice.put(target, "text", TEXT)).status == 201
    await world.say(key_turtle(world.key))
    return world


def assert_refused(answer: Answer, reason: str) -> None:
    """A 401 that says what is wrong, on Bearer, since the method has no scheme of its own (A-8)."""
    phrase = f"Client certificate not accepted: {reason}"
    assert (answer.status, answer.json()) == (401, {"error": "Unauthorized", "message": phrase})
    dpop, bearer, *others = answer.header_lines("www-authenticate")
    assert bearer.startswith("Bearer ")
    assert bearer.endswith(f'error="invalid_token", error_description="{phrase}"')
    assert "error=" not in "".join([dpop, *others])


def assert_public(answer: Answer) -> None:
    """The challenge that everybody gets who shows nothing."""
    message = {"error": "Unauthorized", "message": "Authentication required"}
    assert (answer.status, answer.json()) == (401, message)
    assert not [each for each in answer.header_lines("www-authenticate") if "error=" in each]
