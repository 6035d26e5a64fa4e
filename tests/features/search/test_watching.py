"""A search is watched: its reader is told when the answer is another one, and of nothing else."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from podstead.notifications import answers
from podstead.notifications.answers import WatchedQuery
from tests.features.search.searched import Searched
from tests.support.application import BASE
from tests.support.asgi_sockets import Closed
from tests.support.notification_channels import subscribe
from tests.support.watched_queries import (
    DEADLINE_S,
    SOCKETS,
    Evaluations,
    evaluations,
    state_now,
)

__all__ = ["evaluations"]

ROOT = "/alice/c/"
HIDDEN, SEEN = f"{ROOT}hidden.txt", f"{ROOT}seen.txt"
BOB_READS = (f"acl:agent <{BASE}/bob/#me>", "+Read")


def topic(text: str = "apples", more: str = "") -> str:
    return f"/.search/in{ROOT}?q={quote(text, safe='')}{more}"


async def put(searched: Searched, path: str, text: str) -> None:
    answer = await searched.server.alice.put(path, text, "text/plain")
    assert answer.status in (201, 204), answer.text
    await searched.catch_up()


async def rule(searched: Searched, path: str, *rules: tuple[str, str]) -> None:
    await searched.server.put_acl(path, *rules)
    await searched.catch_up()


async def test_readers_are_told_of_what_they_find(
    searched: Searched, evaluations: Evaluations
) -> None:
    server = searched.server
    await put(searched, SEEN, "apples")
    await rule(searched, ROOT, BOB_READS)
    await put(searched, HIDDEN, "pears")
    await rule(searched, HIDDEN)
    asked = topic()
    async with (
        evaluations.watched(server, "bob", asked) as bob,
        evaluations.watched(server, "alice", asked) as alice,
    ):
        await bob.evaluated_after(put(searched, HIDDEN, "apples and pears"))
        second = await alice.is_told()
        assert bob.socket._to_client.empty()
        await bob.evaluated_after(put(searched, f"{ROOT}other.txt", "pears"))
        assert bob.socket._to_client.empty()
        await rule(searched, HIDDEN, BOB_READS)
        assert await bob.is_told() == second != bob.state
        await rule(searched, HIDDEN)
        assert await bob.is_told() == bob.state
        await put(searched, f"{ROOT}more.txt", "apples")
        assert await bob.is_told() == await state_now(server.bob, asked)
        assert await alice.is_told() == await state_now(server.alice, asked)
        await rule(searched, ROOT)
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(Closed):
                await bob.socket.receive()
    assert (await subscribe(server.bob, SOCKETS, asked)).status == 403
    assert (await subscribe(server.public, SOCKETS, asked)).status == 401


async def test_it_is_not_answered_before_the_index_has_the_change(
    searched: Searched, evaluations: Evaluations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In between, the answer would lack what was changed."""
    monkeypatch.setattr(answers, "_LAG_S", 0.01)
    monkeypatch.setattr(answers, "_PATIENCE_S", 1e6)
    server = searched.server
    await put(searched, SEEN, "apples")
    async with evaluations.watched(server, "alice", topic()) as alice:
        begun = alice.progress.begun
        await server.alice.put(SEEN, "many apples", "text/plain")
        async with asyncio.timeout(DEADLINE_S):
            while alice.progress.begun == begun:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
        assert await searched.paths(server.alice, "apples", ROOT) == []
        await searched.catch_up()
        assert await alice.is_told() == await state_now(server.alice, topic())


async def test_filters_and_pages_are_part_of_the_question(
    searched: Searched, evaluations: Evaluations
) -> None:
    await put(searched, SEEN, "apples")
    async with evaluations.watched(
        searched.server, "alice", topic("apples type:csv", "&sort=newest")
    ) as alice:
        await alice.evaluated_after(put(searched, f"{ROOT}other.txt", "apples"))
        assert alice.socket._to_client.empty()
        answer = await searched.server.alice.put(f"{ROOT}a.csv", "apples", "text/csv")
        assert answer.status == 201
        await searched.catch_up()
        assert await alice.is_told() != alice.state


async def test_what_is_no_question_is_refused(searched: Searched) -> None:
    for asked in (topic(more="&sort=size"), topic(more="&page=0")):
        assert (await subscribe(searched.server.alice, SOCKETS, asked)).status == 400


async def test_an_internal_error_is_told_as_such(
    searched: Searched, evaluations: Evaluations, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_self: WatchedQuery) -> None:
        raise RuntimeError("a defect")

    async with evaluations.watched(searched.server, "alice", topic()) as alice:
        monkeypatch.setattr(WatchedQuery, "_answer", fails)
        await put(searched, SEEN, "apples")
        with pytest.raises(Closed) as closed:
            async with asyncio.timeout(DEADLINE_S):
                await alice.socket.receive()
        assert closed.value.code == 1011
