"""An incremental parser for Server-Sent Events (WHATWG HTML, section 9.2.6). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MAX_EVENT_BYTES: Final = 1024 * 1024
"""The limit for one event and for one line."""

_RETRY: Final = re.compile(r"[0-9]{1,9}")


class EventTooLarge(ValueError):
    """An event is larger than MAX_EVENT_BYTES."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event; ``kind`` is empty if the event has no name."""

    data: str
    kind: str = ""


class EventStream:
    """Parses one stream. ``last_id`` is the ID of the last event, for resuming; ``retry_ms`` is the
    reconnection time that the server requests, if any."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry_ms: int | None = None
        self._rest = b""
        self._is_first = True
        self._data: list[str] = []
        self._kind = ""
        self._id = last_id
        self._bytes = 0

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Process a piece and return the events that it completes. Raises EventTooLarge."""
        lines = self._lines(piece)
        return [event for line in lines if (event := self._line(line)) is not None]

    def _lines(self, piece: bytes) -> list[bytes]:
        if self._is_first and (content := self._rest + piece):
            if b"\xef\xbb\xbf".startswith(content):  # possibly a part of a byte order mark
                self._rest = content
                return []
            self._is_first = False
            self._rest, piece = b"", content.removeprefix(b"\xef\xbb\xbf")
        content = self._rest + piece
        # A line ends in LF, CR or CRLF; after a final CR, an LF may still follow.
        end = len(content) - 1 if content.endswith(b"\r") else len(content)
        *lines, rest = content[:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = rest + content[end:]
        if len(self._rest) > MAX_EVENT_BYTES:
            raise EventTooLarge
        return lines

    def _line(self, line: bytes) -> ServerSentEvent | None:
        if not line:
            return self._dispatched()
        self._bytes += len(line)
        if self._bytes > MAX_EVENT_BYTES:
            raise EventTooLarge
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._kind = value
            case "id" if value.isprintable():  # others cannot be sent in a header
                self._id = value
            case "retry" if _RETRY.fullmatch(value):
                self.retry_ms = int(value)
        return None

    def _dispatched(self) -> ServerSentEvent | None:
        event = ServerSentEvent("\n".join(self._data), self._kind) if self._data else None
        self.last_id = self._id
        self._data, self._kind, self._bytes = [], "", 0
        return event
