"""Sends messages to one webhook in order, each until the receiver accepts it (N-21).

There is no queue besides the change log: the record of a channel states only the last change that
it has been sent. So nothing is lost when a worker dies. A message whose response was lost is sent
twice, with the same id.
"""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.core.errors import AccessDenied, NotAuthenticated, OutboundError, Unprocessable
from podstead.core.request_context import set_requester
from podstead.features.webhooks.records import GONE, WEBHOOKS, DeliveryAttempts, Webhook
from podstead.features.webhooks.sender import Sender
from podstead.notifications.answers import is_live_query
from podstead.notifications.channels import CHANNELS, Channel, subscriber_of, terms_of
from podstead.notifications.deliveries import EndReason
from podstead.notifications.history import History
from podstead.notifications.listening import CaughtUp, Ended, Heard, Idle, Listeners
from podstead.notifications.messages import Messages, Notification
from podstead.storage.record_store import Lease, RecordStore, Versioned

logger = logging.getLogger("podstead.notifications")

SENDING_MS: Final = 12_000
"""How long sending one message may take. A worker whose lease ends earlier does not begin."""
_LEASE_S: Final = 1.0
_QUIET_LONG_S: Final = 900.0
"""After this time without a message, the position in the change log is recorded."""


@dataclass(frozen=True, slots=True)
class SendingState:
    """The state that sending on all channels shares."""

    records: RecordStore
    listeners: Listeners
    history: History
    messages: Messages
    outgoing: ForeignDocuments
    sender: Sender
    lease: Lease


class ChannelSender:
    """Sends the messages of one channel while it listens to its topic."""

    def __init__(self, key: str, sending: SendingState, attempts: set[asyncio.Task[None]]) -> None:
        self._key = key
        self._with = sending
        self._attempts = attempts
        self._taken = self._over = False

    async def run(self) -> bool:
        """Send messages until listening ends; True if the caller should continue with a new line.
        Raises ServerTrouble."""
        if not await self._find():
            return False
        agent = self._channel.value.agent
        set_requester(f"webhooks of {'the public' if agent is None else agent.agent}")
        terms = terms_of(self._channel.value)
        if self._webhook.greeted:
            terms = replace(terms, state=self._webhook.state)
        try:
            listening = await self._with.listeners.listen(terms, after=self._webhook.position)
        except (NotAuthenticated, AccessDenied, Unprocessable):  # the last: it is none any more
            return await self._give_up("the topic may not be read any more")
        quiet_s = 0.0
        async with aclosing(listening.heard()) as heard:
            async for each in heard:
                quiet_s = quiet_s + each.after_s if isinstance(each, Idle) else 0.0
                if isinstance(each, Ended):
                    return await self._ended(each.ending)
                if quiet_s >= _QUIET_LONG_S:
                    return True
                if not await self._take(each):
                    return False
        return True

    async def _find(self) -> bool:
        """Look up the channel; False if nothing is to be sent on it any more."""
        channel = await self._with.records.read(CHANNELS, self._key)
        webhook = await self._with.records.read(WEBHOOKS, self._key)
        if channel is None or webhook is None or webhook.value.given_up is not None:
            return False
        self._channel, self._webhook = channel, webhook.value
        return True

    async def _take(self, heard: Heard) -> bool:
        """Process what the listener returned; False if nothing is to be sent any more."""
        if isinstance(heard, Notification):
            return await self._told(heard)
        if isinstance(heard, CaughtUp):
            return await self._note(position=heard.sequence, greeted=True)
        return True

    async def _ended(self, ending: EndReason | None) -> bool:
        """Whether a new line continues where this one ended."""
        if ending is EndReason.REVOKED:
            return await self._give_up("the topic may not be read any more")
        # Missed notifications are read from the log.
        return ending in (EndReason.SLOW, EndReason.FAILED)

    async def _told(self, notification: Notification) -> bool:
        """Send a message until it is accepted; False if nothing is to be sent any more."""
        self._taken = False
        while not self._taken:
            await self._wait()
            # A channel that was closed sends nothing more, and the next look for channels may come
            # only in a second.
            if await self._with.records.read(CHANNELS, self._key) is None:
                return False
            if self._webhook.failures and not await self._may_still_hear(notification):
                return await self._note(position=notification.sequence, attempts=DeliveryAttempts())
            # Sending and recording the result go together, even if this task is cancelled.
            attempt = asyncio.create_task(self._attempt(notification))
            self._attempts.add(attempt)
            attempt.add_done_callback(self._attempts.discard)
            await asyncio.shield(attempt)
            if self._over:
                return False
        return True

    async def _wait(self) -> None:
        """Wait until the next attempt is due and the lease certainly lasts long enough for it."""
        due_s = (self._webhook.next_ms - self._with.records.now_ms()) / 1000
        if due_s > 0:
            await asyncio.sleep(due_s)
        while not self._with.lease.lasts_for(SENDING_MS):  # noqa: ASYNC110 - the clock decides
            await asyncio.sleep(_LEASE_S)

    async def _attempt(self, notification: Notification) -> None:
        status = await self._sent(notification)
        now_ms = self._with.records.now_ms()
        self._taken = status is not None and 200 <= status < 300
        if self._taken:
            going_on = await self._note(
                position=notification.sequence,
                attempts=DeliveryAttempts(),
                state=notification.state if is_live_query(notification.topic) else None,
            )
        else:
            attempts = self._webhook.attempts.failed(now_ms=now_ms)
            if status == GONE:
                going_on = await self._give_up("the receiver is gone (410)")
            elif attempts.are_enough(now_ms=now_ms):
                answer = "no answer" if status is None else f"status {status}"
                going_on = await self._give_up(f"the receiver takes no messages ({answer})")
            else:
                going_on = await self._note(attempts=attempts)
        self._over = not going_on

    async def _sent(self, notification: Notification) -> int | None:
        """The status of the receiver's response, ``None`` without a response."""
        channel = self._channel.value
        send_to = channel.send_to or ""
        content = self._with.messages.message(notification, channel.media_type)
        headers = {
            "Content-Type": channel.media_type,
            **await self._with.sender.credentials(send_to),
        }
        try:
            return await self._with.outgoing.post(send_to, content, headers)
        except OutboundError as error:
            logger.info("A webhook message could not be delivered: %s", error, extra=self._facts())
            return None

    async def _may_still_hear(self, notification: Notification) -> bool:
        return await self._with.history.may_hear(notification, subscriber_of(self._channel.value))

    async def _give_up(self, why: str) -> bool:
        """Record that nothing is sent any more; always False."""
        logger.warning("Giving up on a webhook: %s", why, extra=self._facts())
        await self._put(msgspec.structs.replace(self._webhook, given_up=why))
        return False

    async def _note(
        self,
        *,
        position: int | None = None,
        attempts: DeliveryAttempts | None = None,
        greeted: bool | None = None,
        state: str | None = None,
    ) -> bool:
        """Record the progress; False if the channel no longer exists."""
        noted = self._webhook
        if position is not None and position > noted.position:
            noted = msgspec.structs.replace(noted, position=position)
        if greeted is not None:
            noted = msgspec.structs.replace(noted, greeted=greeted)
        if state is not None:
            noted = msgspec.structs.replace(noted, state=state)
        if attempts is not None:
            noted = msgspec.structs.replace(
                noted,
                failures=attempts.failures,
                first_failed_ms=attempts.first_failed_ms,
                next_ms=attempts.next_ms,
            )
        return noted == self._webhook or await self._put(noted)

    async def _put(self, webhook: Webhook) -> bool:
        stored: Versioned[Channel] = self._channel
        self._webhook = webhook
        return await self._with.records.try_commit(
            [WEBHOOKS.put(self._key, webhook, expires_ms=stored.expires_ms)], [stored.unchanged]
        )

    def _facts(self) -> dict[str, object]:
        channel = self._channel.value
        return {"send_to": channel.send_to, "topic": channel.topic}
