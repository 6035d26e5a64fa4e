"""EventSourceChannel2023: everything, once, in order, also for who was away (N-12 to N-23)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podstead.app.adapters.system import SystemClock
from podstead.app.operator.administration import open_root
from podstead.app.operator.data_root import opened_store
from podstead.config import Settings
from podstead.core.date_times import write_time
from podstead.notifications.messages import Notification
from podstead.notifications.readers import Readers, TopicView
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Server, Start, acl_turtle, running
from tests.support.asgi import Client
from tests.support.changed_accounts import change_account
from tests.support.notification_channels import JSON_LD, NOTES, TURTLE, channel, path_of
from tests.support.rdf import triples
from tests.support.streams import Event, EventReader, opened

TYPE = "EventSourceChannel2023"
ORIGIN = "https://app.example"


@asynccontextmanager
async def listening_to(
    client: Client, made: dict[str, Any], *, last_id: str | None = None
) -> AsyncIterator[EventReader]:
    """A browser on a channel."""
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    async with opened(client, path_of(made["receiveFrom"]), headers) as stream:
        assert stream.status == 200
        yield EventReader(stream, last_id or "")


async def put(client: Client, path: str, body: str = "") -> str:
    """Make or replace a resource; its entity tag."""
    answer = await client.put(path, body, TURTLE)
    assert answer.status in (201, 204), answer.text
    return (answer.header("etag") or "").strip('"')


async def told(reader: EventReader, count: int) -> list[tuple[str, str]]:
    """The types and objects (as paths) of the next messages."""
    found = []
    for _ in range(count):
        event = await reader.next()
        assert event is not None
        message = event.json()
        found.append((message["type"], message["object"].removeprefix(BASE)))
    return found


async def test_changes_come_as_events(server: Server) -> None:
    """N-16, N-17, N-23."""
    made = await channel(server.public, TYPE, NOTES)
    async with listening_to(server.public, made) as reader:
        assert reader.stream.headers["content-type"] == "text/event-stream"
        assert reader.stream.headers["cache-control"] == "no-store"
        etag = await put(server.alice, NOTES, "<> a <#A> .")
        event = await reader.next()
        assert isinstance(event, Event)
        assert event.type == "message"
        message = event.json()
        assert (message["type"], message["object"], message["state"]) == (
            "Create",
            BASE + NOTES,
            etag,
        )
        await put(server.alice, NOTES, "<> a <#B> .")
        assert (await server.alice.delete(NOTES)).status == 204
        assert await told(reader, 2) == [("Update", NOTES), ("Delete", NOTES)]


async def test_a_page_of_any_origin_may_listen(server: Server) -> None:
    """N-23."""
    made = await channel(server.public, TYPE, NOTES)
    async with opened(server.public, path_of(made["receiveFrom"]), {"Origin": ORIGIN}) as stream:
        assert stream.headers["access-control-allow-origin"] == ORIGIN


async def test_a_container_notifies_of_its_members(server: Server) -> None:
    """N-17: of what comes and goes, not of what becomes of it, and no deeper."""
    made = await channel(server.alice, TYPE, "/alice/private/")
    async with listening_to(server.public, made) as reader:
        await put(server.alice, "/alice/private/a")
        await put(server.alice, "/alice/private/a", "<> a <#A> .")
        await put(server.alice, "/alice/private/deep/b")
        await server.alice.delete("/alice/private/a")
        for expected in ("Add", "/alice/private/a"), ("Add", "/alice/private/deep/"):
            assert await told(reader, 1) == [expected]
        event = await reader.next()
        assert event is not None
        message = event.json()
        assert (message["type"], message["target"]) == ("Remove", f"{BASE}/alice/private/")


async def test_a_receiver_that_was_away_gets_what_it_missed(server: Server) -> None:
    """N-23: exactly once, in order, and on to what comes."""
    made = await channel(server.public, TYPE, NOTES)
    async with listening_to(server.public, made) as reader:
        await put(server.alice, NOTES, "<> a <#A> .")
        assert await told(reader, 1) == [("Create", NOTES)]
        last_id = reader.last_id
    await put(server.alice, NOTES, "<> a <#B> .")
    await put(server.alice, "/alice/public/other")
    await server.alice.delete(NOTES)
    async with listening_to(server.public, made, last_id=last_id) as reader:
        assert await told(reader, 2) == [("Update", NOTES), ("Delete", NOTES)]
        await put(server.alice, NOTES)
        assert await told(reader, 1) == [("Create", NOTES)]


async def test_nothing_is_missed_between_subscribing_and_listening(server: Server) -> None:
    """N-19: the first connection begins where the channel did."""
    await put(server.alice, NOTES)
    made = await channel(server.public, TYPE, NOTES)
    await put(server.alice, NOTES, "<> a <#A> .")
    async with listening_to(server.public, made) as reader:
        assert await told(reader, 1) == [("Update", NOTES)]


def busy(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """A worker that looks at no right to read before the event is set."""
    is_free, view = asyncio.Event(), Readers.view

    async def delayed_view(readers: Readers, notification: Notification) -> TopicView:
        await is_free.wait()
        return await view(readers, notification)

    monkeypatch.setattr(Readers, "view", delayed_view)
    return is_free


async def test_the_rules_of_a_resource_apply_to_its_deletion(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-18: whoever could read it hears all of what it came to, also from a busy worker."""
    folder, member = "/alice/shared/", "/alice/shared/note"
    await server.alice.put(folder, "", TURTLE)
    await put(server.alice, member)
    await server.put_acl(folder, (f"acl:agent <{server.bob_web_id}>", "+Read"))
    of_member = await channel(server.bob, TYPE, member)
    of_folder = await channel(server.bob, TYPE, folder)
    is_free = busy(monkeypatch)
    async with (
        listening_to(server.public, of_member) as member_reader,
        listening_to(server.public, of_folder) as folder_reader,
    ):
        await put(server.alice, member, "<> a <#A> .")
        for path in (member, folder):
            assert (await server.alice.delete(path)).status == 204
        is_free.set()
        assert await told(member_reader, 2) == [("Update", member), ("Delete", member)]
        assert await told(folder_reader, 2) == [("Remove", member), ("Delete", folder)]


async def test_revoked_access_stays_revoked_after_the_rules_are_deleted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-18, N-30: the container's rules, which are all that is left, would grant it."""
    await put(server.alice, NOTES)
    made = await channel(server.bob, TYPE, NOTES)
    is_free = busy(monkeypatch)
    async with listening_to(server.public, made) as reader:
        await server.put_acl(NOTES)
        await put(server.alice, NOTES, "<> a <#A> .")
        await server.alice.delete(NOTES)
        is_free.set()
        assert await reader.next() is None


async def test_a_quiet_connection_learns_where_it_is(server: Server) -> None:
    """N-23: so that a receiver that never heard anything misses nothing either."""
    made = await channel(server.public, TYPE, NOTES)
    await put(server.alice, "/alice/public/other")
    async with listening_to(server.public, made) as reader:
        await put(server.alice, NOTES)
        assert await told(reader, 1) == [("Create", NOTES)]
        last_id = reader.last_id
        assert int(last_id) > 0
    async with listening_to(server.public, made, last_id=last_id) as reader:
        await put(server.alice, NOTES, "<> a <#A> .")
        assert await told(reader, 1) == [("Update", NOTES)]


async def test_a_receiver_away_too_long_is_told_so(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-23: the log no longer reaches back; how the resource is now is told instead."""
    monkeypatch.setattr("podstead.notifications.history.MAX_ROWS", 2)
    server = await start()
    made = await channel(server.public, TYPE, NOTES)
    *_, etag = [await put(server.alice, NOTES, f"<> a <#{number}> .") for number in range(4)]
    async with listening_to(server.public, made) as reader:
        lost = await reader.next()
        assert lost is not None
        assert (lost.type, lost.data) == ("lost", BASE + NOTES)
        now = await reader.next()
        assert now is not None
        assert (now.json()["type"], now.json()["state"]) == ("Update", etag)
        await server.alice.delete(NOTES)
        assert await told(reader, 1) == [("Delete", NOTES)]


async def test_a_receiver_away_longer_than_the_log_is_told_so(
    start: Start, settings: Settings
) -> None:
    """N-23: the row of the last event that was heard has left the log."""
    server = await start()
    made = await channel(server.alice, TYPE, NOTES)
    async with listening_to(server.public, made) as reader:
        await put(server.alice, NOTES)
        assert await told(reader, 1) == [("Create", NOTES)]
    store = SqliteStore(settings.root, change_log_days=1)
    await store.open()
    await store.sweep(now_ms=SystemClock().now_ms() + 2 * 86_400_000)
    await store.close()
    await put(server.alice, NOTES, "<> a <#A> .")
    async with listening_to(server.public, made, last_id=reader.last_id) as again:
        lost = await again.next()
        assert lost is not None
        assert lost.type == "lost"
        assert await told(again, 1) == [("Update", NOTES)]
        last_id = again.last_id
    async with listening_to(server.public, made, last_id=last_id) as again:
        await server.alice.delete(NOTES)
        assert await told(again, 1) == [("Delete", NOTES)]


async def test_a_receiver_ahead_of_the_log_is_told_so(server: Server) -> None:
    """N-23: as after the data came back from a backup, whose numbers are given again."""
    await put(server.alice, NOTES)
    made = await channel(server.public, TYPE, NOTES)
    async with listening_to(server.public, made, last_id="1000000") as reader:
        lost = await reader.next()
        assert lost is not None
        assert (lost.type, lost.data) == ("lost", BASE + NOTES)
        assert await told(reader, 1) == [("Update", NOTES)]


@pytest.mark.parametrize("last_id", ["x", "-1", "1.5", "9" * 30, "\u0661"])
async def test_an_id_that_no_event_had_is_refused(server: Server, last_id: str) -> None:
    made = await channel(server.public, TYPE, NOTES)
    answer = await server.public.request(
        "GET",
        path_of(made["receiveFrom"]),
        headers=[("Last-Event-ID", last_id.encode().decode("latin-1"))],
    )
    assert answer.status == 400


async def test_a_channel_that_is_closed_is_listened_to_no_more(server: Server) -> None:
    """N-10: an EventSource that gets 404 does not come back."""
    made = await channel(server.public, TYPE, NOTES)
    await server.public.delete(path_of(made["id"]))
    assert (await server.public.get(path_of(made["receiveFrom"]))).status == 404


async def test_revoking_ends_the_stream_before_anything_more_is_sent(server: Server) -> None:
    """N-18, N-30: and the receiver that comes back is refused."""
    await put(server.alice, NOTES)
    await server.put_acl(NOTES, ("acl:agent <" + server.bob_web_id + ">", "Read"))
    made = await channel(server.bob, TYPE, NOTES)
    async with listening_to(server.public, made) as reader:
        await put(server.alice, NOTES, "<> a <#A> .")
        assert await told(reader, 1) == [("Update", NOTES)]
        await server.put_acl(NOTES)
        await put(server.alice, NOTES, "<> a <#B> .")
        assert await reader.next() is None
    assert (await server.public.get(path_of(made["receiveFrom"]))).status == 403


async def test_a_revoked_token_ends_what_was_begun_with_it(
    server: Server, settings: Settings
) -> None:
    """N-30, A-32: though the access rules go on to grant it."""
    await put(server.alice, NOTES)
    await server.put_acl(NOTES, (f"acl:agent <{server.bob_web_id}>", "Read"))
    made = await channel(server.bob, TYPE, NOTES)
    async with listening_to(server.public, made) as reader:
        await put(server.alice, NOTES, "<> a <#A> .")
        assert await told(reader, 1) == [("Update", NOTES)]
        async with open_root(settings) as root:
            assert await root.tokens.revoke_all("bob")
        await put(server.alice, NOTES, "<> a <#B> .")
        assert await reader.next() is None
    assert (await server.public.get(path_of(made["receiveFrom"]))).status == 401


async def test_a_disabled_account_gets_no_more_notifications(
    start: Start, settings: Settings
) -> None:
    """N-30: until it is enabled, its channels tell nothing."""
    server = await start(idp=True)
    topic = "/bob/public/notes.ttl"
    await put(server.bob, topic)
    rules = (
        (f"acl:agent <{server.alice_web_id}>", "Read"),
        (f"acl:agent <{server.bob_web_id}>", "Read Write Control"),
    )
    answer = await server.bob.put(f"{topic}.acl", acl_turtle(topic, *rules, owner=False), TURTLE)
    assert answer.status == 201
    made = await channel(server.alice, TYPE, topic)
    async with opened_store(settings) as store, listening_to(server.public, made) as reader:
        await put(server.bob, topic, "<> a <#A> .")
        assert await told(reader, 1) == [("Update", topic)]
        await change_account(store, disabled=True)
        await put(server.bob, topic, "<> a <#B> .")
        assert await reader.next() is None
        assert (await server.public.get(path_of(made["receiveFrom"]))).status == 401
        await change_account(store, disabled=False)
    async with listening_to(server.public, made) as reader:
        assert await reader.next() is not None


async def test_messages_are_in_turtle_on_request(server: Server) -> None:
    """N-15."""
    made = await channel(server.public, TYPE, NOTES, accept=TURTLE)
    async with listening_to(server.public, made) as reader:
        await put(server.alice, NOTES)
        event = await reader.next()
        assert event is not None
        said = {(str(p), str(o)) for _, p, o in triples(event.data, TURTLE, BASE)}
        assert ("https://www.w3.org/ns/activitystreams#object", BASE + NOTES) in said


async def test_a_channel_sends_nothing_before_it_starts(server: Server) -> None:
    """N-12."""
    start_at = write_time(SystemClock().now_ms() + 300)
    made = await channel(server.public, TYPE, NOTES, startAt=start_at)
    assert made["startAt"] == start_at
    async with listening_to(server.public, made) as reader:
        heard = asyncio.create_task(reader.next())
        while not heard.done():
            await put(server.alice, NOTES, f"<> a <#{uuid.uuid4()}> .")
        event = await heard
        assert event is not None
        assert event.json()["published"] >= start_at


@pytest.mark.parametrize("quoted", [True, False])
async def test_a_current_state_is_not_notified(server: Server, quoted: bool) -> None:
    """N-14: any entity tag of the resource, as clients have it."""
    await put(server.alice, NOTES)
    etag = (await server.public.get(NOTES, accept=JSON_LD)).header("etag") or ""
    made = await channel(server.public, TYPE, NOTES, state=etag if quoted else etag.strip('"'))
    async with listening_to(server.public, made) as reader:
        await put(server.alice, NOTES, "<> a <#A> .")
        event = await reader.next()
        assert event is not None
        assert int(event.last_id) > 0
        assert event.json()["state"] != etag.strip('"')


async def test_a_changed_state_is_notified_at_once(server: Server) -> None:
    """N-14."""
    etag = await put(server.alice, NOTES)
    made = await channel(server.public, TYPE, NOTES, state="another")
    async with listening_to(server.public, made) as reader:
        event = await reader.next()
        assert event is not None
        assert (event.json()["type"], event.json()["state"]) == ("Update", etag)
    await server.alice.delete(NOTES)
    made = await channel(server.public, TYPE, NOTES, state=etag)
    async with listening_to(server.public, made) as reader:
        event = await reader.next()
        assert event is not None
        assert event.json()["type"] == "Delete"
        assert "state" not in event.json()


async def test_of_changes_above_the_rate_the_last_is_sent(server: Server) -> None:
    """N-13: one message an interval, and never an old state at the end."""
    made = await channel(server.public, TYPE, NOTES, rate="PT1S")
    async with listening_to(server.public, made) as reader:
        etags = [await put(server.alice, NOTES, f"<> a <#{number}> .") for number in range(5)]
        first = await reader.next()
        assert first is not None
        states = [first.json()["state"]]
        while states[-1] != etags[-1]:
            event = await reader.next()
            assert event is not None
            states.append(event.json()["state"])
        assert len(states) < len(etags)


async def test_a_quiet_stream_is_kept_alive(start: Start) -> None:
    """N-23: by comments, which no receiver hears."""
    server = await start(heartbeat_s=0.01)
    made = await channel(server.public, TYPE, NOTES)
    async with listening_to(server.public, made) as reader:
        while (await reader.stream.piece() or b"") != b":\n\n":
            pass


async def test_streams_end_when_the_server_stops(start: Start, settings: Settings) -> None:
    """And the receiver that comes back to the next one misses nothing."""
    server = await start()
    made = await channel(server.public, TYPE, NOTES)
    async with listening_to(server.public, made) as reader:
        await put(server.alice, NOTES)
        assert await told(reader, 1) == [("Create", NOTES)]
        await server.application.lifespan.stop()
        assert await reader.next() is None
    async with running(settings) as later:
        alice, public = server.alice.asking(later), server.public.asking(later)
        await put(alice, NOTES, "<> a <#A> .")
        async with listening_to(public, made, last_id=reader.last_id) as again:
            assert await told(again, 1) == [("Update", NOTES)]


async def test_a_channel_that_ends_closes_its_streams(server: Server) -> None:
    """N-12."""
    end_at = write_time(SystemClock().now_ms() + 300)
    made = await channel(server.public, TYPE, NOTES, endAt=end_at)
    async with listening_to(server.public, made) as reader:
        assert await reader.next() is None
    assert (await server.public.get(path_of(made["receiveFrom"]))).status == 404


async def test_changes_by_other_workers_are_heard(server: Server, settings: Settings) -> None:
    """N-19: whichever process made them; and what one worker told, another goes on from."""
    made = await channel(server.public, TYPE, NOTES)
    async with running(settings) as other:
        alice, public = server.alice.asking(other), server.public.asking(other)
        async with listening_to(server.public, made) as here, listening_to(public, made) as there:
            await put(alice, NOTES)
            await put(server.alice, NOTES, "<> a <#A> .")
            expected = [("Create", NOTES), ("Update", NOTES)]
            assert await told(here, 2) == await told(there, 2) == expected
            assert here.last_id == there.last_id
        await put(alice, NOTES, "<> a <#B> .")
        async with listening_to(server.public, made, last_id=there.last_id) as here:
            assert await told(here, 1) == [("Update", NOTES)]


async def test_all_receivers_get_the_same_messages(server: Server) -> None:
    """N-16: by their ids, also those who hear them later."""
    made = await channel(server.public, TYPE, NOTES)
    async with listening_to(server.public, made) as one, listening_to(server.public, made) as two:
        await put(server.alice, NOTES)
        first, second = await one.next(), await two.next()
    async with listening_to(server.public, made, last_id="0") as three:
        events = [first, second]
        third = await three.next()
        while third is not None and third.type == "lost":
            third = await three.next()
        events.append(third)
    assert len({event.json()["id"] for event in events if event}) == 1
