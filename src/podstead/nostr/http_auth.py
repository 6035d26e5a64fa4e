"""Checks whether an event authorizes a request at a given time (NIP-98; A-142 to A-146).

Pure: the request and the time are parameters. The caller must verify the signature, and ensure that
the event is used only once (:attr:`VerifiedEvent.remembered_until_s`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from podstead.nostr.errors import InvalidEvent
from podstead.nostr.event import NostrEvent
from podstead.nostr.urls import read_event_url

KIND: Final = 27235
WINDOW_S: Final = 60
"""The maximum difference between the event's time and the server's (A-143)."""
REMEMBERED_S: Final = 120
"""How long after its time a used event is remembered (A-147)."""
ANY_METHOD: Final = "*"

_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}")
_EMPTY_DIGEST: Final = hashlib.sha256(b"").digest()


class EventScope(Enum):
    """Which requests an event may authorize besides exactly one (A-146)."""

    EXACT = "exact"
    """None."""
    SAFE = "safe"
    """Reads of any resource at or below its URL, and git requests there, as git helpers sign
    them."""
    ANY = "any"
    """Any request at or below its URL."""


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The request as received: its effective URL in raw bytes, including the query (A-11)."""

    method: str
    url: bytes
    has_content: bool
    in_sequence: bool = False
    """Whether this is one of a sequence of requests that an event may authorize, such as those of
    git's own protocol."""

    @property
    def allows_any_method(self) -> bool:
        """Whether an event may leave the method open, as git helpers do for such requests."""
        return self.in_sequence or self.method in _SAFE_METHODS


@dataclass(frozen=True, slots=True)
class VerifiedEvent:
    """What a valid event proves about its request."""

    content_digest: bytes | None
    """The SHA-256 that the content must have; ``None`` if the event states none or the request has
    no content."""
    remembered_until_s: int
    """Unix time before which the event must not be accepted again."""


def check_event(
    event: NostrEvent,
    request: SignedRequest,
    *,
    now_s: int,
    scope: EventScope,
    require_payload: bool,
) -> VerifiedEvent:
    """Check an event in every respect except its signature and replay.

    ``require_payload`` refuses content whose hash the event does not state (A-145). Raises
    InvalidEvent.
    """
    if event.kind != KIND:
        raise InvalidEvent("The event has the wrong kind")
    if abs(now_s - event.created_s) > WINDOW_S:
        raise InvalidEvent("The event is too old or from the future")
    _check_target(only_tag(event, "u"), only_tag(event, "method"), request, scope)
    return VerifiedEvent(
        _content_digest(event, request, require=require_payload),
        event.created_s + REMEMBERED_S,
    )


def only_tag(event: NostrEvent, name: str) -> str:
    """The value of the only tag with that name (A-142). Raises InvalidEvent for none or several."""
    tags = event.tagged(name)
    if len(tags) != 1 or len(tags[0]) < 2:
        raise InvalidEvent(f"The event must have exactly one {name} tag")
    return tags[0][1]


def _check_target(url: str, method: str, request: SignedRequest, scope: EventScope) -> None:
    named, asked = read_event_url(url.encode("utf-8")), read_event_url(request.url)
    wide = scope is EventScope.ANY or (scope is EventScope.SAFE and request.allows_any_method)
    if method.upper() != request.method and not (wide and method == ANY_METHOD):
        raise InvalidEvent("The event is for another method")
    if (
        named is None
        or asked is None
        or not (named == asked or (wide and asked.is_at_or_below(named)))
    ):
        raise InvalidEvent("The event is for another URL")


def _content_digest(event: NostrEvent, request: SignedRequest, *, require: bool) -> bytes | None:
    tags = event.tagged("payload")
    if not tags:
        if require and request.has_content:
            raise InvalidEvent("The event has no payload tag with the hash of the content")
        return None
    if len(tags) != 1 or len(tags[0]) < 2 or not _DIGEST.fullmatch(tags[0][1]):
        raise InvalidEvent(
            "The event must have at most one payload tag, which must be a SHA-256 hash"
        )
    digest = bytes.fromhex(tags[0][1])
    if request.has_content:
        return digest
    if digest != _EMPTY_DIGEST:
        raise InvalidEvent("The event was signed for different content")
    return None
