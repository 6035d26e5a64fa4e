"""Kept answers are the answers that would be given: any sequence of requests shows no difference.

Two workers that keep what they answered share one data root or, as two nodes do, one PostgreSQL
database. Beside them a server on a root of its own keeps nothing. All have the same clock and the
same randomness, so every answer must be equal to the byte, entity tags and times included.
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.app.adapters.engine import new_store
from podstead.app.adapters.keys import ensure_token_key
from podstead.app.adapters.root import prepared_root
from podstead.config import Settings
from podstead.storage.keys import KeyFiles
from podstead.storage.records import Committed, TokenRevocation, Version, Write
from podstead.storage.root import prepare_root
from tests.support.application import BASE, acl_turtle, running
from tests.support.asgi import Answer, Client
from tests.support.certificates import holder, key_turtle, rsa_key
from tests.support.clock import FakeClock
from tests.support.features import LEFT_OUT, ONLY_NAMES
from tests.support.postgresql import new_database
from tests.support.rdf import JSON_LD, TURTLE

TOKEN_LIFETIME_S = 1000
CERTIFICATE_LIFETIME_S = 700
CONTAINER = "/alice/private/"
DOC, OTHER, GROUP = f"{CONTAINER}doc", f"{CONTAINER}other", f"{CONTAINER}group"


class Counting:
    """Randomness that is none: the same sequence for everybody who starts anew."""

    def __init__(self) -> None:
        self._count = 0

    def token_hex(self, size_bytes: int) -> str:
        self._count += 1
        return f"{self._count:0{2 * size_bytes}x}"


@dataclass(frozen=True)
class Ask:
    """One request; ``if_none_match`` with the tag that the same reader last saw there."""

    who: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    if_none_match: bool = False


@dataclass(frozen=True)
class Move:
    """Let time pass."""

    seconds: int


@dataclass(frozen=True)
class Revoke:
    """Revoke an owner's token, beside the running servers."""

    who: str


Step = Ask | Move | Revoke


def rules(*extra: tuple[str, str]) -> bytes:
    return acl_turtle(CONTAINER, *extra).encode()


ACLS = [
    rules(),
    rules((f"acl:agent <{BASE}/bob/#me>", "+Read +Write")),
    rules(("acl:agentClass foaf:Agent", "+Read")),
    rules(("acl:agentClass acl:AuthenticatedAgent", "+Read")),
    rules((f"acl:agentGroup <{BASE}{GROUP}#g>", "+Read")),
    rules((f"acl:agent <{BASE}/bob/#me>; acl:origin <https://a.example>", "+Read")),
]
MEMBERS = b"<#g> <http://www.w3.org/2006/vcard/ns#hasMember> <%s>."

PLACES = [
    [DOC, f"{DOC}.meta", f"{DOC}/"],
    [CONTAINER, f"{CONTAINER}.meta", f"{CONTAINER}missing"],
    ["/alice/", "/alice/.meta", "/alice"],
    [f"{DOC}.acl", f"{CONTAINER}.acl", OTHER],
]
"""Paths that have to do with each other, so that confusing them would show."""

WISHES: list[tuple[tuple[str, str], ...]] = [
    (),
    (("Accept", TURTLE),),
    (("Accept", JSON_LD),),
    (("Accept", "text/html"),),
    (("Origin", "https://a.example"),),
    (("Origin", "https://b.example"),),
    (("Range", "bytes=1-3"),),
    (("Prefer", 'return=representation; omit="http://www.w3.org/ns/ldp#PreferContainment"'),),
]


@st.composite
def visits(draw: st.DrawFn) -> list[Ask]:
    """One reader with several wishes, and another one, who reads the same or what is near."""
    place = draw(st.sampled_from(PLACES))
    wishes = draw(st.lists(st.sampled_from(WISHES), min_size=2, max_size=3, unique=True))
    who, other = draw(st.permutations(["alice", "bob", "certified", "public"]))[:2]
    path, near = draw(st.sampled_from(place)), draw(st.sampled_from(place))
    method = draw(st.sampled_from(["GET", "GET", "HEAD"]))
    again = draw(st.booleans())
    return [
        *(Ask(who, method, path, wish) for wish in wishes),
        Ask(other, method, path, wishes[0]),
        Ask(who, "GET", near, wishes[0], if_none_match=again),
    ]


def put(who: str, path: str, body: bytes | None, content_type: str) -> Ask:
    return Ask(who, "PUT", path, (("Content-Type", content_type),), body)


numbers = st.integers(0, 2)
writes = st.one_of(
    st.builds(lambda n: put("alice", DOC, b"<#a> <#b> %d." % n, TURTLE), numbers),
    st.builds(lambda n: put("bob", DOC, b"<#a> <#b> %d." % (5 + n), TURTLE), numbers),
    st.builds(
        lambda key: put("bob", "/bob/", key_turtle(rsa_key(key)).encode(), TURTLE),
        st.integers(0, 1),
    ),
    st.builds(lambda n: put("alice", OTHER, b"text %d" % n, "text/plain"), numbers),
    st.builds(lambda n: put("alice", CONTAINER, b"<> <#t> %d." % n, TURTLE), numbers),
    st.builds(lambda n: put("alice", f"{DOC}.meta", b"<doc> <#t> %d." % n, TURTLE), numbers),
    st.builds(lambda acl: put("alice", f"{CONTAINER}.acl", acl, TURTLE), st.sampled_from(ACLS)),
    st.builds(
        lambda name: put("alice", GROUP, MEMBERS % name, TURTLE),
        st.sampled_from([b"/bob/#me", b"/carol/#me"]),
    ),
    st.builds(
        lambda slug: Ask("alice", "POST", CONTAINER,
                         (("Content-Type", "text/plain"), ("Slug", slug)), b"x"),
        st.sampled_from(["other", "fresh"]),
    ),
    st.builds(lambda path: Ask("alice", "DELETE", path), st.sampled_from([DOC, OTHER, GROUP])),
    st.builds(lambda: Ask("alice", "DELETE", f"{DOC}.acl")),
    st.builds(
        lambda: put("alice", f"{DOC}.acl", acl_turtle(DOC, ("acl:agentClass foaf:Agent", "Read"))
                    .encode(), TURTLE)
    ),
)  # fmt: skip
moves = st.builds(Move, st.sampled_from([1, 400, TOKEN_LIFETIME_S - 1, TOKEN_LIFETIME_S]))
revocations = st.builds(Revoke, st.sampled_from(["alice", "bob"]))
EVENTS: dict[str, st.SearchStrategy[Step]] = {"write": writes, "move": moves, "revoke": revocations}
# Chosen by name, since a choice among choices is made among all their members.
events = st.sampled_from(["write"] * 4 + ["move"] * 2 + ["revoke"]).flatmap(EVENTS.__getitem__)
# What is kept shows where the same is asked before and after something happened.
around = st.tuples(visits(), events).map(lambda pair: [*pair[0] * 2, pair[1], *pair[0] * 2])
GROUPS: dict[str, st.SearchStrategy[list[Step]]] = {
    "around": around,
    "write": writes.map(lambda step: [step]),
}
steps = st.sampled_from(["around"] * 3 + ["write"]).flatmap(GROUPS.__getitem__)
# Long ones: to start the servers takes longer than what is asked of them.
sequences = st.lists(steps, min_size=6, max_size=18).map(
    lambda groups: [step for group in groups for step in group]
)


@dataclass
class Deployment:
    """Workers on one root, asked in turn, and an agent's credentials there."""

    stack: AsyncExitStack
    clock: FakeClock
    settings: Settings
    workers: int
    certificate: str
    """Bob's, as long as his document names the key."""
    clients: list[dict[str, Client]] = field(default_factory=list)
    tags: dict[tuple[str, str], str] = field(default_factory=dict)
    turn: int = 0

    async def start(self) -> None:
        if self.settings.database is None:
            ensure_token_key(KeyFiles(prepare_root(self.settings.root).keys))
        else:
            self.stack.enter_context(prepared_root(self.settings))
        randomness = Counting()
        for _ in range(self.workers):
            application = await self.stack.enter_async_context(
                running(self.settings, clock=self.clock, randomness=randomness)
            )
            public = Client(application, host="localhost:3000")
            if not self.clients:
                self.clients.append({"public": public})
                for name in ("alice", "bob"):
                    body = json.dumps({"name": name})
                    made = await public.post("/.pods", body, "application/json")
                    self.clients[0][name] = public.with_token(made.json()["token"])
                self.clients[0]["certified"] = public.with_certificate(self.certificate)
            else:
                first = self.clients[0]
                self.clients.append({n: c.asking(application) for n, c in first.items()})

    async def ask(self, asked: Ask) -> Answer:
        self.turn = (self.turn + 1) % len(self.clients)
        headers = list(asked.headers)
        seen = self.tags.get((asked.who, asked.path))
        if asked.if_none_match and seen is not None:
            headers.append(("If-None-Match", seen))
        client = self.clients[self.turn][asked.who]
        answer = await client.request(asked.method, asked.path, headers=headers, body=asked.body)
        tag = answer.header("etag")
        if tag is not None:
            self.tags[asked.who, asked.path] = tag
        return answer

    async def revoke(self, who: str) -> None:
        payload = self.clients[0][who].authorization.removeprefix("Bearer ").partition(".")[0]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        store = new_store(self.settings)
        await store.open()
        record = TokenRevocation(claims["jti"], at_s=self.clock.now_s())
        write = Write(Version(f"{self.turn:016x}"), self.clock.now_ms(), records=(record,))
        assert isinstance(await store.commit(write), Committed)
        await store.close()


CERTIFICATES = {} if "webid_tls" in LEFT_OUT else {"webid_tls": True}
"""A certificate then identifies nobody, which is nothing else for what is cached."""
FIRST = (
    put("alice", DOC, b"<#a> <#b> 9.", TURTLE),
    put("alice", OTHER, b"text", "text/plain"),
    put("bob", "/bob/", key_turtle(rsa_key()).encode(), TURTLE),
)


@settings(max_examples=46)
@given(sequences)
def test_answers_are_the_same_whether_or_not_they_are_kept(drawn: Sequence[Step]) -> None:
    """Renderings may be kept, yet rules, tokens and the keys of certificates apply at once (W-5,
    A-33, A-168)."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder), drawn))


@settings(max_examples=4)
@given(sequences)
def test_answers_of_nodes_are_the_same_whether_or_not_they_are_kept(drawn: Sequence[Step]) -> None:
    """Each is confirmed by what the database says when it is asked for again."""
    with tempfile.TemporaryDirectory() as folder, new_database() as database:
        asyncio.run(_compare(Path(folder), drawn, database))


async def _compare(folder: Path, drawn: Sequence[Step], database: str | None = None) -> None:
    clock = FakeClock()

    def settings_with(name: str, cache_bytes: int, database: str | None = None) -> Settings:
        return Settings(
            root=folder / name, base_url=BASE, pod_creations_per_hour=0,
            invalid_credentials_per_minute=0, token_lifetime_s=TOKEN_LIFETIME_S,
            rendering_cache_bytes=cache_bytes, database=database,
        ).with_values(**CERTIFICATES, **ONLY_NAMES)  # fmt: skip

    bob = holder(f"{BASE}/bob/#me", now_s=clock.now_s(), ends_s=CERTIFICATE_LIFETIME_S).pem
    async with AsyncExitStack() as stack:
        keeping = Deployment(
            stack, clock, settings_with("keeping", 1 << 20, database), workers=2, certificate=bob
        )
        making = Deployment(stack, clock, settings_with("making", 0), workers=1, certificate=bob)
        for deployment in (keeping, making):
            await deployment.start()
        for step in (*FIRST, *drawn):
            if isinstance(step, Move):
                clock.advance(step.seconds)
            elif isinstance(step, Revoke):
                await keeping.revoke(step.who)
                await making.revoke(step.who)
            else:
                kept, made = await keeping.ask(step), await making.ask(step)
                assert kept.status < 500
                assert told(kept) == told(made), step


def told(answer: Answer) -> tuple[int, list[tuple[str, str]], bytes]:
    """All of an answer; a listing that cannot be kept is sent without saying its length."""
    headers = [(name, value) for name, value in answer.headers if name != "content-length"]
    return answer.status, headers, answer.body
