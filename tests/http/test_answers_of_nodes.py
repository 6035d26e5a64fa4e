"""A node keeps its answers, and what another node has acknowledged is in the next one.

Two applications in this process share a PostgreSQL database, as two nodes do.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass

import pytest

from podstead.app.adapters.engine import new_store
from podstead.app.adapters.root import prepared_root
from podstead.config import Settings
from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.dependencies import Prefetch
from podstead.storage.records import Committed, TokenRevocation, Version, Write
from podstead.web.application import Application
from tests.support.application import BASE, acl_turtle, running
from tests.support.asgi import Answer, Client
from tests.support.postgresql import new_database
from tests.support.rdf import TURTLE

_MEMBER = "<#g> <http://www.w3.org/2006/vcard/ns#hasMember> <%s>."
_ROUNDS = 8
_READERS = 6


@dataclass
class Nodes:
    """Two nodes, a pod that is new in each test, and the pod of somebody else."""

    settings: Settings
    first: Application
    owner: Client
    """Asks the second node, as the following does."""
    other: Client
    name: str
    web_id: str
    other_web_id: str
    other_name: str

    @property
    def folder(self) -> str:
        return f"/{self.name}/private/"

    @property
    def note(self) -> str:
        return f"{self.folder}note"

    @property
    def group(self) -> str:
        """A group in the storage of the document whose rules name it."""
        return f"{self.folder}group"

    @property
    def group_elsewhere(self) -> str:
        return f"/{self.other_name}/public/group"

    def on_first(self, client: Client) -> Client:
        return client.asking(self.first)

    async def put(self, path: str, content: str, content_type: str = TURTLE) -> None:
        await self.put_as(self.owner, path, content, content_type)

    async def put_as(
        self, client: Client, path: str, content: str, content_type: str = TURTLE
    ) -> None:
        answer = await client.put(path, content, content_type)
        assert answer.status in (201, 204, 205), answer.text

    async def delete(self, path: str) -> None:
        answer = await self.owner.request("DELETE", path)
        assert answer.status in (200, 204, 205), answer.text

    async def rule(self, subject: str, *rules: tuple[str, str]) -> None:
        """Store rules that keep the owner in control."""
        await self.put(f"{subject}.acl", self.rules(subject, *rules))

    def rules(self, subject: str, *rules: tuple[str, str]) -> str:
        owner = (f"acl:agent <{self.web_id}>", "+Read +Write +Control")
        return acl_turtle(subject, owner, *rules, owner=False)

    @property
    def misses(self) -> int:
        """How many requests the first node has not answered with what it kept."""
        return self.first._responses.misses

    async def revoke_other(self) -> None:
        """Revoke the token of the other person."""
        store = new_store(self.settings)
        await store.open()
        (token,) = await store.list_tokens(pod=self.other_name)
        record = TokenRevocation(token.token_id, at_s=1)
        write = Write(Version(secrets.token_hex(8)), 1, records=(record,))
        assert isinstance(await store.commit(write), Committed)
        await store.close()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    with new_database() as url:
        settings = Settings(
            root=tmp_path_factory.mktemp("node") / "root",
            base_url=BASE,
            database=url,
            pod_creations_per_hour=0,
            invalid_credentials_per_minute=0,
        )
        with prepared_root(settings):
            yield settings


@pytest.fixture
async def nodes(database: Settings) -> AsyncIterator[Nodes]:
    async with running(database) as first, running(database) as second:
        public = Client(second, host="localhost:3000")
        made = []
        for _ in range(2):
            name = f"a{secrets.token_hex(4)}"
            answer = await public.post("/.pods", json.dumps({"name": name}), "application/json")
            made.append((name, answer.json()))
        (name, own), (other_name, other) = made
        yield Nodes(
            database,
            first,
            public.with_token(own["token"]),
            public.with_token(other["token"]),
            name,
            own["webId"],
            other["webId"],
            other_name,
        )


async def test_a_repeated_request_is_answered_with_what_was_kept(nodes: Nodes) -> None:
    await nodes.put(nodes.note, "<#a> <#b> 1 .")
    await nodes.put(f"/{nodes.name}/public/note", "<#a> <#b> 1 .")
    stranger = nodes.owner.with_token(None)
    asked = [
        (nodes.owner, nodes.note),
        (nodes.owner, nodes.folder),
        (stranger, f"/{nodes.name}/public/note"),
        (nodes.owner, f"{nodes.note}.meta"),
    ]
    for client, path in asked:
        # A listing is made once more, since its members are not read in one moment with the rest.
        before = [await nodes.on_first(client).get(path) for _ in range(2)]
        misses = nodes.misses
        assert await nodes.on_first(client).get(path) == before[1]
        assert nodes.misses == misses, path


Change = Callable[[Nodes], Awaitable[None]]


async def _group_is_named(nodes: Nodes, group: str) -> None:
    await nodes.rule(nodes.note, (f"acl:agentGroup <{BASE}{group}#g>", "Read"))


async def _named_in_own_group(nodes: Nodes) -> None:
    await nodes.put(nodes.group, _MEMBER % nodes.other_web_id)
    await _group_is_named(nodes, nodes.group)


async def _named_in_group_elsewhere(nodes: Nodes) -> None:
    await nodes.put_as(nodes.other, nodes.group_elsewhere, _MEMBER % nodes.other_web_id)
    await _group_is_named(nodes, nodes.group_elsewhere)


async def _hide_group_elsewhere(nodes: Nodes) -> None:
    path = nodes.group_elsewhere
    owner = (f"acl:agent <{nodes.other_web_id}>", "Read Write Control")
    await nodes.put_as(nodes.other, f"{path}.acl", acl_turtle(path, owner, owner=False))


async def _everybody(nodes: Nodes) -> None:
    await nodes.rule(nodes.note, ("acl:agentClass acl:AuthenticatedAgent", "Read"))


async def _folder_for_everybody(nodes: Nodes) -> None:
    await nodes.rule(nodes.folder, ("acl:agentClass acl:AuthenticatedAgent", "+Read"))


CHANGES: dict[str, tuple[Change, Change]] = {
    "replace": (_everybody, lambda nodes: nodes.put(nodes.note, "<#a> <#b> 2 .")),
    "delete": (_everybody, lambda nodes: nodes.delete(nodes.note)),
    "replace its rules": (_everybody, lambda nodes: nodes.rule(nodes.note)),
    "delete its rules": (_everybody, lambda nodes: nodes.delete(f"{nodes.note}.acl")),
    "create its rules": (_folder_for_everybody, lambda nodes: nodes.rule(nodes.note)),
    "replace rules above": (_folder_for_everybody, lambda nodes: nodes.rule(nodes.folder)),
    "leave a group": (
        _named_in_own_group,
        lambda nodes: nodes.put(nodes.group, _MEMBER % "https://x.example/#me"),
    ),
    "delete a group": (_named_in_own_group, lambda nodes: nodes.delete(nodes.group)),
    "leave a group elsewhere": (
        _named_in_group_elsewhere,
        lambda nodes: nodes.put_as(
            nodes.other, nodes.group_elsewhere, _MEMBER % "https://x.example/#me"
        ),
    ),
    "hide a group elsewhere": (_named_in_group_elsewhere, _hide_group_elsewhere),
    "revoke the token": (_everybody, Nodes.revoke_other),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_what_another_node_has_changed_is_in_the_next_answer(nodes: Nodes, name: str) -> None:
    permit, change = CHANGES[name]
    await nodes.put(nodes.note, "<#a> <#b> 1 .")
    await permit(nodes)
    before = await nodes.on_first(nodes.other).get(nodes.note)
    assert before.status == 200
    await nodes.on_first(nodes.other).get(nodes.note)
    misses = nodes.misses
    assert await nodes.on_first(nodes.other).get(nodes.note) == before
    assert nodes.misses == misses, "it was not kept"
    await change(nodes)
    after = await nodes.on_first(nodes.other).get(nodes.note)
    assert after.body != before.body
    assert _told(after) == _told(await nodes.other.get(nodes.note))


async def test_nobody_who_asks_after_access_was_taken_away_is_answered(nodes: Nodes) -> None:
    await nodes.put(nodes.note, "<#a> <#b> 1 .")
    is_open: bool | None = False
    has_ended = False

    async def read() -> None:
        while not has_ended:
            was_open = is_open
            answer = await nodes.on_first(nodes.other).get(nodes.note)
            # While a change is under way, either answer is right.
            if was_open is not None and was_open is is_open:
                assert answer.status == (200 if was_open else 403)

    readers = [asyncio.create_task(read()) for _ in range(_READERS)]
    for number in range(2 * _ROUNDS):
        is_open, opens = None, number % 2 == 0
        await (_everybody(nodes) if opens else nodes.rule(nodes.note))
        is_open = opens
        for _ in range(4):
            answer = await nodes.on_first(nodes.other).get(nodes.note)
            assert answer.status == (200 if opens else 403)
    has_ended = True
    await asyncio.gather(*readers)


def _told(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    return answer.status, dict(answer.headers), answer.body


async def test_a_closed_store_is_trouble_also_where_a_response_is_kept(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: Iterable[ResourcePath]) -> Prefetch:
        raise StorageError("The store is not open")

    reader = nodes.on_first(nodes.owner)
    await nodes.put(nodes.note, "<#a> <#b> 1 .")
    assert {(await reader.get(nodes.note)).status for _ in range(3)} == {200}
    monkeypatch.setattr(nodes.first, "_prefetch", closed)
    assert (await reader.get(nodes.note)).status == 500
