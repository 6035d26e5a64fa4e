"""What is written between the decision and the commit of a tree operation is never lost or ignored.

Each test writes something exactly then. The commit must notice, and all of it be decided again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from podstead.storage.records import CommitOutcome, Committed, Write
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server
from tests.support.rdf import TURTLE
from tests.support.transfers import put, tree_at

ROOT = "/alice/private/"
TREE = f"{ROOT}tree/"
NEW = f"{ROOT}new/"
LARGE = "y" * 200_000
PUBLIC = "acl:agentClass foaf:Agent"

Meanwhile = Callable[[Server], Awaitable[object]]

CHANGES: dict[str, Meanwhile] = {
    "a document": lambda server: put(server.alice, f"{TREE}a", "changed"),
    "a large document": lambda server: put(server.alice, f"{TREE}large", LARGE),
    "a new member": lambda server: put(server.alice, f"{TREE}inner/more", "more"),
    "a deleted member": lambda server: server.alice.delete(f"{TREE}b"),
    "a new description": lambda server: put(server.alice, f"{TREE}a.meta", "<a> <#p> 1.", TURTLE),
    "a changed description": lambda server: put(
        server.alice, f"{TREE}inner/c.meta", "<#c> <#p> 2.", TURTLE
    ),
    "new rules": lambda server: server.put_acl(f"{TREE}inner/", (PUBLIC, "+Read")),
    "changed rules": lambda server: server.put_acl(f"{TREE}ruled", (PUBLIC, "Read Append")),
    "a changed container": lambda server: put(
        server.alice, f"{TREE}inner/", "<> <#title> 'Inner'.", TURTLE
    ),
}


@pytest.fixture
async def server(server: Server) -> Server:
    for name in ("a", "b", "inner/c", "ruled"):
        await put(server.alice, TREE + name, name)
    await put(server.alice, f"{TREE}large", "x" * 200_000)
    await put(server.alice, f"{TREE}inner/c.meta", "<#c> <#p> 1.", TURTLE)
    assert (await server.put_acl(f"{TREE}ruled", (PUBLIC, "Read"))).status == 201
    return server


@pytest.fixture
def meanwhile(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Meanwhile], list[CommitOutcome]]:
    """Have something happen just before the first commit of many resources; the outcomes of all
    such commits."""
    commit = SqliteStore.commit
    outcomes: list[CommitOutcome] = []

    def arm(change: Meanwhile) -> list[CommitOutcome]:
        waiting = [change]

        async def commit_later(self: SqliteStore, write: Write) -> CommitOutcome:
            if write.size < 4:
                return await commit(self, write)
            if waiting:
                await waiting.pop()(server)
            outcome = await commit(self, write)
            outcomes.append(outcome)
            return outcome

        monkeypatch.setattr(SqliteStore, "commit", commit_later)
        return outcomes

    return arm


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("method", ["COPY", "MOVE", "DELETE"])
async def test_a_change_is_part_of_what_is_copied_moved_or_deleted(
    server: Server,
    store: SqliteStore,
    meanwhile: Callable[[Meanwhile], list[CommitOutcome]],
    method: str,
    change: Meanwhile,
) -> None:
    expected: dict[str, tuple[str, bytes]] = {}

    async def change_and_look(server: Server) -> None:
        await change(server)
        expected.update(await tree_at(store, TREE))

    outcomes = meanwhile(change_and_look)
    headers = {"Depth": "infinity"} if method == "DELETE" else {"Destination": NEW}
    answer = await server.alice.request(method, TREE, headers=headers)
    assert answer.status == (204 if method == "DELETE" else 201)
    assert [isinstance(outcome, Committed) for outcome in outcomes] == [False, True]
    assert expected
    old, new = await tree_at(store, TREE), await tree_at(store, NEW)
    assert old == (expected if method == "COPY" else {})
    if method == "DELETE":
        return
    assert new.keys() == expected.keys()
    for name, content in expected.items():
        if not name.endswith(".acl"):  # which names its subject
            assert new[name] == content, name


@pytest.mark.parametrize("method", ["COPY", "MOVE", "DELETE"])
@pytest.mark.parametrize("place", ["", "inner/", "inner/c"])
async def test_rights_that_are_withdrawn_are_gone(
    server: Server,
    store: SqliteStore,
    meanwhile: Callable[[Meanwhile], list[CommitOutcome]],
    method: str,
    place: str,
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    assert (await server.alice.delete(f"{TREE}ruled.acl")).status == 204
    assert (await server.put_acl(ROOT, (bob, "+Read +Write +Control"))).status in (201, 204)
    before = await tree_at(store, TREE)
    outcomes = meanwhile(lambda server: server.put_acl(TREE + place))
    headers = {"Depth": "infinity"} if method == "DELETE" else {"Destination": NEW}
    answer = await server.bob.request(method, TREE, headers=headers)
    assert answer.status == 403
    assert not any(isinstance(outcome, Committed) for outcome in outcomes)
    after = await tree_at(store, TREE)
    assert after.pop(f"{place}.acl")
    assert after == before
    assert await tree_at(store, NEW) == {}


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_a_destination_that_is_taken_meanwhile_is_kept(
    server: Server,
    store: SqliteStore,
    meanwhile: Callable[[Meanwhile], list[CommitOutcome]],
    method: str,
) -> None:
    before = await tree_at(store, TREE)
    meanwhile(lambda server: put(server.alice, f"{NEW}other", "other"))
    headers = {"Destination": NEW, "Overwrite": "F"}
    assert (await server.alice.request(method, TREE, headers=headers)).status == 412
    assert (await tree_at(store, NEW)).keys() == {"", "other"}
    assert await tree_at(store, TREE) == before
