"""A client that sends exactly the bytes a test says, and reads answers strictly (RFC 9112)."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.support.processes import becomes_readable
from tests.support.server import DEADLINE_S, ServerProcess

_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) [^\r\n]*\r\n\Z")
_ANY_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9]) ")
_FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*?)[ \t]*\r\n\Z")
_NO_BODY = frozenset({100, 204, 304})
_GONE = (ConnectionResetError, BrokenPipeError)


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """One response as it came."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; lines of one name joined."""
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether the server says that this is the last answer on the connection."""
        return self.headers.get("connection", "").lower() == "close"


class Wire:
    """One connection over which bytes go as they are."""

    def __init__(self, server: ServerProcess) -> None:
        assert server.port is not None
        self._socket = socket.create_connection(("127.0.0.1", server.port), DEADLINE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, *parts: bytes) -> None:
        """Send the parts one after another. Raises OSError."""
        for part in parts:
            self._socket.sendall(part)

    def send_what_is_taken(self, data: bytes) -> None:
        """Send until the server has closed the connection, if it does."""
        with contextlib.suppress(*_GONE):
            self._socket.sendall(data)

    def drip(self, piece: bytes, *, every_s: float) -> None:
        """Send a piece now and then, until the server has something to say, or hangs up."""
        with contextlib.suppress(*_GONE):
            while not becomes_readable(self._socket, every_s):
                self._socket.sendall(piece)

    def end_sending(self) -> None:
        """Close this direction only: what was sent is all there is."""
        with contextlib.suppress(OSError):  # the server was faster
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._incoming.close()
        self._socket.close()

    def reset(self) -> None:
        """Break the connection off, as a client that crashes does."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def receive(self, method: str = "GET") -> WireAnswer:
        """The next answer, which must come; ``method`` is what was asked with."""
        answer = self.receive_or_end(method)
        assert answer is not None, "the server closed the connection without an answer"
        return answer

    def receive_or_end(self, method: str = "GET") -> WireAnswer | None:
        """The next answer, or ``None`` if the server has closed the connection."""
        try:
            status_line = self._incoming.readline()
        except _GONE:
            return None
        if not status_line:
            return None
        match = _STATUS_LINE.match(status_line)
        assert match, f"no status line: {status_line!r}"
        status = int(match[1])
        headers = self._headers()
        without_body = method == "HEAD" or status in _NO_BODY
        return WireAnswer(status, headers, b"" if without_body else self._body(headers))

    def receive_end(self) -> None:
        """Wait until the server has closed the connection; nothing may come before."""
        answer = self.receive_or_end()
        assert answer is None, f"an answer that was not asked for: {answer}"

    def receive_all(self) -> list[WireAnswer]:
        """All answers until the server closes the connection."""
        answers = []
        while (answer := self.receive_or_end()) is not None:
            answers.append(answer)
        return answers

    def receive_statuses(self) -> list[int]:
        """The statuses of all that comes until the server closes, also where it is not known with
        which method it was asked, so that bodies cannot be told apart."""
        received = bytearray()
        with contextlib.suppress(*_GONE):
            while piece := self._incoming.read1():
                received += piece
        return [int(status) for status in _ANY_STATUS_LINE.findall(received)]

    def receive_bytes(self, size_bytes: int) -> bytes:
        """Bytes of whatever comes, fewer only at the end."""
        return self._incoming.read(size_bytes)

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while (line := self._incoming.readline()) != b"\r\n":
            match = _FIELD_LINE.match(line)
            assert match, f"no header line: {line!r}"
            name, value = match[1].decode("ascii").lower(), match[2].decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            assert "content-length" not in headers
            return b"".join(iter(self._chunk, b""))
        size_bytes = int(headers["content-length"])
        body = self._incoming.read(size_bytes)
        assert len(body) == size_bytes, "the body is cut"
        return body

    def _chunk(self) -> bytes:
        size_bytes = int(self._incoming.readline(), 16)
        chunk = self._incoming.read(size_bytes)
        assert len(chunk) == size_bytes, "the body is cut"
        assert self._incoming.read(2) == b"\r\n"
        return chunk


def compose(
    method: str,
    target: str | bytes,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    host: str | None = "localhost",
    content_length: int | None = None,
) -> bytes:
    """A request; with a ``body`` its Content-Length is added unless another one is given."""
    lines = [method.encode() + b" " + _latin(target) + b" HTTP/1.1"]
    if host is not None:
        lines.append(b"Host: " + _latin(host))
    length = content_length
    if length is None and body is not None:
        length = len(body)
    if length is not None:
        lines.append(f"Content-Length: {length}".encode())
    lines += [_latin(name) + b": " + _latin(value) for name, value in (headers or {}).items()]
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


def _latin(text: str | bytes) -> bytes:
    return text.encode("latin-1") if isinstance(text, str) else text
