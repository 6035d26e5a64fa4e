"""Stores channels and their subscribers, so that they survive a restart (N-10, N-31).

The URL of a channel contains a key that nobody can guess: only those who have the URL may receive
notifications, read the description and unsubscribe. The key is stored as its hash, so that a copy
of the database gives no access to a channel.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.errors import Overloaded, PodsteadError, RateLimited
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.messages import counted
from podstead.notifications import channel_documents
from podstead.notifications.answers import MAX_LIVE_QUERIES, is_live_query
from podstead.notifications.channel_types import ChannelType
from podstead.notifications.listening import Terms
from podstead.notifications.readers import Subscriber
from podstead.storage.record_store import RecordKind, RecordStore, Versioned, secret_key
from podstead.storage.records import Record

KEY_BYTES: Final = 16
"""The number of random bytes in the key of a channel."""
_NOTED_MS: Final = 3600 * 1000
"""The minimum time between two records of the use of one channel."""
_SAMPLE: Final = 200
_MAX_LOOKED_THROUGH: Final = 1000


class StoredAgent(msgspec.Struct, frozen=True):
    """Who subscribed: the part of an :class:`Identity` that access rules use (N-30)."""

    agent: str
    method: str
    aliases: tuple[str, ...] = ()
    issuer: str | None = None
    client_id: str | None = None
    public_key: str | None = msgspec.field(default=None, name="nostr_key")
    token_id: str | None = None


class Channel(msgspec.Struct, frozen=True):
    """A channel. Its record's key is the hash of the key in its URL. Times are Unix milliseconds.

    ``agent`` is ``None`` for the public. ``began`` is the last sequence number of the change log
    when the channel was created. Nothing up to it is sent.
    """

    channel_type: str
    topic: str
    media_type: str
    made_ms: int
    end_ms: int
    began: int
    agent: StoredAgent | None = None
    origin: str | None = None
    start_ms: int | None = None
    rate_ms: int | None = None
    state: str | None = None
    send_to: str | None = None
    last_used_ms: int | None = None
    """When a receiver last connected to a channel of the public; ``None`` if none has."""


CHANNELS: Final = RecordKind("notification-channel", Channel)


class TooManyChannels(RateLimited):
    """The agent has the maximum number of channels; one ends in ``retry_after_s`` seconds."""

    def __init__(self, *, maximum: int, retry_after_s: int) -> None:
        super().__init__(
            f"An agent may have {counted(maximum, 'channel')} at a time: unsubscribe from one, or "
            f"wait until one ends in {counted(retry_after_s, 'second')}",
            retry_after_s=retry_after_s,
        )


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """The maximum numbers of channels; 0 means no limit (N-31)."""

    per_agent: int
    in_all: int


@dataclass(frozen=True, slots=True)
class OpenedChannel:
    """A channel and the key in its URL."""

    key: str
    channel: Channel


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    """A channel whose messages its receiver does not accept. ``given_up`` is the reason why nothing
    is sent any more, empty if it is tried again."""

    topic: str
    host: str
    failures: int
    since_ms: int
    given_up: str


@dataclass(frozen=True, slots=True)
class DeliveryFailures:
    """How many channels of a type are tried again and how many are not, and some of them."""

    retrying: int
    given_up: int
    some: Sequence[FailedDelivery]


class ChannelHandler:
    """What the server does for channels of one type. Without a class derived from this one, the
    type is one whose receivers connect to the server."""

    sender: str | None = None
    """The WebID that sends the messages, if the server pushes them."""

    def __init__(self, channel_type: ChannelType) -> None:
        self.type = channel_type

    async def check(self, request: channel_documents.ChannelRequest) -> None:
        """Refuse a channel that cannot be served. Raises Unprocessable."""

    def opened(self, key: str, channel: Channel, owner: str) -> Sequence[Record]:  # noqa: ARG002
        """What is stored with a new channel, besides its record with this key and owner."""
        return ()

    def closed(self, key: str) -> Sequence[Record]:  # noqa: ARG002
        """What is removed with a channel, besides its record."""
        return ()

    async def given_up(self, key: str) -> str | None:  # noqa: ARG002
        """Why nothing is sent any more on a channel; ``None`` if it is. Raises StorageError."""
        return None

    async def failures(self) -> DeliveryFailures | None:
        """The channels whose receivers accept no messages, if the server pushes them. Raises
        StorageError."""
        return None

    def start(self) -> None:
        """Begin to send messages; the store is open."""

    async def stop(self) -> None:
        """End that, because the worker stops. Idempotent."""


class Channels:
    """The channels of all workers."""

    def __init__(
        self, *, records: RecordStore, limits: ChannelLimits, handlers: Iterable[ChannelHandler]
    ) -> None:
        """``handlers`` are those of all channel types."""
        self.handlers: Mapping[str, ChannelHandler] = {each.type.name: each for each in handlers}
        self._records = records
        self._limits = limits

    async def open(
        self,
        request: channel_documents.ChannelRequest,
        subscriber: Subscriber,
        *,
        counted_as: str,
        began: int,
    ) -> OpenedChannel:
        """Create a channel. The caller has checked that the subscriber may read the topic.

        Channels with the same ``counted_as`` are counted together. Concurrent requests may exceed
        the limits by their number. A channel of the public lasts at most a day, and at the limit a
        new one replaces an old one, preferably one that no receiver has connected to.

        Raises Unprocessable for a channel that ends before it begins, TooManyChannels and
        Overloaded.
        """
        now_ms = self._records.now_ms()
        is_public = subscriber.agent is None
        max_lifetime_ms = (
            channel_documents.MAX_ANONYMOUS_LIFETIME_MS
            if is_public
            else channel_documents.MAX_LIFETIME_MS
        )
        request = request.within(now_ms=now_ms, max_lifetime_ms=max_lifetime_ms)
        surplus = await self._surplus(counted_as, is_public=is_public, now_ms=now_ms)
        key = self._records.randomness.token_hex(KEY_BYTES)
        channel = _channel(request, subscriber, made_ms=now_ms, began=began)
        stored_key = secret_key(key)
        handler = self.handlers[channel.channel_type]
        records = [
            CHANNELS.put(stored_key, channel, owner=counted_as, expires_ms=channel.end_ms),
            *map(CHANNELS.drop, surplus),
            *handler.opened(stored_key, channel, counted_as),
        ]
        await self._records.commit(records)
        return OpenedChannel(key, channel)

    async def check_live_queries(self, counted_as: str) -> None:
        """Check that there may be another channel about a live query. Raises TooManyChannels."""
        own = await self._records.of_owner(CHANNELS, counted_as, limit=_MAX_LOOKED_THROUGH)
        ends_ms = sorted(each.value.end_ms for each in own if is_live_query(each.value.topic))
        if len(ends_ms) >= MAX_LIVE_QUERIES:
            retry_after_s = max(1, (ends_ms[0] - self._records.now_ms()) // 1000)
            raise TooManyChannels(maximum=MAX_LIVE_QUERIES, retry_after_s=retry_after_s)

    async def find(self, key: str) -> Channel | None:
        """The channel with this key, ``None`` if there is none or it has ended."""
        return await self._records.value(CHANNELS, secret_key(key))

    async def note_use(self, key: str) -> None:
        """Record that a receiver has connected to a channel of the public, since unused channels
        are replaced first. Raises nothing: the receiver is served in any case."""
        now_ms = self._records.now_ms()
        with contextlib.suppress(PodsteadError):
            stored = await self._records.read(CHANNELS, secret_key(key))
            if stored is None or stored.value.agent is not None:
                return
            noted_ms = stored.value.last_used_ms
            if noted_ms is not None and now_ms - noted_ms < _NOTED_MS:
                return
            used = msgspec.structs.replace(stored.value, last_used_ms=now_ms)
            await self._records.try_commit([CHANNELS.replace(stored, used)], [stored.unchanged])

    async def close(self, key: str, channel: Channel) -> None:
        """Remove the channel that was found with this key."""
        stored_key = secret_key(key)
        closed = self.handlers[channel.channel_type].closed(stored_key)
        await self._records.commit([CHANNELS.drop(stored_key), *closed])

    async def given_up(self, key: str, channel: Channel) -> str | None:
        """The reason why the server no longer sends on a channel, ``None`` if it does."""
        return await self.handlers[channel.channel_type].given_up(secret_key(key))

    async def _surplus(self, counted_as: str, *, is_public: bool, now_ms: int) -> set[str]:
        """The keys of the channels that a new one replaces. Raises TooManyChannels."""
        per_agent, in_all = self._limits.per_agent, self._limits.in_all
        surplus: set[str] = set()
        if per_agent:
            own = await self._records.of_owner(CHANNELS, counted_as, limit=2 * per_agent)
            too_many = len(own) + 1 - per_agent
            if too_many > 0 and not is_public:
                first_end_ms = min(stored.value.end_ms for stored in own)
                retry_after_s = max(1, (first_end_ms - now_ms) // 1000)
                raise TooManyChannels(maximum=per_agent, retry_after_s=retry_after_s)
            if too_many > 0:
                surplus.update(stored.key for stored in sorted(own, key=_last_used)[:too_many])
        if (
            in_all
            and await CHANNELS.count(self._records.store, at_most=in_all) >= in_all
            and not surplus
        ):
            surplus.add(await self._any_of_the_public(now_ms))
        return surplus

    async def _any_of_the_public(self, now_ms: int) -> str:
        """The key of the least recently used channel in a random sample of those of the public.
        Raises Overloaded if there is none."""
        start = self._records.randomness.token_hex(KEY_BYTES)
        some = await CHANNELS.sample(self._records.store, start=start, now_ms=now_ms, limit=_SAMPLE)
        of_the_public = [stored for stored in some if stored.value.agent is None]
        if not of_the_public:
            raise Overloaded("The server has reached its limit of notification channels")
        return min(of_the_public, key=_last_used).key


def _last_used(stored: Versioned[Channel]) -> tuple[bool, int]:
    """Sort key for replacing channels: unused ones come first."""
    used_ms = stored.value.last_used_ms
    return used_ms is not None, stored.value.made_ms if used_ms is None else used_ms


def _channel(
    request: channel_documents.ChannelRequest, subscriber: Subscriber, *, made_ms: int, began: int
) -> Channel:
    return Channel(
        channel_type=request.channel_type.name,
        topic=request.topic,
        media_type=request.media_type,
        made_ms=made_ms,
        end_ms=request.end_ms or made_ms,
        began=began,
        agent=_stored(subscriber.agent),
        origin=subscriber.origin,
        start_ms=request.start_ms,
        rate_ms=request.rate_ms,
        state=request.state,
        send_to=request.send_to,
    )


def _stored(agent: Identity | None) -> StoredAgent | None:
    """The identity without its expiry: a channel outlives the expiry of a token, but not its
    revocation."""
    if agent is None:
        return None
    return StoredAgent(
        agent=agent.iri,
        method=agent.method.value,
        aliases=tuple(sorted(agent.aliases)),
        issuer=agent.issuer,
        client_id=agent.client_id,
        public_key=agent.public_key,
        token_id=agent.simple_token_id,
    )


def subscriber_of(channel: Channel) -> Subscriber:
    """Who subscribed, in the form that access checks use (N-30)."""
    return Subscriber(_agent(channel.agent), channel.origin)


def terms_of(channel: Channel) -> Terms:
    """The terms by which the receivers of a channel get notifications."""
    return Terms(
        topic=ResourcePath(channel.topic),
        subscriber=subscriber_of(channel),
        start_ms=channel.start_ms,
        end_ms=channel.end_ms,
        rate_ms=channel.rate_ms,
        state=channel.state,
    )


def _agent(stored: StoredAgent | None) -> Identity | None:
    if stored is None:
        return None
    return Identity(
        iri=stored.agent,
        method=AuthenticationMethod(stored.method),
        aliases=frozenset(stored.aliases),
        issuer=stored.issuer,
        client_id=stored.client_id,
        public_key=stored.public_key,
        token_id=stored.token_id,
    )
