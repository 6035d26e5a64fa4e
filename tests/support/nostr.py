"""Signed events made without our code: NIP-01, NIP-98 and BIP-340 on the cryptography package.

Tests sign with this what the server verifies. A change made before an event is signed gives
another event that is signed well; one made afterwards gives one that is not right.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

Json = dict[str, Any]
Change = Callable[[Json], None]


def tagged_hash(name: str, content: bytes) -> bytes:
    tag = hashlib.sha256(name.encode()).digest()
    return hashlib.sha256(tag + tag + content).digest()


@dataclass(frozen=True)
class NostrKey:
    """A secret key; its public one is the x of a point whose y is even."""

    secret: int
    public: str

    @classmethod
    def new(cls) -> NostrKey:
        return cls.of(secrets.randbelow(ORDER - 1) + 1)

    @classmethod
    def of(cls, number: int) -> NostrKey:
        secret, x = _even(number)
        return cls(secret, x.hex())

    @property
    def did(self) -> str:
        return f"did:nostr:{self.public}"

    def sign(self, message: bytes) -> bytes:
        """BIP-340, Default Signing, with a nonce of its own."""
        k, r = _even(secrets.randbelow(ORDER - 1) + 1)
        challenge = tagged_hash("BIP0340/challenge", r + bytes.fromhex(self.public) + message)
        s = (k + int.from_bytes(challenge, "big") * self.secret) % ORDER
        return r + s.to_bytes(32, "big")

    def event(
        self, method: str, url: str, now_s: int, *changes: Change, payload: bytes | None = None
    ) -> Json:
        """An event for a request; ``changes`` are made before it is signed."""
        tags = [["u", url], ["method", method]]
        if payload is not None:
            tags.append(["payload", hashlib.sha256(payload).hexdigest()])
        event: Json = {"kind": 27235, "created_at": now_s, "tags": tags, "content": ""}
        event["pubkey"] = self.public
        for change in changes:
            change(event)
        return self.signed(event)

    def signed(self, event: Json) -> Json:
        """The event with its id and signature."""
        event_id = id_of(event)
        return {**event, "id": event_id.hex(), "sig": self.sign(event_id).hex()}


def id_of(event: Json) -> bytes:
    """NIP-01."""
    said = [0, *(event.get(name) for name in ("pubkey", "created_at", "kind", "tags", "content"))]
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def packed(event: object) -> str:
    """The base64 of the event."""
    return base64.b64encode(json.dumps(event).encode()).decode()


def nostr(event: object) -> dict[str, str]:
    """The header field with the event."""
    return {"Authorization": f"Nostr {packed(event)}"}


def basic(event: object, *, name: str = "nostr") -> dict[str, str]:
    """The header field with the event as a password."""
    pair = base64.b64encode(f"{name}:{packed(event)}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def set_to(name: str, value: object) -> Change:
    def change(event: Json) -> None:
        event[name] = value

    return change


def without(name: str) -> Change:
    def change(event: Json) -> None:
        del event[name]

    return change


def with_tag(*tag: object) -> Change:
    """One more tag."""

    def change(event: Json) -> None:
        event["tags"].append(list(tag))

    return change


def tag_set_to(name: str, *values: object) -> Change:
    """Another value of a tag, or none."""

    def change(event: Json) -> None:
        event["tags"] = [each for each in event["tags"] if each[0] != name] + [[name, *values]]

    return change


def without_tag(name: str) -> Change:
    def change(event: Json) -> None:
        event["tags"] = [each for each in event["tags"] if each[0] != name]

    return change


def _even(number: int) -> tuple[int, bytes]:
    """The number or its negative, whichever has a point with an even y, and the point's x."""
    point = ec.derive_private_key(number, ec.SECP256K1()).public_key().public_numbers()
    secret = number if point.y % 2 == 0 else ORDER - number
    return secret, point.x.to_bytes(32, "big")
