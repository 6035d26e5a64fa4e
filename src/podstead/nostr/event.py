"""What does a signed event say? Reading one, as it stands in a credential (NIP-01, A-140, A-141).

The checks here are all but the signature's, which costs most and so comes last: whoever reads an
event verifies it by ``nostr/schnorr.py`` before believing any of it.
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
    """An event whose id is right. Not yet known to be signed by ``public_key``."""

    event_id: str
    """SHA-256 of what the event says: 64 hexadecimal digits in lower case."""
    public_key: str
    """The x-only key of the signer: 64 hexadecimal digits in lower case."""
    created_s: int
    kind: int
    tags: Sequence[Sequence[str]]
    signature: bytes

    def tagged(self, name: str) -> list[Sequence[str]]:
        """The tags of that name, in order, each with its name at its beginning."""
        return [tag for tag in self.tags if tag and tag[0] == name]


def read_event(text: str) -> NostrEvent:
    """Read an event from the base64 of its JSON. Raises InvalidEvent.

    Either alphabet of base64 will do, with or without padding. Members that are not known here
    are left alone.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise InvalidEvent("The event is too long")
    try:
        return _event(parse_object(_decoded(text)))
    except ValueError as error:
        raise InvalidEvent("The event is not the base64 of a JSON object") from error


def _decoded(text: str) -> bytes:
    """Raises ValueError, for other characters and for bits that stand for nothing as well."""
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
        # `type`, since True is an int to isinstance, and another event to whoever signed it.
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
    """NIP-01: the hash of the one way of writing what an event says."""
    serialised = json.dumps(said, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(serialised.encode("utf-8")).hexdigest()
