"""Do two spellings name one URL? How the URL in an event compares with that of a request (A-144).

Browsers and libraries write the same URL in several ways before they send it, and sign what they
were given. So both are brought to one spelling, byte for byte and without ever decoding anything
(A-144): nothing that would name another resource, or another query, becomes the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from podstead.core.memoization import memoize_short_keys

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
    """A URL in the one spelling that compares; without its fragment."""

    origin: bytes
    path: bytes
    query: bytes

    def is_at_or_below(self, other: ComparableUrl) -> bool:
        """Whether the path begins with the other's, whole segments of it, on the same origin.

        False if the other has a query, which names more than a place.
        """
        place = other.path if other.path.endswith(b"/") else other.path + b"/"
        return (
            self.origin == other.origin
            and not other.query
            and (self.path == other.path or self.path.startswith(place))
        )


@memoize_short_keys
def read_event_url(url: bytes) -> ComparableUrl | None:
    """The scheme and host in lower case, no default port, ``/`` for an empty path, escaped what
    the URL Standard escapes, escapes in upper case, no empty query; all else stays.

    ``None`` for what is no ``http(s)`` URL, and for one with a user name.
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
