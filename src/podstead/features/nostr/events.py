"""Signed Nostr events: parsing them, and checking them against a request (NIP-01, NIP-98).

Pure: the request and the time are parameters. Everything is checked here except the signature,
which is the most expensive check and therefore the last, and that an event is used only once: the
caller does both (:class:`podstead.features.nostr.requests.EventVerifier`).

Browsers and libraries normalize a URL before they send it, but sign it as it was given. Both URLs
are therefore normalized, without decoding anything: URLs of different resources or with different
queries never become equal.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeGuard

from podstead.core.caches import memoize_short_keys
from podstead.core.strict_json import Json, parse_object

MAX_TEXT_CHARACTERS: Final = 16 * 1024
MAX_TAGS: Final = 32
MAX_TAG_CHARACTERS: Final = 4096

_KEY: Final = re.compile(r"[0-9a-f]{64}")
_SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{128}")
_URL_ALPHABET: Final = str.maketrans("-_", "+/")


class InvalidEvent(Exception):
    """The event is not valid for its purpose; the message is public and contains no client data."""


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


# --- The URL in an event and that of a request (A-144) ------------------------------------------

_URL: Final = re.compile(
    rb"(?P<scheme>https?)://(?P<authority>[^/?#@\\]+)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?",
    re.IGNORECASE,
)
_ESCAPE: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
# The path and special-query percent-encode sets of WHATWG URL, section 1.3.
_ENCODED_IN_PATHS: Final = re.compile(rb"[\x00-\x20\x7f-\xff\"#<>?^`{}]")
_ENCODED_IN_QUERIES: Final = re.compile(rb"[\x00-\x20\x7f-\xff\"#<>']")
_DEFAULT_PORTS: Final = {b"http": b":80", b"https": b":443"}


@dataclass(frozen=True, slots=True)
class ComparableUrl:
    """A normalized URL without its fragment."""

    origin: bytes
    path: bytes
    query: bytes

    def is_at_or_below(self, other: "ComparableUrl") -> bool:
        """Whether the origins are equal and the other path is a prefix of this one, by segments.

        False if the other URL has a query.
        """
        place = other.path if other.path.endswith(b"/") else other.path + b"/"
        return (
            self.origin == other.origin
            and not other.query
            and (self.path == other.path or self.path.startswith(place))
        )


@memoize_short_keys
def read_event_url(url: bytes) -> ComparableUrl | None:
    """Parse and normalize a URL.

    Scheme and host become lower case, an empty path ``/``, and escapes upper case; a default port
    and an empty query are removed, and the characters that the URL Standard escapes are escaped.
    ``None`` if it is not an ``http(s)`` URL, or has a user name.
    """
    match = _URL.match(url)
    if match is None:
        return None
    scheme, authority = match["scheme"].lower(), match["authority"].lower()
    authority = authority.removesuffix(_DEFAULT_PORTS[scheme])
    return ComparableUrl(
        origin=scheme + b"://" + authority,
        path=_written(match["path"] or b"/", _ENCODED_IN_PATHS),
        query=_written(match["query"] or b"", _ENCODED_IN_QUERIES),
    )


def _written(part: bytes, encoded: re.Pattern[bytes]) -> bytes:
    escaped = encoded.sub(_escape, part)
    return _ESCAPE.sub(lambda escape: escape[0].upper(), escaped)


def _escape(match: re.Match[bytes]) -> bytes:
    [byte] = match[0]
    return b"%%%02X" % byte


# --- Whether an event authorizes a request at a given time (A-142 to A-146) ---------------------

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
