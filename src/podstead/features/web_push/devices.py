"""The browsers that show notices, what waits to be sent to them, and the key by which push services
recognize this server (RFC 8292)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from podstead.core import base64url
from podstead.core.identifiers import ResourcePath
from podstead.jose.tokens import SigningKeyPair
from podstead.storage.record_store import Changes, RecordKind, RecordStore, Versioned
from podstead.storage.records import Record
from podstead.web.browsers import browser_name
from podstead.web.pages import addresses, notifier

if TYPE_CHECKING:
    from podstead.web.pages.request import PageRequest

MAX_DEVICES: Final = 10
"""How many browsers of a person show notices; one more takes the place of the oldest."""
MAX_ENDPOINT_CHARACTERS: Final = 2048
PUSHES_PER_DAY: Final = 60
"""How many notices are sent to the browsers of a person in a day. The page has all of them."""
MAX_WAITING: Final = 100
"""How many messages wait for the browsers of a person; further ones are not sent."""
KEPT_S: Final = 24 * 3600
"""For how long a message waits, here and at the push service. It is on the page all the same."""
MAX_TEXT_CHARACTERS: Final = 300
_DAY_S: Final = 24 * 3600
_HASH_CHARACTERS: Final = 32
_MARK: Final = "vapid"
PURPOSE: Final = "push"
"""What a recent sign-in is asked for."""


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """A browser that shows notices. The key is a hash of its ``endpoint``, and the root of the pod,
    which is the owner. ``key`` and ``secret`` are in base64url."""

    endpoint: str
    key: str
    secret: str
    since_ms: int
    language: str = ""
    user_agent: str = ""
    paused_until_ms: int = 0
    """Until when nothing is sent, since the push service did not take a message."""
    token_id: str | None = None
    """The token of the pod by which the person had signed in."""


class Push(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that waits. The key is when it is due, an id, and the root of the pod, which is the
    owner. ``device`` is the hash in the key of the device."""

    device: str
    notice_id: str
    text: str
    attempts: int = 0


class PushKey(msgspec.Struct, frozen=True):
    """The private key of the server, as :meth:`SigningKeyPair.dump` writes it. Secret."""

    pair: str


DEVICES: Final = RecordKind("push-device", Device)
PUSHES: Final = RecordKind("push", Push)
PUSH_KEYS: Final = RecordKind("push-key", PushKey)


def push_key(at_ms: int, push: Push, root: str) -> str:
    """The key of the record of a message."""
    return f"{at_ms:015d}.{push.device}.{push.notice_id}.{root}"


def push_due_ms(stored: Versioned[Push]) -> int:
    """When a message is due."""
    return int(stored.key.partition(".")[0])


class ServerKey:
    """The key of this server, which is made when somebody switches push on for the first time."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._pair: SigningKeyPair | None = None

    async def pair(self) -> SigningKeyPair:
        """The key pair, which all workers and nodes have in common. Raises ServerTrouble."""
        if self._pair is None:
            self._pair = await self._records.transact(self._find)
        return self._pair

    async def public(self) -> bytes:
        """The public key, as an uncompressed point. Raises ServerTrouble."""
        jwk = (await self.pair()).public_jwk()
        return b"\x04" + base64url.decoded(str(jwk["x"])) + base64url.decoded(str(jwk["y"]))

    async def _find(self) -> Changes[SigningKeyPair]:
        stored = await self._records.read(PUSH_KEYS, _MARK)
        if stored is not None:
            return Changes(SigningKeyPair.load(stored.value.pair.encode()))
        made = SigningKeyPair.generate("ES256")
        record = PUSH_KEYS.put(_MARK, PushKey(made.dump().decode()))
        return Changes(made, [record], [PUSH_KEYS.absent(_MARK)])


@dataclass(frozen=True, slots=True)
class Devices(notifier.NoticeChannel):
    """The browsers of all people."""

    records: RecordStore
    template = "web_push/section.html"

    async def of(self, root: ResourcePath) -> Sequence[Versioned[Device]]:
        """The browsers of the owner of a pod, the newest first. Raises StorageError."""
        found = await self.records.of_owner(DEVICES, root)
        return sorted(found, key=lambda each: each.value.since_ms, reverse=True)

    async def facts(self, page: PageRequest, root: ResourcePath) -> Mapping[str, object]:
        person = page.signed_in()
        return {
            "again": "" if person.session is None else addresses.again_url(PURPOSE),
            "signs_in_first": person.session is not None and not person.signed_in_recently,
            "devices": [
                (each.key, browser_name(each.value.user_agent), each.value.since_ms)
                for each in await self.of(root)
            ],
        }

    async def add(self, root: ResourcePath, device: Device) -> None:
        """Let a browser show the notices of the owner of a pod, and those of nobody else. Raises
        ServerTrouble."""
        marked = _hash(device.endpoint)
        key = f"{marked}.{root}"

        async def compute() -> Changes[None]:
            now_ms = self.records.now_ms()
            page = await DEVICES.page(
                self.records.store, after=marked, now_ms=now_ms, limit=MAX_DEVICES
            )
            others = {each.key for each in page if each.key.startswith(f"{marked}.")}
            known = [each.key for each in await self.of(root) if each.key != key]
            gone = {*others, *known[MAX_DEVICES - 1 :]} - {key}
            put = DEVICES.put(key, device, owner=root)
            return Changes(None, [put, *map(DEVICES.drop, gone)])

        await self.records.transact(compute)

    async def remove(self, root: ResourcePath, key: str) -> None:
        """Send nothing more to a browser of the owner of a pod. Raises ServerTrouble."""
        if key.endswith(f".{root}"):
            await self.records.commit([DEVICES.drop(key)])

    async def joining(
        self, root: ResourcePath, notice_id: str, say: Callable[[str], str]
    ) -> Sequence[Record]:
        devices = await self.of(root)
        if not devices:
            return ()
        limited = await self.records.take(f"push:{root}", capacity=PUSHES_PER_DAY, period_s=_DAY_S)
        waiting = await self.records.of_owner(PUSHES, root, limit=MAX_WAITING)
        if limited is not None or len(waiting) + len(devices) > MAX_WAITING:
            return ()
        now_ms, records = self.records.now_ms(), []
        for each in devices:
            text = say(each.value.language)[:MAX_TEXT_CHARACTERS]
            push = Push(each.key.partition(".")[0], notice_id, text)
            key, expires_ms = push_key(now_ms, push, root), now_ms + KEPT_S * 1000
            records.append(PUSHES.put(key, push, owner=root, expires_ms=expires_ms))
        return records


def _hash(endpoint: str) -> str:
    return hashlib.sha256(endpoint.encode()).hexdigest()[:_HASH_CHARACTERS]
