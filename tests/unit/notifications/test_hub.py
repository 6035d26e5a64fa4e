"""The hub: every change since the watch began, once, in order, to whoever may read it then.

The change log is a list here, and the rules are what the test says. What rules there really are is
for tests/http to show.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from podstead.core.errors import AccessDenied, Overloaded, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.notifications import deliveries, history
from podstead.notifications.deliveries import (
    DeliveryState,
    EndReason,
    QueueClosed,
    QueueItem,
    SubscriberQueue,
    Watch,
    WatchEnded,
)
from podstead.notifications.hub import Hub
from podstead.notifications.messages import Activity, Notification
from podstead.notifications.readers import ReadCheck, Readers, Subscriber, TopicView
from podstead.storage import records
from podstead.storage.records import Change, LoggedChange, Metadata, ResourceKind, Version
from tests.support.clock import FakeClock

T = TypeVar("T")

X, Y, CONTAINER = ResourcePath("/a/x"), ResourcePath("/a/y"), ResourcePath("/a/")
PUBLIC = Subscriber()


def agent(name: str, *, expires_at_s: int | None = None) -> Subscriber:
    web_id = f"https://{name}.example/#me"
    return Subscriber(Identity(web_id, AuthenticationMethod.DPOP, expires_at_s=expires_at_s))


ALICE, BOB = agent("alice"), agent("bob")


class Log:
    """A change log in memory; ``broken`` makes it fail, and ``slow`` tell what was newest before
    the event."""

    def __init__(self) -> None:
        self.rows: list[LoggedChange] = []
        self.signals: set[Signal] = set()
        self.broken = False
        self.slow: asyncio.Event | None = None
        self.asked = False
        self.most_read = 0

    def add(
        self, path: ResourcePath, activity: records.ChangeType = records.ChangeType.UPDATE
    ) -> int:
        sequence = len(self.rows) + 1
        version = Version(f"v{sequence}")
        self.rows.append(LoggedChange(sequence, Change(path, activity), version, sequence))
        for signal in self.signals:
            signal.woken.set()
        return sequence

    def listen(self) -> Signal:
        signal = Signal(self)
        self.signals.add(signal)
        return signal

    async def newest_sequence(self) -> int:
        newest = self._read(len(self.rows))
        if self.slow is not None:
            self.asked = True
            await self.slow.wait()
        return newest

    async def changes_after(self, sequence: int, *, limit: int) -> Sequence[LoggedChange]:
        rows = self._read(self.rows[sequence : sequence + limit])
        self.most_read = max(self.most_read, len(rows))
        return rows

    def _read(self, value: T) -> T:
        if self.broken:
            raise StorageError("The store could not be read")
        return value


class Signal:
    def __init__(self, log: Log) -> None:
        self.log = log
        self.woken = asyncio.Event()

    async def wait(self) -> None:
        await self.woken.wait()
        self.woken.clear()

    def close(self) -> None:
        self.log.signals.discard(self)


@dataclass
class Rules(Readers):
    """Who may read what, by identity; ``PUBLIC`` for everybody. Notes each question."""

    allowed: set[tuple[ResourcePath, Subscriber]] = field(default_factory=set)
    unsure: bool = False
    until_ms: int | None = None
    trouble: bool = False
    gates: dict[ResourcePath, asyncio.Event] = field(default_factory=dict)
    asked: list[tuple[ResourcePath, Subscriber]] = field(default_factory=list)

    async def check(self, topic: ResourcePath, subscriber: Subscriber) -> int | None:
        if not self.permits(topic, subscriber):
            raise AccessDenied
        return self.until_ms

    async def view(self, notification: Notification) -> TopicView:
        return RulesView(self, notification.topic)

    def permits(self, topic: ResourcePath, subscriber: Subscriber) -> bool:
        identities = {(path, each.identity) for path, each in self.allowed}
        return bool({(topic, subscriber.identity), (topic, PUBLIC.identity)} & identities)


class RulesView(TopicView):
    def __init__(self, rules: Rules, topic: ResourcePath) -> None:
        self._rules = rules
        self._topic = topic
        self.until_ms = rules.until_ms

    @property
    def metadata(self) -> Metadata | None:
        return Metadata(self._topic, ResourceKind.DOCUMENT, Version("now"), "text/turtle", 0, 0, 0)

    async def may_read(self, subscriber: Subscriber) -> ReadCheck:
        rules = self._rules
        gate = rules.gates.get(self._topic)
        if gate is not None:
            await gate.wait()
        if rules.trouble:
            raise StorageError("The rules could not be read")
        if subscriber != PUBLIC:
            rules.asked.append((self._topic, subscriber))
        if rules.permits(self._topic, subscriber):
            return ReadCheck.YES
        return ReadCheck.NOT_NOW if rules.unsure else ReadCheck.NO


@dataclass
class World:
    log: Log
    rules: Rules
    clock: FakeClock
    hub: Hub

    async def watch(
        self, topic: ResourcePath, subscriber: Subscriber = ALICE, *, capacity: int = 100_000
    ) -> tuple[Watch, SubscriberQueue]:
        queue = SubscriberQueue(capacity=capacity)
        self.rules.allowed.add((topic, subscriber))
        return await self.hub.watch(topic, subscriber, queue), queue


def make_world(*, max_watches: int = 100) -> World:
    log, rules, clock = Log(), Rules(), FakeClock(1_000_000)
    delivering = DeliveryState(readers=rules, clock=clock, state_of=lambda stored: stored.version)
    return World(log, rules, clock, Hub(log=log, delivering=delivering, max_watches=max_watches))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = make_world()
    yield made
    made.hub.close()


async def sequence_of(queue: SubscriberQueue) -> int:
    item = await queue.next()
    assert isinstance(item, Notification), item
    return item.sequence


async def ended(queue: SubscriberQueue) -> EndReason:
    item = await queue.next()
    assert isinstance(item, WatchEnded), item
    return item.ending


async def until(condition: Callable[[], bool]) -> None:
    """Let the other tasks run until something is so."""
    while not condition():  # noqa: ASYNC110 - it comes of the tasks that run meanwhile
        await asyncio.sleep(0)


# --- what is heard -----------------------------------------------------------------------------


async def test_every_change_since_the_watch_began_is_heard_once_in_order(world: World) -> None:
    """N-19."""
    world.log.add(X)
    _, queue = await world.watch(X)
    sequences = [world.log.add(X) for _ in range(3 * history.PAGE)]
    assert [await sequence_of(queue) for _ in sequences] == sequences
    assert world.log.most_read == history.PAGE


async def test_a_watch_begins_with_the_change_after_its_boundary(world: World) -> None:
    """What came before can be read from the log without a gap, whatever happens meanwhile."""
    _, first = await world.watch(X)
    watching = asyncio.create_task(world.watch(X, BOB))
    for _ in range(20):
        world.log.add(X)
        await asyncio.sleep(0)
    watch, queue = await watching
    assert watch.since > 0
    last = world.log.add(X)
    assert await sequence_of(queue) == watch.since + 1
    heard = [await sequence_of(first) for _ in range(last)]
    assert heard == list(range(1, last + 1))


async def test_the_boundary_is_never_behind_what_was_handed_over(world: World) -> None:
    """Asked while a change is handed over, it is asked again: nobody would hear of that change."""
    _, first = await world.watch(X)
    world.log.slow = asyncio.Event()
    watching = asyncio.create_task(world.watch(X, BOB))
    await until(lambda: world.log.asked)
    handed_over = world.log.add(X)
    assert await sequence_of(first) == handed_over
    world.log.slow.set()
    watch, queue = await watching
    assert watch.since == handed_over
    added = world.log.add(X)
    assert await sequence_of(queue) == added


async def test_each_receiver_gets_its_own_topics_only(world: World) -> None:
    _, of_x = await world.watch(X)
    _, of_container = await world.watch(CONTAINER)
    created = world.log.add(Y, records.ChangeType.CREATE)
    updated = world.log.add(X)
    assert await sequence_of(of_x) == updated
    heard = [await of_container.next() for _ in range(2)]
    assert [each.activity for each in heard if isinstance(each, Notification)] == [
        Activity.ADD,
        Activity.TOUCH,
    ]
    assert [each.sequence for each in heard if isinstance(each, Notification)] == [created, updated]


async def test_a_notice_carries_the_state_but_of_what_is_deleted(world: World) -> None:
    """N-14, N-16."""
    _, queue = await world.watch(X)
    world.log.add(X)
    world.log.add(X, records.ChangeType.DELETE)
    states = []
    for _ in range(2):
        item = await queue.next()
        assert isinstance(item, Notification)
        states.append(item.state)
    assert states == ["now", None]


async def test_a_closed_watch_gets_nothing_and_others_continue(world: World) -> None:
    watch, closed = await world.watch(X)
    _, other = await world.watch(X)
    watch.close()
    watch.close()
    last = world.log.add(X)
    assert await sequence_of(other) == last
    closed.put("nothing came")
    assert await closed.next() == "nothing came"


async def test_a_watch_that_is_closed_while_others_hear_of_a_change_hears_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests come first while many hear, and one of them may be to unsubscribe."""
    monkeypatch.setattr(deliveries, "_SENDS_AT_ONCE", 1)
    opened = [await world.watch(X) for _ in range(10)]
    heard: list[QueueItem] = []

    def hear(item: QueueItem) -> bool:
        heard.append(item)
        return True

    reading = [asyncio.create_task(queue.next()) for _, queue in opened]
    await asyncio.sleep(0)
    for _, queue in opened:
        queue.hand_over = hear
    world.log.add(X)
    await until(lambda: bool(heard))
    for watch, _ in opened:
        watch.close()
    told = len(heard)
    for _ in range(100):
        await asyncio.sleep(0)
    assert told == len(heard) < len(opened)
    for each in reading:
        each.cancel()


# --- who may hear ------------------------------------------------------------------------------


async def test_agents_without_read_access_cannot_watch(world: World) -> None:
    """N-30."""
    for _ in range(200):  # which does not count against the limit
        with pytest.raises(AccessDenied):
            await world.hub.watch(X, ALICE, SubscriberQueue(capacity=1))
    assert world.log.signals == set()
    await world.watch(X)


async def test_a_right_that_is_lost_ends_the_watch_at_the_next_change(world: World) -> None:
    """N-30, L-10."""
    watch, queue = await world.watch(X)
    _, of_bob = await world.watch(X, BOB)
    world.rules.allowed.discard((X, ALICE))
    last = world.log.add(X)
    assert await ended(queue) is EndReason.REVOKED
    assert not watch.is_open
    assert await sequence_of(of_bob) == last
    world.rules.allowed.add((X, ALICE))
    added = world.log.add(X)
    assert await sequence_of(of_bob) == added
    queue.put("nothing came")
    assert await queue.next() == "nothing came"


async def test_rules_that_cannot_be_found_out_now_silence_and_do_not_end(world: World) -> None:
    _, queue = await world.watch(X)
    _, of_container = await world.watch(CONTAINER, BOB)
    world.rules.allowed.discard((X, ALICE))
    world.rules.unsure = True
    silenced = world.log.add(X)
    assert await sequence_of(of_container) == silenced
    world.rules.allowed.add((X, ALICE))
    added = world.log.add(X)
    assert await sequence_of(queue) == added > silenced


async def test_a_credential_that_expires_ends_the_watch(world: World) -> None:
    _, queue = await world.watch(X, agent("alice", expires_at_s=1010))
    world.clock.time_ms = 1_009_000
    added = world.log.add(X)
    assert await sequence_of(queue) == added
    world.clock.time_ms = 1_010_000
    world.log.add(X)
    assert await ended(queue) is EndReason.EXPIRED


async def test_the_rules_are_evaluated_once_per_identity_and_change(world: World) -> None:
    boxes = [(await world.watch(X))[1] for _ in range(30)]
    boxes += [(await world.watch(X, agent("alice", expires_at_s=9999)))[1] for _ in range(30)]
    world.log.add(X)
    for queue in boxes:
        assert await sequence_of(queue) == 1
    assert len(world.rules.asked) == 1


async def test_public_resources_need_no_check_of_individual_agents(world: World) -> None:
    world.rules.allowed.add((X, PUBLIC))
    boxes = [(await world.watch(X, who))[1] for who in (ALICE, BOB, PUBLIC)]
    world.log.add(X)
    for queue in boxes:
        assert await sequence_of(queue) == 1
    assert world.rules.asked == []


async def test_rules_that_take_long_hold_up_their_own_topic_only(world: World) -> None:
    _, of_x = await world.watch(X)
    _, of_y = await world.watch(Y)
    world.rules.gates[X] = asyncio.Event()
    first, second, third = world.log.add(X), world.log.add(Y), world.log.add(X)
    assert await sequence_of(of_y) == second
    world.rules.gates[X].set()
    assert [await sequence_of(of_x), await sequence_of(of_x)] == [first, third]


# --- trouble and limits ------------------------------------------------------------------------


async def test_trouble_with_the_rules_delays_and_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "RETRY_S", 0)
    _, queue = await world.watch(X)
    world.rules.trouble = True
    sequences = [world.log.add(X), world.log.add(X)]
    for _ in range(10):
        await asyncio.sleep(0)
    world.rules.trouble = False
    assert [await sequence_of(queue) for _ in sequences] == sequences


async def test_trouble_with_the_log_delays_and_loses_nothing(world: World) -> None:
    _, queue = await world.watch(X)
    world.log.broken = True
    world.log.add(X)
    for _ in range(10):
        await asyncio.sleep(0)
    world.log.broken = False
    world.log.add(X)
    assert [await sequence_of(queue), await sequence_of(queue)] == [1, 2]


async def test_an_unreadable_log_is_reported_to_subscribers(world: World) -> None:
    world.log.broken = True
    with pytest.raises(StorageError):
        await world.watch(X)
    world.log.broken = False
    _, queue = await world.watch(X)
    added = world.log.add(X)
    assert await sequence_of(queue) == added


async def test_a_slow_receiver_is_closed_and_others_continue(world: World) -> None:
    """N-31."""
    watch, slow = await world.watch(X, capacity=2)
    _, other = await world.watch(X, BOB)
    sequences = [world.log.add(X) for _ in range(3)]
    assert [await sequence_of(other) for _ in sequences] == sequences
    assert slow.ending is EndReason.SLOW
    assert not watch.is_open


async def test_a_topic_whose_rules_never_come_ends_when_too_much_waits(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deliveries, "MAX_PENDING", 5)
    _, queue = await world.watch(X)
    world.rules.gates[X] = asyncio.Event()
    for _ in range(7):
        world.log.add(X)
    with pytest.raises(QueueClosed) as closed:
        await queue.next()
    assert closed.value.ending is EndReason.SLOW
    world.rules.gates[X].set()
    _, later = await world.watch(X)
    sequence = world.log.add(X)
    assert await sequence_of(later) == sequence
    assert not caplog.records


async def test_no_more_is_watched_than_the_limit() -> None:
    """N-31."""
    world = make_world(max_watches=2)
    watch, _ = await world.watch(X)
    await world.watch(Y)
    with pytest.raises(Overloaded):
        await world.watch(X)
    watch.close()
    await world.watch(X)
    world.hub.close()


# --- life --------------------------------------------------------------------------------------


async def test_nothing_is_read_while_nobody_watches(world: World) -> None:
    watch, _ = await world.watch(X)
    other, _ = await world.watch(Y)
    watch.close()
    assert len(world.log.signals) == 1
    other.close()
    await until(lambda: not world.log.signals)
    world.log.add(X)
    _, queue = await world.watch(X)
    added = world.log.add(X)
    assert await sequence_of(queue) == added == 2


async def test_a_mailbox_that_closes_takes_its_watches_along(world: World) -> None:
    watch, queue = await world.watch(X)
    queue.close()
    assert not watch.is_open
    await until(lambda: not world.log.signals)


async def test_a_watch_for_a_closed_mailbox_is_closed_at_once(world: World) -> None:
    queue = SubscriberQueue(capacity=1)
    queue.close()
    world.rules.allowed.add((X, ALICE))
    watch = await world.hub.watch(X, ALICE, queue)
    assert not watch.is_open


async def test_a_hub_that_closes_ends_every_watch_and_takes_no_more(world: World) -> None:
    _, queue = await world.watch(X)
    world.hub.close()
    with pytest.raises(QueueClosed) as closed:
        await queue.next()
    assert closed.value.ending is EndReason.STOPPING
    with pytest.raises(Overloaded):
        await world.watch(X)


# --- rules that end -----------------------------------------------------------------------------


async def test_a_watch_ends_when_the_rules_say(world: World) -> None:
    """Nothing has to change for that."""
    world.rules.until_ms = world.clock.now_ms() + 50
    watch, queue = await world.watch(X)
    world.rules.allowed.clear()
    world.rules.until_ms = None
    world.clock.advance(0.05)
    async with asyncio.timeout(60):
        assert await queue.next() == WatchEnded(X, EndReason.REVOKED)
    assert not watch.is_open
    assert world.hub.watch_count == 0


async def test_a_watch_goes_on_while_other_rules_grant_it(world: World) -> None:
    """And is checked again when those end."""
    world.rules.until_ms = world.clock.now_ms()
    watch, queue = await world.watch(X)
    world.rules.until_ms = world.clock.now_ms() + 50
    await asyncio.sleep(0.01)
    assert watch.is_open
    world.rules.allowed.clear()
    world.clock.advance(0.05)
    async with asyncio.timeout(60):
        assert await queue.next() == WatchEnded(X, EndReason.REVOKED)


async def test_a_notification_tells_when_to_check_again(world: World) -> None:
    """The rules have got an end since the watch began."""
    _, queue = await world.watch(X)
    world.rules.until_ms = world.clock.now_ms() + 20
    world.log.add(X)
    async with asyncio.timeout(60):
        assert isinstance(await queue.next(), Notification)
        world.rules.allowed.clear()
        world.rules.until_ms = None
        world.clock.advance(0.02)
        assert await queue.next() == WatchEnded(X, EndReason.REVOKED)


async def test_applications_of_one_person_are_told_apart(world: World) -> None:
    """What the rules let one of them read, they may not let the other."""
    one, other = (
        Subscriber(
            Identity("https://alice.example/#me", AuthenticationMethod.DPOP, client_id=client)
        )
        for client in ("https://one.example", "https://other.example")
    )
    _, heard = await world.watch(X, one)
    _, refused = await world.watch(X, other)
    world.rules.allowed.discard((X, other))
    world.log.add(X)
    async with asyncio.timeout(60):
        assert isinstance(await heard.next(), Notification)
        assert await refused.next() == WatchEnded(X, EndReason.REVOKED)
