"""Sends what waits for browsers to their push services (RFC 8030), one worker at a time.

Strangers choose the push services: whoever has a pod can name any address. So all requests go
through the guard of outgoing requests, a person never has more than a few in progress, nobody waits
for those of others, and what is not accepted is tried again less and less often, for a day at most.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.core import background, base64url, conditional, errors, numbers
from podstead.core.request_context import set_requester
from podstead.features.web_push import devices
from podstead.outbound.foreign_documents import Purpose
from podstead.storage.record_store import Lease, RecordStore, Versioned

if TYPE_CHECKING:
    from podstead.idp.accounts import Accounts
    from podstead.outbound.requests import PostReply

logger = logging.getLogger("podstead.notices")

LOOK_S: Final = 2
"""How often a worker looks for messages, if anything has been written."""
AGAIN_S: Final = 60
"""How long a worker waits after an error."""
WAITS_S: Final = (30, 300, 1800, 7200)
"""The waits before the second attempt, the third, and so on. The last one is repeated."""
AT_ONCE: Final = 4
"""How many messages to one person are sent at the same time."""
AT_ONCE_TO_ALL: Final = 32
"""How many are sent at the same time, half of all POST requests of a worker."""
TOKEN_S: Final = 12 * 3600
"""How long a token is valid, at most 24 hours (RFC 8292 section 2)."""
_GONE: Final = (404, 410)
_BATCH: Final = 50


@dataclass
class PushSender:
    """Sends what waits. ``accounts`` are those of the provider, ``name`` is that of the server for
    people, and ``address`` the page that a notice opens."""

    records: RecordStore
    outgoing: ForeignDocuments
    key: devices.ServerKey
    accounts: Accounts | None
    base_url: str
    name: str
    address: str
    _sending: dict[asyncio.Task[None], Versioned[devices.Push]] = field(default_factory=dict)
    _seen: int | None = None
    _next_ms: int | None = 0

    def __post_init__(self) -> None:
        self._lease = Lease("web-push", self.records)
        self._background = background.Background(
            self._look,
            logger,
            "Notices could not be sent to browsers",
            every_s=LOOK_S,
            at_end=self._end,
        )

    def start(self) -> None:
        """Begin to look for messages and to send them."""
        self._background.start()

    async def stop(self) -> None:
        """End that, and what is being sent."""
        await self._background.stop()

    async def _end(self) -> None:
        await background.cancel_and_wait(self._sending)
        await self._lease.release()

    async def _look(self) -> None:
        mark = self.records.store.data_version()
        is_due = self._next_ms is not None and self._next_ms <= self.records.now_ms()
        if mark is None or mark != self._seen or is_due:
            self._next_ms = await self.send_due(self._lease)
            self._seen = mark

    async def send_due(self, lease: Lease) -> int | None:
        """Send what is due, if no other worker does; when to look again, ``None`` if nothing waits.
        Raises StorageError, Overloaded."""
        while True:
            now_ms = self.records.now_ms()
            due, next_ms = await self._due(now_ms)
            if not due and not self._sending:
                return next_ms
            if due and not await lease.hold():
                return now_ms + AGAIN_S * 1000
            for each in due:
                self._sending[asyncio.create_task(self._send(each))] = each
            # What becomes due meanwhile does not wait for the slowest.
            done, _ = await asyncio.wait(
                self._sending, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                del self._sending[task]
            await asyncio.gather(*done)

    async def _due(self, now_ms: int) -> tuple[Sequence[Versioned[devices.Push]], int | None]:
        """The messages to start with now, of each person only some, and when the next ones are
        due."""
        busy = {each.key for each in self._sending.values()}
        counts = Counter(each.owner for each in self._sending.values())
        found: list[Versioned[devices.Push]] = []
        after = ""
        while len(busy) + len(found) < AT_ONCE_TO_ALL:
            page = await devices.PUSHES.page(
                self.records.store, after=after, now_ms=now_ms, limit=_BATCH
            )
            for each in page:
                if devices.push_due_ms(each) > now_ms:
                    return found, devices.push_due_ms(each)
                if each.key not in busy and counts[each.owner] < AT_ONCE:
                    counts[each.owner] += 1
                    found.append(each)
            if len(page) < _BATCH:
                return found, None
            after = page[-1].key
        return found[: AT_ONCE_TO_ALL - len(busy)], now_ms

    async def _send(self, stored: Versioned[devices.Push]) -> None:
        root, push, now_ms = stored.owner or "", stored.value, self.records.now_ms()
        device = await self.records.read(devices.DEVICES, f"{push.device}.{root}")
        if device is None or not await self._may_get(device, root):
            await self.records.commit([devices.PUSHES.drop(stored.key)])
        elif device.value.paused_until_ms > now_ms:
            await self._later(stored, device.value.paused_until_ms)
        else:
            set_requester(f"notices of {root}")
            await self._take(stored, device, await self._post(device.value, push))

    async def _may_get(self, device: Versioned[devices.Device], root: str) -> bool:
        """Whether the account is enabled, the browser was added since all sessions ended, and the
        token with which the person had signed in is valid. A browser is removed for the latter
        two."""
        if not await self._is_valid(device.value.token_id):
            await self.records.commit([devices.DEVICES.drop(device.key)])
            return False
        stored = None if self.accounts is None else await self.accounts.find(root.strip("/"))
        if stored is None:
            return True
        if device.value.since_ms < stored.value.valid_after_s * 1000:
            await self.records.commit([devices.DEVICES.drop(device.key)])
            return False
        return not stored.value.disabled

    async def _is_valid(self, token_id: str | None) -> bool:
        if token_id is None:
            return True
        token = await self.records.store.read_token(token_id)
        if token is None or token.revoked_s is not None:
            return False
        return token.expires_s is None or token.expires_s > self.records.now_s()

    async def _post(self, device: devices.Device, push: devices.Push) -> PostReply | None:
        """The response of the push service, ``None`` without one."""
        try:
            origin = await self.outgoing.origin_of(device.endpoint)
            fields = {
                "Authorization": await self._credentials(origin),
                "Content-Encoding": "aes128gcm",
                "Content-Type": "application/octet-stream",
                "TTL": str(devices.KEPT_S),
                "Topic": push.notice_id,
                "Urgency": "normal",
            }
            return await self.outgoing.ask(
                device.endpoint, self._content(device, push), fields, Purpose.PUSH
            )
        except errors.OutboundError as error:
            logger.info("A notice could not be sent to a browser: %s", error)
            return None

    async def _credentials(self, origin: str) -> str:
        pair = await self.key.pair()
        claims = {
            "aud": origin,
            "exp": self.records.now_s() + TOKEN_S,
            "sub": f"{self.base_url}/",
        }
        token = pair.sign(claims, media_type="JWT")
        return f"vapid t={token}, k={base64url.encoded(await self.key.public())}"

    def _content(self, device: devices.Device, push: devices.Push) -> bytes:
        # Loads the ciphers.
        from podstead.features.web_push import encryption

        said = {
            "title": self.name,
            "text": push.text,
            "id": push.notice_id,
            "address": self.address,
        }
        return encryption.encrypted(
            json.dumps(said, ensure_ascii=False).encode(),
            key=base64url.decoded(device.key),
            secret=base64url.decoded(device.secret),
            sender=encryption.new_sender(),
            salt=bytes.fromhex(self.records.randomness.token_hex(encryption.SALT_BYTES)),
        )

    async def _take(
        self,
        stored: Versioned[devices.Push],
        device: Versioned[devices.Device],
        reply: PostReply | None,
    ) -> None:
        """Record what became of a message."""
        now_ms = self.records.now_ms()
        wait_s = WAITS_S[min(stored.value.attempts, len(WAITS_S) - 1)]
        if reply is not None and reply.status in _GONE:
            await self.records.commit(
                [devices.PUSHES.drop(stored.key), devices.DEVICES.drop(device.key)]
            )
        elif reply is None or reply.status >= 500 or reply.status == 429:
            asked_s = 0 if reply is None else _retry_after_s(reply, now_ms)
            wait_s = max(wait_s, asked_s)
            until_ms = now_ms + min(wait_s, devices.KEPT_S) * 1000
            await self.records.update(
                devices.DEVICES, device.key, lambda each: replace(each, paused_until_ms=until_ms)
            )
            await self._later(stored, now_ms + wait_s * 1000)
        else:
            if reply.status >= 300:
                logger.warning("A push service refused a notice with status %d", reply.status)
            await self.records.commit([devices.PUSHES.drop(stored.key)])

    async def _later(self, stored: Versioned[devices.Push], at_ms: int) -> None:
        """Postpone a message. If its pod was deleted meanwhile, so was the message."""
        again = replace(stored.value, attempts=stored.value.attempts + 1)
        records = [devices.PUSHES.drop(stored.key)]
        if stored.expires_ms is None or at_ms < stored.expires_ms:
            key = devices.push_key(at_ms, again, stored.owner or "")
            put = devices.PUSHES.put(key, again, owner=stored.owner, expires_ms=stored.expires_ms)
            await self.records.try_commit([*records, put], [stored.unchanged])
        else:
            await self.records.commit(records)


def _retry_after_s(reply: PostReply, now_ms: int) -> int:
    """How long the push service asks to wait; 0 if it does not say (RFC 9110 section 10.2.3)."""
    stated = reply.fields.get("retry-after", "").strip()
    if (seconds := numbers.whole_number(stated, 999_999_999)) is not None:
        return seconds
    at_s = conditional.parse_http_date(stated)
    return 0 if at_s is None else max(0, at_s - now_ms // 1000)
