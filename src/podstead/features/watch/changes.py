"""Parses what is received: Server-Sent Events (WHATWG HTML, section 9.2.6), and notifications:
ActivityStreams as JSON-LD or Turtle, and ``pub`` lines. Pure.

Parsing of notifications is lenient: only the activity and its object are required, which all
servers write in the same way (N-16). The entire message is kept for programs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from podstead.core import date_times, media_types, strict_json
from podstead.core.vocab import AS, AS_OBJECT, AS_PUBLISHED, AS_TARGET, NOTIFY_STATE, RDF_TYPE
from podstead.rdf import codecs, errors
from podstead.rdf.graph import Graph, Iri, Subject

UNKNOWN_ACTIVITY: Final = "Activity"
"""The most general type (Activity Vocabulary, section 2.1), for messages that state no other."""

_PROPERTIES: Final = {
    "object": AS_OBJECT,
    "target": AS_TARGET,
    "published": AS_PUBLISHED,
    "state": NOTIFY_STATE,
}


class InvalidMessage(ValueError):
    """The content is not a message about a change."""


@dataclass(frozen=True, slots=True)
class ReceivedChange:
    """One change. ``said`` is the message as a JSON object; ``published_ms`` is Unix time in ms."""

    activity: str
    resource: str
    """The IRI of the object: the resource that changed, or was added to or removed from a
    container."""
    said: Mapping[str, object]
    published_ms: int | None = None
    state: str | None = None
    message_id: str | None = None


def read_json(content: bytes) -> ReceivedChange:
    """Parse a message in JSON-LD. Raises InvalidMessage."""
    try:
        said = strict_json.parse_object(content)
    except ValueError as error:
        raise InvalidMessage from error
    return _change(said)


def split_json(content: bytes) -> tuple[list[ReceivedChange], bytes]:
    """Split a stream of JSON-LD into the complete messages and the incomplete rest."""
    changes = []
    rest = b""
    for line in content.splitlines(keepends=True):
        rest += line
        try:
            changes.append(read_json(rest))
        except InvalidMessage:
            continue
        rest = b""
    return changes, rest.lstrip()


def split_turtle(content: bytes, *, url: str) -> tuple[list[ReceivedChange], bytes]:
    """Split a stream of Turtle from ``url`` into the complete messages and the rest.

    Consecutive documents form one document, which is complete when it can be parsed.
    """
    try:
        graph = codecs.parse(content, media_types.TURTLE, base_iri=url).graph
        changes = [_change(_said(graph, each)) for each in graph.subjects(Iri(AS_OBJECT))]
    except (errors.MalformedRdf, InvalidMessage):
        return [], content
    return changes, b"" if changes else content


def read_pub(url: str, *, now_ms: int) -> ReceivedChange:
    """The change of a ``pub`` line (L-5), which does not state the activity."""
    return _change(
        {"type": UNKNOWN_ACTIVITY, "object": url, "published": date_times.write_time(now_ms)}
    )


def _said(graph: Graph, subject: Subject) -> dict[str, object]:
    said: dict[str, object] = {} if type(subject) is not Iri else {"id": subject.value}
    for activity in graph.objects(subject, Iri(RDF_TYPE)):
        if activity.value.startswith(AS):
            said["type"] = activity.value.removeprefix(AS)
    for name, predicate in _PROPERTIES.items():
        for value in graph.objects(subject, Iri(predicate)):
            said[name] = value.value
    return said


def _change(said: Mapping[str, object]) -> ReceivedChange:
    activity, changed = _name(said.get("type")), _name(said.get("object"))
    if activity is None or changed is None:
        raise InvalidMessage
    state, message_id = said.get("state"), said.get("id")
    return ReceivedChange(
        activity=activity.removeprefix(AS).removeprefix("as:"),
        resource=changed,
        said=said,
        published_ms=_time(said.get("published")),
        state=state if isinstance(state, str) else None,
        message_id=message_id if isinstance(message_id, str) else None,
    )


def _name(value: object) -> str | None:
    """One IRI or term in any of its forms; the first if there are several."""
    if isinstance(value, list) and value:
        return _name(value[0])
    if isinstance(value, dict):
        return _name(value.get("id", value.get("@id")))
    return value if isinstance(value, str) and value else None


def _time(value: object) -> int | None:
    try:
        return date_times.read_time(value) if isinstance(value, str) else None
    except ValueError:
        return None


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
