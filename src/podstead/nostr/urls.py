"""Comparing the URL in an event with that of a request (A-144).

Browsers and libraries normalize a URL before they send it, but sign it as it was given. Both URLs
are therefore normalized, without decoding anything: URLs of different resources or with different
queries never become equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from podstead.core.caches import memoize_short_keys

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

    def is_at_or_below(self, other: ComparableUrl) -> bool:
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
