"""The application in this process, with two pods, as tests over ASGI use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from podstead.app.adapters.passwords import Argon2Passwords, HashCost
from podstead.app.services import build_application
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.web.application import Application
from tests.support.asgi import Answer, Client

BASE = "http://localhost:3000"
CHEAP = HashCost(memory_kib=8, passes=1)
"""What a hash of a password takes in tests."""


@dataclass(frozen=True)
class Pod:
    """One pod and its owner's client."""

    name: str
    web_id: str
    token: str
    owner: Client


@dataclass(frozen=True)
class Server:
    """The application with two owners and the public."""

    application: Application
    public: Client
    alice: Client
    bob: Client
    bob_web_id: str
    alice_web_id: str

    async def put_acl(self, subject: str, *rules: tuple[str, str], owner: bool = True) -> Answer:
        """PUT an ACL that keeps Alice in control; ``rules`` are (subject predicate, modes)."""
        return await self.alice.put(
            f"{subject}.acl", acl_turtle(subject, *rules, owner=owner), "text/turtle"
        )


def acl_turtle(subject: str, *rules: tuple[str, str], owner: bool = True) -> str:
    """An ACL document; each rule is a subject in Turtle and modes such as ``Read Write``.

    Modes with a ``+`` before them are also inherited (``acl:default``).
    """
    every = [*rules]
    if owner:
        every.insert(0, (f"acl:agent <{BASE}/alice/#me>", "+Read +Write +Control"))
    blocks = []
    for who, modes in every:
        for mode in modes.split():
            default = f"; acl:default <{BASE}{subject}>" if mode.startswith("+") else ""
            blocks.append(
                f"[] a acl:Authorization; {who}; acl:accessTo <{BASE}{subject}>{default}; "
                f"acl:mode acl:{mode.lstrip('+')}."
            )
    prefixes = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
        "@prefix foaf: <http://xmlns.com/foaf/0.1/>.\n"
    )
    return prefixes + "\n".join(blocks)


class Start(Protocol):
    """Starts one server, with other settings than usual; it stops when the test ends."""

    async def __call__(
        self,
        *,
        clock: Clock | None = None,
        **changes: Any,  # noqa: ANN401 - any of the settings
    ) -> Server: ...


def running(
    settings: Settings, *, clock: Clock | None = None, randomness: Randomness | None = None
) -> _Running:
    passwords = Argon2Passwords(CHEAP)
    return _Running(
        build_application(settings, clock=clock, randomness=randomness, passwords=passwords)
    )


class _Running:
    """The application between its start and its stop."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __aenter__(self) -> Application:
        await self._application.lifespan.start()
        return self._application

    async def __aexit__(self, *_: object) -> None:
        await self._application.lifespan.stop()


Owners = Mapping[str, Mapping[str, str]]
"""What the owners of the two pods got with them, by name."""


async def new_pods(application: Application, *, host: str = "localhost:3000") -> Owners:
    public = Client(application, host=host)
    return {name: await _new_pod(public, name) for name in ("alice", "bob")}


async def with_two_pods(
    application: Application, owners: Owners | None = None, *, host: str = "localhost:3000"
) -> Server:
    """The application with new pods, or with those that the owners have."""
    public = Client(application, host=host)
    owners = owners or await new_pods(application, host=host)
    return Server(
        application=application,
        public=public,
        alice=public.with_token(owners["alice"]["token"]),
        bob=public.with_token(owners["bob"]["token"]),
        alice_web_id=owners["alice"]["webId"],
        bob_web_id=owners["bob"]["webId"],
    )


def password_of(name: str) -> str:
    """The password of an account of these servers."""
    return f"the password of {name}"


async def _new_pod(public: Client, name: str) -> dict[str, str]:
    """A new pod with a token of its owner, from the provider if the server is one."""
    sent = {
        "name": name,
        "email": f"{name}@example.org",
        "password": password_of(name),
        "acceptTerms": True,
    }
    answer = await public.post("/.pods", json.dumps(sent), "application/json")
    assert answer.status == 201, answer.text
    made: dict[str, str] = answer.json()
    if "idpIssuer" in made:
        provider = Client(public.application, host=urlsplit(made["idpIssuer"]).netloc)
        answer = await provider.post("/idp/credentials", json.dumps(sent), "application/json")
        assert answer.status == 200, answer.text
        made["token"] = answer.json()["access_token"]
    return made
