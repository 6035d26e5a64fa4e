"""Parsing the signed event in a credential (NIP-01; A-140, A-141).

This module checks everything except the signature, which is the most expensive check and therefore
the last. The caller must verify it with ``nostr/schnorr.py`` before trusting the event.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from podstead.core.strict_json import Json, parse_object
from podstead.nostr.errors import InvalidEvent

MAX_TEXT_CHARACTERS: Final = 16 * 1024
MAX_TAGS: Final = 32
MAX_TAG_CHARACTERS: Final = 4096

_KEY: Final = re.compile(r"[0-9a-f]{64}")
_SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{128}")
_URL_ALPHABET: Final = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True)
class NostrEvent:
    """An event with a correct ID, whose signature by ``public_key`` has not been verified."""

    event_id: str
    """The SHA-256 of the event's content: 64 hexadecimal digits in lower case."""
    public_key: str
    """The x-only key of the signer: 64 hexadecimal digits in lower case."""
    created_s: int
    kind: int
    tags: Sequence[Sequence[str]]
    signature: bytes

    def tagged(self, name: str) -> list[Sequence[str]]:
        """The tags with that name, in order, each including its name."""
        return [tag for tag in self.tags if tag and tag[0] == name]


def read_event(text: str) -> NostrEvent:
    """Parse an event from the base64 of its JSON. Raises InvalidEvent.

    Accepts both alphabets of base64, with or without padding. Unknown members are ignored.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise InvalidEvent("The event is too long")
    try:
        return _event(parse_object(_decoded(text)))
    except ValueError as error:
        raise InvalidEvent("The event is not the base64 of a JSON object") from error


def _decoded(text: str) -> bytes:
    """Decode base64 strictly. Raises ValueError, also for non-zero bits after the last byte."""
    bare = text.rstrip("=")
    padding = "=" * (-len(bare) % 4)
    if text not in (bare, bare + padding):
        raise ValueError("Padded wrongly")
    of_url = "-" in bare or "_" in bare
    if of_url and ("+" in bare or "/" in bare):
        raise ValueError("Two alphabets")
    standard = bare.translate(_URL_ALPHABET) + padding
    content = base64.b64decode(standard, validate=True)
    if base64.b64encode(content).decode("ascii") != standard:
        raise ValueError("Bits that stand for nothing")
    return content


def _event(members: Json) -> NostrEvent:
    event_id, public_key, signature = (_text(members.get(name)) for name in ("id", "pubkey", "sig"))
    created_s, kind = members.get("created_at"), members.get("kind")
    tags, content = members.get("tags"), members.get("content")
    if (
        not _KEY.fullmatch(event_id)
        or not _KEY.fullmatch(public_key)
        or not _SIGNATURE.fullmatch(signature)
        # `type`, because isinstance takes True for an int, which would be another event.
        or type(created_s) is not int
        or type(kind) is not int
        or not isinstance(content, str)
        or not _are_tags(tags)
    ):
        raise InvalidEvent("A member of the event is missing or has the wrong type")
    if event_id != _id_of([0, public_key, created_s, kind, tags, content]):
        raise InvalidEvent("The id of the event does not match its content")
    return NostrEvent(event_id, public_key, created_s, kind, tags, bytes.fromhex(signature))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _are_tags(tags: object) -> TypeGuard[list[list[str]]]:
    return (
        isinstance(tags, list)
        and len(tags) <= MAX_TAGS
        and all(
            isinstance(tag, list) and all(isinstance(each, str) for each in tag) for tag in tags
        )
        and all(sum(map(len, tag)) <= MAX_TAG_CHARACTERS for tag in tags)
    )


def _id_of(said: Sequence[object]) -> str:
    """The hash of the event's canonical serialization (NIP-01)."""
    serialised = json.dumps(said, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(serialised.encode("utf-8")).hexdigest()
