"""A query is watched: its reader is told when the answer is another one, and of nothing else."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import pytest

from podstead.config import Settings
from podstead.core.errors import NotFound, Overloaded, PodsteadError, RateLimited
from podstead.notifications import answers
from podstead.notifications.answers import MAX_LIVE_QUERIES, AnswerState, LiveQueryService
from tests.support.application import BASE, Server, Start, running
from tests.support.asgi import Answer, Client
from tests.support.asgi_sockets import Closed, connected
from tests.support.notification_channels import channel, path_of, subscribe
from tests.support.rdf import TURTLE
from tests.support.streams import opened
from tests.support.watched_queries import (
    DEADLINE_S,
    SOCKETS,
    Evaluations,
    evaluations,
    state_now,
)
from tests.support.webhook_receiver import running_receiver

__all__ = ["evaluations"]

ROOT = "/alice/c/"
HIDDEN, SEEN = f"{ROOT}hidden.ttl", f"{ROOT}seen.ttl"
BOB_READS = (f"acl:agent <{BASE}/bob/#me>", "+Read")
VALUES = "SELECT ?o { ?s <http://example.org/p> ?o }"
VOLATILE = "SELECT ?o (NOW() AS ?now) (RAND() AS ?any) { ?s <http://example.org/p> ?o }"


def topic(query: str = VALUES) -> str:
    return f"/.sparql/query{ROOT}?query={quote(query, safe='')}"


async def put(server: Server, path: str, value: str, more: str = "") -> None:
    await put_by(server.alice, value, path, more)


async def put_by(client: Client, value: str, path: str = SEEN, more: str = "") -> None:
    content = f'<#it> <http://example.org/p> "{value}". {more}'
    answer = await client.put(path, content, TURTLE)
    assert answer.status in {201, 204, 205}, answer.text


@pytest.fixture
async def pod(server: Server) -> Server:
    """Bob may read what is in a container of Alice's, except one document."""
    await put(server, SEEN, "1")
    await server.put_acl(ROOT, BOB_READS)
    await put(server, HIDDEN, "secret")
    await server.put_acl(HIDDEN)
    return server


@pytest.mark.parametrize("query", [VALUES, VOLATILE])
async def test_each_reader_is_told_of_what_they_may_read(
    pod: Server, evaluations: Evaluations, query: str
) -> None:
    asked = topic(query)
    async with (
        evaluations.watched(pod, "bob", asked) as bob,
        evaluations.watched(pod, "alice", asked) as alice,
    ):
        if query == VOLATILE:  # other values each time that it is evaluated
            first = await alice.is_told(), await bob.is_told()
        else:
            first = alice.state, bob.state
        await bob.evaluated_after(put(pod, HIDDEN, "other"))
        second = await alice.is_told()
        assert second != first[0]
        assert bob.socket._to_client.empty()
        await put(pod, SEEN, "2")
        assert await bob.is_told() != first[1]
        assert await alice.is_told() != second


async def test_an_answer_that_stays_the_same_is_not_told(
    pod: Server, evaluations: Evaluations
) -> None:
    """Though documents change: other statements, and the same one in another document."""
    async with evaluations.watched(pod, "bob", topic()) as bob:
        await bob.evaluated_after(put(pod, SEEN, "1", '<#it> <http://example.org/q> "more".'))
        await bob.evaluated_after(pod.alice.put(f"{ROOT}new.txt", "no statements", "text/plain"))
        await bob.evaluated_after(
            pod.alice.request("MOVE", SEEN, headers={"Destination": f"{BASE}{SEEN}2"})
        )
        assert bob.socket._to_client.empty()
        assert await state_now(pod.bob, topic()) == bob.state


async def test_labels_of_blank_nodes_are_no_change(pod: Server, evaluations: Evaluations) -> None:
    content = "[] <http://example.org/p> [ <http://example.org/p> [] ]."
    await pod.alice.put(SEEN, content, TURTLE)
    async with evaluations.watched(
        pod, "bob", topic("SELECT ?s ?o { ?s <http://example.org/p> ?o }")
    ) as bob:
        await bob.evaluated_after(pod.alice.put(SEEN, f"{content} # again", TURTLE))
        assert bob.socket._to_client.empty()
        await pod.alice.put(SEEN, f"{content} [] <http://example.org/p> [].", TURTLE)
        assert await bob.is_told() != bob.state


async def test_rules_count_at_each_evaluation(pod: Server, evaluations: Evaluations) -> None:
    async with evaluations.watched(pod, "bob", topic()) as bob:
        await pod.put_acl(HIDDEN, BOB_READS)
        with_hidden = await bob.is_told()
        assert with_hidden != bob.state
        await pod.put_acl(HIDDEN)
        assert await bob.is_told() == bob.state
        await pod.put_acl(ROOT)
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(Closed):
                await bob.socket.receive()
    refused = await subscribe(pod.bob, SOCKETS, topic())
    assert refused.status == 403
    assert (await subscribe(pod.public, SOCKETS, topic())).status == 401


async def test_a_rule_of_a_container_above_counts(pod: Server, evaluations: Evaluations) -> None:
    assert (await pod.alice.delete(f"{ROOT}.acl")).status == 204
    await pod.put_acl("/alice/", BOB_READS)
    async with evaluations.watched(pod, "bob", topic()) as bob:
        await pod.put_acl("/alice/")
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(Closed):
                await bob.socket.receive()


async def test_what_changes_while_nobody_is_connected_is_told_then(
    pod: Server, evaluations: Evaluations
) -> None:
    del evaluations  # has them evaluated soon
    described = await channel(pod.bob, SOCKETS, topic())
    await put(pod, HIDDEN, "other")
    address = path_of(described["receiveFrom"])
    await put(pod, SEEN, "2")
    new = await state_now(pod.bob, topic())
    assert new != described["state"]
    for _ in range(2):  # each time, since the channel does not know what a socket was told
        async with connected(pod.application, address) as socket, asyncio.timeout(DEADLINE_S):
            assert f'"state":"{new}"' in await socket.receive()


@pytest.mark.parametrize("kind", ["EventSourceChannel2023", "StreamingHTTPChannel2023"])
async def test_streams_tell_as_well(pod: Server, evaluations: Evaluations, kind: str) -> None:
    del evaluations
    described = await channel(pod.bob, kind, topic(), state="of another time")
    async with opened(pod.bob, path_of(described["receiveFrom"])) as stream:
        text = ""
        while '"Update"' not in text:
            text += (await stream.piece() or b"").decode()
    assert await state_now(pod.bob, topic()) in text


@pytest.mark.feature("webhooks")
async def test_webhooks_tell_each_answer_once(
    start: Start, settings: Settings, evaluations: Evaluations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a restart, between which and the end of the server before the answer changed."""
    del evaluations
    worker = pytest.importorskip("podstead.features.webhooks.worker")
    monkeypatch.setattr(worker, "LOOK_S", 0.01)
    server = await start()
    await put(server, SEEN, "1")
    async with running_receiver() as receiver:
        await channel(server.alice, "WebhookChannel2023", topic(), sendTo=receiver.url)
        await put(server, SEEN, "2")
        told = [(await receiver.next()).json()["state"]]
        await server.application.lifespan.stop()
        monkeypatch.setattr(worker, "LOOK_S", 1e6)
        async with running(settings) as between:
            await put_by(server.alice.asking(between), "3")
        monkeypatch.setattr(worker, "LOOK_S", 0.01)
        async with running(settings) as later:
            told.append((await receiver.next()).json()["state"])
            await put_by(server.alice.asking(later), "4")
            told.append((await receiver.next()).json()["state"])
            assert told[-1] == await state_now(server.alice.asking(later), topic())
        assert len(set(told)) == 3
        assert receiver.is_quiet


@pytest.mark.feature("webhooks")
async def test_a_webhook_about_what_was_switched_off_ends(
    start: Start, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = pytest.importorskip("podstead.features.webhooks.worker")
    monkeypatch.setattr(worker, "LOOK_S", 0.01)
    server = await start()
    await put(server, SEEN, "1")
    async with running_receiver() as receiver:
        made = await channel(server.alice, "WebhookChannel2023", topic(), sendTo=receiver.url)
        await server.application.lifespan.stop()
        async with running(settings.with_values(sparql=False)) as later:
            alice = server.alice.asking(later)
            async with asyncio.timeout(DEADLINE_S):
                described = ""
                while "Nothing is sent any more" not in described:
                    await asyncio.sleep(0.01)
                    described = (await alice.get(path_of(made["id"]))).text


async def test_changes_of_another_worker_are_seen(
    server: Server, settings: Settings, evaluations: Evaluations
) -> None:
    async with running(settings) as other:
        await put(server, SEEN, "1")
        async with evaluations.watched(server, "alice", topic()) as alice:
            await put_by(server.alice.asking(other), "2")
            second = await alice.is_told()
            assert second != alice.state
            assert second == await state_now(server.alice.asking(other), topic())


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (topic("CONSTRUCT WHERE { ?s ?p ?o }"), 422),
        (topic("SELECT nonsense"), 400),
        (f"/.sparql/query{ROOT}?other=1", 400),
        (f"/.sparql/query{ROOT}x?query=ASK%7B%7D", 422),
        (f"{ROOT}?query=ASK%7B%7D", 422),
        ("/.sparql/query/.sparql/?query=ASK%7B%7D", 403),
    ],
)
async def test_what_is_no_question_is_refused(pod: Server, asked: str, status: int) -> None:
    answer: Answer = await subscribe(pod.alice, SOCKETS, asked)
    assert answer.status == status, answer.text


async def test_a_reader_watches_so_many_and_shuts_nobody_out(pod: Server) -> None:
    for number in range(MAX_LIVE_QUERIES):
        await channel(pod.bob, SOCKETS, topic(f"ASK {{ ?s ?p {number} }}"))
    refused = await subscribe(pod.bob, SOCKETS, topic())
    assert refused.status == 429
    assert int(refused.header("retry-after") or 0) > 0
    await channel(pod.alice, SOCKETS, topic())
    await channel(pod.bob, SOCKETS, SEEN)  # of another kind


async def test_the_questions_that_one_reader_has_open_are_bounded(
    pod: Server, evaluations: Evaluations
) -> None:
    """Streams are opened without a channel."""
    del evaluations

    def stream(number: int) -> str:
        asked = quote(BASE + topic(f"ASK {{ ?s ?p {number} }}"), safe="")
        return f"/.notifications/StreamingHTTPChannel2023/{asked}"

    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(opened(pod.bob, stream(number)))
            for number in range(MAX_LIVE_QUERIES)
        ]
        assert {each.status for each in streams} == {200}
        assert (await pod.bob.get(stream(MAX_LIVE_QUERIES))).status == 429
        async with opened(pod.alice, stream(MAX_LIVE_QUERIES)) as other:
            assert other.status == 200
    async with opened(pod.bob, stream(MAX_LIVE_QUERIES)) as later:
        assert later.status == 200


@pytest.mark.parametrize("trouble", [Overloaded(), RateLimited(retry_after_s=0), NotFound()])
async def test_a_question_without_an_answer_is_asked_again(
    pod: Server,
    evaluations: Evaluations,
    monkeypatch: pytest.MonkeyPatch,
    trouble: PodsteadError,
) -> None:
    """After a while, or with the next change if that has to help."""
    monkeypatch.setattr(answers, "_TROUBLE_S", 0.01)
    async with evaluations.watched(pod, "bob", topic()) as bob:
        failing = iter([trouble])
        real = LiveQueryService.answer

        async def fails_once(*args: Any, **options: Any) -> AnswerState | None:  # noqa: ANN401
            if (error := next(failing, None)) is not None:
                failed.set()
                raise error
            return await real(*args, **options)

        failed = asyncio.Event()
        monkeypatch.setattr(LiveQueryService, "answer", fails_once)
        await put(pod, SEEN, "2")
        await asyncio.wait_for(failed.wait(), DEADLINE_S)
        if isinstance(trouble, NotFound):
            await put(pod, SEEN, "3")
        assert await bob.is_told() != bob.state


async def test_an_unexpected_error_closes_the_connection(
    pod: Server, evaluations: Evaluations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver must not believe that nothing changes."""

    async def fails(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise KeyError

    async with evaluations.watched(pod, "bob", topic()) as bob:
        monkeypatch.setattr(LiveQueryService, "answer", fails)
        await put(pod, SEEN, "2")
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(Closed):
                await bob.socket.receive()


async def test_the_server_ends_after_what_it_evaluates(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody watches any more: an evaluation may have to end its process."""
    server = await start()
    await put(server, SEEN, "1")
    described = await channel(server.alice, SOCKETS, topic())
    begun, is_over = asyncio.Event(), False

    async def takes_long(*_: Any, **__: Any) -> None:  # noqa: ANN401
        nonlocal is_over
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _turn in range(100_000):
                await asyncio.sleep(0)
            is_over = True

    monkeypatch.setattr(LiveQueryService, "answer", takes_long)
    async with connected(server.application, path_of(described["receiveFrom"])):
        await asyncio.wait_for(begun.wait(), DEADLINE_S)
    await server.application.lifespan.stop()
    assert is_over
