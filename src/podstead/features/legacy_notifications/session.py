"""One socket of solid-0.1: carries out what its client requests, and what is sent to it.

``protocol.py`` knows the lines. Replies and notifications are sent in the order of one queue, so a
client gets the ``ack`` of a URL before the first ``pub``.

A subscription starts when its line arrives, not when it is granted: clients write to the resource
at once, without waiting for the ``ack``. So the number of the newest change is noted for each
line on arrival, and what happened between then and the decision is read from the change log once
the subscription is granted. One task reads the lines, so that each is noted without delay, and
another one executes them in their order.

With several workers, a busy worker may read a line late, after another worker has committed a
write that the client sent after the line. Nobody can tell how late, so the changes of the last
moments before the line was read are sent as well: with one line too many a client fetches the
resource once more, with one too few it keeps an old state. What happened before the socket was
opened, or before a change that the client has already been notified of, is not sent.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

from podstead.authn.authenticate import RequestCredentials
from podstead.core.background import cancel_and_wait
from podstead.core.clock import Clock
from podstead.core.errors import RequestRefused, ServerTrouble, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.features.legacy_notifications import protocol
from podstead.notifications.deliveries import QueueItem, SubscriberQueue, Watch, WatchEnded
from podstead.notifications.history import History
from podstead.notifications.hub import Hub
from podstead.notifications.messages import Notification
from podstead.notifications.readers import Subscriber
from podstead.web.authentication import LimitedAuthentication
from podstead.web.limits import address_key
from podstead.web.websocket import SocketClosed, WebSocket

logger = logging.getLogger("podstead.web")

_MAX_MESSAGE_CHARACTERS = 16 * 1024
_MAX_PENDING_LINES = 256
_MAX_MISSED_CHANGES = 10_000
"""How many changes of the whole server are searched for one subscription."""
_LATE_MS = 500
"""How late a worker may read a line, if other workers commit writes."""
_TROUBLE = "error: The server cannot take this on at the moment"


@dataclass(frozen=True, slots=True)
class LineAuthentication:
    """Determines who sends a line: whoever opened the socket, unless a credential precedes it."""

    authentication: LimitedAuthentication
    _: KW_ONLY
    base_url: str
    opener: Subscriber
    client_address: str

    async def subscriber(self, asked: protocol.Subscribe) -> Subscriber:
        """Who subscribes to the topic. Raises RequestRefused, ServerTrouble."""
        if asked.credential is None:
            return self.opener
        agent = await self.authentication.authenticate(
            self._credentials(asked.url, asked.credential), client_address=self.client_address
        )
        return replace(self.opener, agent=agent)

    def _credentials(self, url: str, credential: protocol.LineCredential) -> RequestCredentials:
        """The credentials that a GET of the URL would present: a proof names method and URL."""
        absolute = f"{self.base_url}{url}" if url.startswith("/") else url
        proof = credential.proof
        return RequestCredentials(
            authorization=(credential.authorization.encode(),),
            proofs=() if proof is None else (proof.encode(),),
            method="GET",
            url=absolute.partition("#")[0].encode().decode("latin-1"),
            client_address=address_key(self.client_address),
        )


class ArrivalTimes:
    """Determines after which change each line of a socket arrived."""

    def __init__(self, hub: Hub, clock: Clock, opened_after: int | None) -> None:
        """``opened_after`` is the newest change when the socket was opened, if there are other
        workers that may commit changes; else ``None``."""
        self._hub = hub
        self._clock = clock
        self._opened_after = opened_after
        self._sent = 0

    def note_sent(self, notification: Notification) -> None:
        """Note that the client is notified of this, and needs nothing that happened before it."""
        self._sent = max(self._sent, notification.sequence)

    async def arrived_after(self) -> int | None:
        """For a line that has just been read; ``None`` if the store fails, which the decision about
        the subscription will find out, too."""
        try:
            # A single worker reads a line before it commits a write that the client sends later.
            if self._opened_after is None:
                return await self._hub.newest_sequence()
            then = await self._hub.newest_sequence_at(self._clock.now_ms() - _LATE_MS)
        except StorageError:
            return None
        return max(then, self._opened_after, self._sent)


class UpdatesSession:
    """Carries out what the client of one socket requests."""

    def __init__(
        self,
        socket: WebSocket,
        queue: SubscriberQueue,
        conversation: protocol.Conversation,
        *,
        hub: Hub,
        history: History,
        sender: LineAuthentication,
        arrivals: ArrivalTimes,
    ) -> None:
        self._arrivals = arrivals
        self._socket = socket
        self._queue = queue
        self._conversation = conversation
        self._hub = hub
        self._history = history
        self._sender = sender
        self._lines: asyncio.Queue[tuple[str | protocol.TextReply, int | None]]
        self._lines = asyncio.Queue(_MAX_PENDING_LINES)
        self._begun_after: int | None = None
        """The arrival of the first line of a subscription with a credential."""
        self._watches: dict[ResourcePath, Watch] = {}
        self._former: dict[ResourcePath, Watch] = {}
        """Watches that have been replaced, until their last notifications are delivered."""

    def lines_of(self, item: QueueItem) -> list[str]:
        """The lines to send for an item of the queue."""
        if isinstance(item, Notification):
            self._arrivals.note_sent(item)
            if self._former:
                self._close_former(item)
            return self._conversation.publish(item)
        if not isinstance(item, WatchEnded):
            return [item]
        if self._is_watching(item.topic):  # a newer watch has been granted meanwhile
            return []
        self._watches.pop(item.topic, None)
        return self._conversation.end(item.topic)

    async def run(self) -> None:
        """Carry out the lines of the client until it disconnects."""
        doing = asyncio.create_task(self._do_lines())
        # However this task ends, the socket must not stay open while its lines are ignored.
        doing.add_done_callback(lambda _: self._queue.close())
        try:
            await self._read_lines()
        except SocketClosed:
            return
        except Exception:
            logger.exception("A socket ended with an unexpected error")
        finally:
            await cancel_and_wait([doing])

    async def _read_lines(self) -> None:
        while True:
            message = await self._socket.receive()
            # Before anything else is awaited, in particular the space in the queue below.
            arrived_after = await self._arrivals.arrived_after()
            for line in _lines_in(message):
                await self._lines.put((line, arrived_after))

    async def _do_lines(self) -> None:
        try:
            while True:
                line, arrived_after = await self._lines.get()
                await self._obey(line, arrived_after)
        except Exception:
            logger.exception("A socket ended with an unexpected error")

    async def _obey(self, line: str | protocol.TextReply, arrived_after: int | None) -> None:
        if not self._conversation.has_credential:
            self._begun_after = arrived_after
        asked = line if isinstance(line, protocol.TextReply) else self._conversation.read(line)
        if isinstance(asked, protocol.TextReply):
            self._queue.put(asked.line)
        elif isinstance(asked, protocol.Subscribe):
            await self._subscribe(asked, self._begun_after)
        elif isinstance(asked, protocol.Forget):
            for watches in (self._watches, self._former):
                watch = watches.pop(asked.topic, None)
                if watch is not None:
                    watch.close()

    async def _subscribe(self, asked: protocol.Subscribe, arrived_after: int | None) -> None:
        topic = asked.topic
        is_new = not self._is_watching(topic)
        watch = None
        # Another URL of the same topic needs no new decision. A credential may be that of another
        # agent, or a newer token of the same one.
        if is_new or asked.credential is not None:
            try:
                subscriber = await self._sender.subscriber(asked)
                watch = await self._hub.watch(topic, subscriber, self._queue)
            except RequestRefused:
                self._queue.put(self._conversation.refuse(asked))
                return
            except ServerTrouble:
                self._queue.put(_TROUBLE)
                return
            self._note(watch)
        # Nothing has been awaited since the watch began, so the ``ack`` comes before the first
        # notification of it.
        self._queue.put(self._conversation.accept(asked))
        if watch is not None and is_new and arrived_after is not None:
            await self._send_missed(watch, arrived_after)

    async def _send_missed(self, watch: Watch, arrived_after: int) -> None:
        """Send what happened between the arrival of a line and the start of its watch."""
        if arrived_after >= watch.since:
            return
        arrived_after = max(arrived_after, watch.since - _MAX_MISSED_CHANGES)
        try:
            missed = [
                notification
                async for notification in self._history.read(
                    arrived_after, watch.since, topic=watch.topic, subscriber=watch.subscriber
                )
            ]
        except ServerTrouble:
            # A subscription with a gap would leave the client with an old state: better none.
            watch.close()
            for line in (_TROUBLE, *self._conversation.end(watch.topic)):
                self._queue.put(line)
            return
        # Nothing is awaited in between: the client gets one line for each request, so the
        # notifications of one request must be adjacent.
        for notification in missed:
            self._queue.put(notification)

    def _is_watching(self, topic: ResourcePath) -> bool:
        return topic in self._watches and self._watches[topic].is_open

    def _note(self, watch: Watch) -> None:
        """Use this watch from now on, and the previous one until its notifications are sent."""
        topic = watch.topic
        former = self._former.pop(topic, None)
        if former is not None:
            former.close()
        if self._is_watching(topic):
            self._former[topic] = self._watches[topic]
        self._watches[topic] = watch

    def _close_former(self, notification: Notification) -> None:
        former = self._former.get(notification.topic)
        # The new watch delivers everything after ``since``, so the one that it replaced is needed
        # only for changes up to that.
        if former is not None and notification.sequence > self._watches[notification.topic].since:
            former.close()
            del self._former[notification.topic]


def _lines_in(message: str | bytes) -> Sequence[str | protocol.TextReply]:
    """The lines of a message, or the reply to one that has none."""
    if len(message) > _MAX_MESSAGE_CHARACTERS:
        return [protocol.TextReply("error: Message too long")]
    if isinstance(message, bytes):
        return [protocol.TextReply("warning Unrecognized message (binary)")]
    return message.splitlines() or [""]
