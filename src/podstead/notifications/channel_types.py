"""The channel types by which clients receive notifications, their features (N-3, N-20 to N-23), and
the durations of those as XML Schema types.

A channel type is a protocol that carries messages. The features that a client can request for a
channel are the same for all types. Durations are parsed in either case, since the drafts of channel
types use lower-case ones (N-8), and represented in milliseconds.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import quote

from podstead.core.caches import memoize_short_keys
from podstead.core.identifiers import ResourcePath
from podstead.core.vocab import NOTIFY, NOTIFY_OF_DRAFTS

SERVICES: Final = ResourcePath("/.notifications/")
"""The prefix of all paths of notifications."""
GATEWAY: Final = ResourcePath(f"{SERVICES}gateway")
"""Where clients of older protocols request notifications (N-25)."""


@dataclass(frozen=True, slots=True)
class ChannelType:
    """A channel type. ``name`` is the local name of its IRI."""

    name: str
    is_pushed: bool = False
    """Whether the server connects to the receiver, instead of the receiver to the server."""
    is_socket: bool = False
    """Whether receivers connect over a WebSocket."""

    @property
    def iri(self) -> str:
        """The IRI in the namespace that this server uses."""
        return NOTIFY + self.name

    @property
    def service(self) -> ResourcePath:
        """Where clients subscribe to channels of the type (N-3)."""
        return ResourcePath(f"{SERVICES}{self.name}/")


WEB_SOCKET: Final = ChannelType("WebSocketChannel2023", is_socket=True)
EVENT_SOURCE: Final = ChannelType("EventSourceChannel2023")
STREAMING_HTTP: Final = ChannelType("StreamingHTTPChannel2023")


class ChannelFeature(Enum):
    """A feature of a channel, by the local name of its property (N-12 to N-15)."""

    ACCEPT = "accept"
    END_AT = "endAt"
    RATE = "rate"
    START_AT = "startAt"
    STATE = "state"

    @property
    def iri(self) -> str:
        """The IRI of the property."""
        return NOTIFY + self.value


def channel_type_name(iri: str) -> str | None:
    """The name of the channel type that an IRI names, in either namespace (N-7)."""
    for namespace in (NOTIFY, NOTIFY_OF_DRAFTS):
        if iri.startswith(namespace):
            return iri[len(namespace) :]
    return None


def stream_of_resource(url: str) -> ResourcePath:
    """Where clients receive changes of the resource with this URL without subscribing (N-22)."""
    container, slash, name = url.rpartition("/")
    return ResourcePath(_stream_prefix(container + slash) + quote(name, safe=""))


@memoize_short_keys
def _stream_prefix(container_url: str) -> str:
    """The prefix of the streams of a container and of its members.

    Each byte is quoted separately, so quoting the parts of a URL quotes the URL.
    """
    return STREAMING_HTTP.service + quote(container_url, safe="")


_UNITS_MS: Final = (365 * 86_400_000, 30 * 86_400_000, 86_400_000, 3_600_000, 60_000)
"""The units of a duration: years, months, days, hours and minutes."""
# The number of digits is limited to what a reasonable duration needs.
_DURATION: Final = re.compile(
    r"P(?=.)(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?"
    r"(?:T(?=.)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def read_duration(text: str) -> int:
    """The milliseconds of an ``xsd:duration``, in either case; a year has 365 days, a month 30.

    Raises ValueError, also for a negative one.
    """
    matched = _DURATION.fullmatch(text.strip())
    if matched is None:
        raise ValueError("No duration")
    *counts, seconds, fraction = matched.groups()
    ms = sum(int(count or 0) * unit_ms for count, unit_ms in zip(counts, _UNITS_MS, strict=True))
    return ms + int(seconds or 0) * 1000 + int((fraction or "0")[:3].ljust(3, "0"))


def write_duration(duration_ms: int) -> str:
    """Milliseconds as ``xsd:duration``, such as ``PT1M30S``; days and shorter units only."""
    seconds, ms = divmod(duration_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    second_digits = f"{seconds}.{ms:03d}".rstrip("0").rstrip(".") if ms else str(seconds)
    parts = ((hours, "H"), (minutes, "M"))
    time = "".join(f"{count}{unit}" for count, unit in parts if count)
    if seconds or ms:
        time += f"{second_digits}S"
    date = f"{days}D" if days else ""
    if not date and not time:
        return "PT0S"
    return f"P{date}" + (f"T{time}" if time else "")
