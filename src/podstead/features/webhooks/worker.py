"""Sends the messages of webhooks from the worker that holds the lease (N-21).

It finds channels that other workers have created by checking the store's state mark, which costs
nothing while nothing changes. When the worker with the lease stops, another one continues at once;
when it is killed, another one continues as soon as the lease has expired.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from podstead.app.adapters.engine import key_storage
from podstead.core.background import Background, cancel_and_wait
from podstead.core.errors import OutboundError, RateLimited, ServerTrouble, Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.features import WorkerFeature
from podstead.features.webhooks import sender as webhooks_sender
from podstead.features.webhooks.delivery import ChannelSender, SendingState
from podstead.features.webhooks.records import WEBHOOKS, Webhook
from podstead.notifications import answers, channel_types, channels
from podstead.notifications.channel_documents import ChannelRequest
from podstead.storage.record_store import Lease
from podstead.storage.records import Record
from podstead.web.routes import Access, Endpoint, Route

if TYPE_CHECKING:
    from podstead.app.services import Services

logger = logging.getLogger("podstead.notifications")

LOOK_S: Final = 1.0
"""The time between two checks for new channels."""
UNFORESEEN_S: Final = 60.0
"""How long sending on a channel pauses after an unexpected error, which may well repeat."""
_STOP_S: Final = 5.0
_MAX_COUNTED: Final = 10_000
_MAX_SHOWN: Final = 100
_TROUBLE_S: Final = 5.0


class WebhooksInWorker(WorkerFeature):
    """The channel type, and the document about its sender."""

    def __init__(self, services: Services) -> None:
        settings = services.settings
        keys = webhooks_sender.SenderKeys(key_storage(settings), services.clock)
        webhooks = Webhooks(services, keys)
        self.channels = (webhooks,)
        sender = webhooks_sender.SenderEndpoint(
            web_id=webhooks.sender, issuer=settings.issuer, keys=keys
        )
        endpoints: dict[ResourcePath, Endpoint] = {webhooks_sender.SENDER: sender.get}
        if not settings.idp:  # whose discovery document refers to the same keys
            endpoints |= {
                webhooks_sender.OPENID_PATH: sender.issuer,
                webhooks_sender.JWKS_PATH: sender.key_set,
            }
        self.routes = [
            Route(path, {"GET": get, "HEAD": get}, Access.PUBLIC) for path, get in endpoints.items()
        ]


class Webhooks(channels.ChannelHandler):
    """Sends on all channels while this worker holds the lease. For one event loop."""

    sender: str

    def __init__(self, services: Services, keys: webhooks_sender.SenderKeys) -> None:
        super().__init__(channel_types.ChannelType("WebhookChannel2023", is_pushed=True))
        self.sender = f"{services.base_url}{webhooks_sender.SENDER}#it"
        self._services = services
        self._keys = keys
        self._channels: dict[str, asyncio.Task[None]] = {}
        self._attempts: set[asyncio.Task[None]] = set()
        self._following = Background(
            self._look,
            logger,
            "Webhooks could not be looked up",
            every_s=LOOK_S,
            again_s=_TROUBLE_S,
            at_end=self._end,
        )
        self._mark: int | None = None

    @cached_property
    def _with(self) -> SendingState:
        services, live_updates = self._services, self._services.live_updates
        return SendingState(
            records=services.records,
            listeners=live_updates.listeners,
            history=live_updates.history,
            messages=live_updates.messages,
            outgoing=services.foreign,
            sender=webhooks_sender.Sender(
                issuer=services.settings.issuer,
                web_id=self.sender,
                keys=self._keys,
                clock=services.clock,
                randomness=services.randomness,
            ),
            lease=Lease("webhooks", services.records),
        )

    async def check(self, request: ChannelRequest) -> None:
        """Raises Unprocessable for a receiver that this server must not send to (A-187, A-190)."""
        try:
            await self._services.foreign.check_receiver(request.send_to or "")
        except OutboundError as error:
            raise Unprocessable(
                "This server sends nothing to that sendTo: give an https URL on the public internet"
            ) from error

    def opened(self, key: str, channel: channels.Channel, owner: str) -> Sequence[Record]:
        state = channel.state if answers.is_live_query(channel.topic) else None
        webhook = Webhook(position=channel.began, state=state)
        return (WEBHOOKS.put(key, webhook, owner=owner, expires_ms=channel.end_ms),)

    def closed(self, key: str) -> Sequence[Record]:
        return (WEBHOOKS.drop(key),)

    async def given_up(self, key: str) -> str | None:
        stored = await self._services.records.value(WEBHOOKS, key)
        return None if stored is None else stored.given_up

    async def failures(self) -> channels.DeliveryFailures:
        store, now_ms = self._services.store, self._services.clock.now_ms()
        some: list[channels.FailedDelivery] = []
        retrying = given_up = 0
        for stored in await WEBHOOKS.page(store, now_ms=now_ms, limit=_MAX_COUNTED):
            state = stored.value
            if not state.failures and state.given_up is None:
                continue
            retrying += state.given_up is None
            given_up += state.given_up is not None
            channel = await channels.CHANNELS.read(store, stored.key, now_ms=now_ms)
            if channel is None or len(some) >= _MAX_SHOWN:
                continue
            some.append(
                channels.FailedDelivery(
                    topic=channel.value.topic,
                    host=urlsplit(channel.value.send_to or "").netloc,
                    failures=state.failures,
                    since_ms=state.first_failed_ms,
                    given_up=state.given_up or "",
                )
            )
        return channels.DeliveryFailures(retrying, given_up, some)

    def start(self) -> None:
        self._following.start()

    async def stop(self) -> None:
        await self._following.stop()

    async def _end(self) -> None:
        """Let attempts in progress finish, for some seconds, and release the lease."""
        await cancel_and_wait(self._channels.values())
        if self._attempts:
            await asyncio.wait(self._attempts, timeout=_STOP_S)
        await self._with.lease.release()

    async def _look(self) -> None:
        """Start and stop sending on channels, if this worker holds the lease."""
        store, lease = self._with.records.store, self._with.lease
        mark = store.data_version()
        unchanged = mark is not None and mark == self._mark
        if unchanged and (not self._channels or await lease.hold()):
            return
        wanted = await self._wanted()
        if not wanted or not await lease.hold():
            await self._drop(set(self._channels))
            self._mark = mark if not wanted else None
            return
        await self._drop(self._channels.keys() - wanted)
        for key in wanted - self._channels.keys():
            self._channels[key] = asyncio.create_task(self._serve(key))
        self._mark = mark

    async def _wanted(self) -> set[str]:
        """The keys of the channels on which messages are to be sent."""
        found = self._with.records.each(WEBHOOKS)
        return {stored.key async for stored in found if stored.value.given_up is None}

    async def _drop(self, keys: set[str]) -> None:
        await cancel_and_wait([self._channels.pop(key) for key in keys])

    async def _serve(self, key: str) -> None:
        """Send on one channel until it ends."""
        while True:
            try:
                if not await ChannelSender(key, self._with, self._attempts).run():
                    return
            except (ServerTrouble, RateLimited):  # the latter of too many live queries
                logger.exception("A webhook could not be served; trying again")
                await asyncio.sleep(_TROUBLE_S)
            except Exception:
                logger.exception("Unexpected error while serving a webhook; trying again")
                await asyncio.sleep(UNFORESEEN_S)
