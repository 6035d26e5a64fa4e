"""As much of HTTP/2 as a misbehaving client needs: frames as bytes (RFC 9113, RFC 7541)."""

from __future__ import annotations

from collections.abc import Mapping

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _SETTINGS, _PING = 1, 4, 6
_END_STREAM_AND_HEADERS = 0x5
_LONGEST = 126
"""What a length in one byte can be (RFC 7541 section 5.1)."""


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    """One frame (RFC 9113 section 4.1)."""
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


SETTINGS = frame(_SETTINGS)
PING = frame(_PING, b"pingpong")


def get(target: str, *, host: str, headers: Mapping[str, str] | None = None) -> bytes:
    """A GET request, as the first on its connection."""
    pseudo = {":method": "GET", ":scheme": "http", ":path": target, ":authority": host}
    fields = {**pseudo, **(headers or {})}
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
    return frame(_HEADERS, block, flags=_END_STREAM_AND_HEADERS, stream=1)


def _text(text: str) -> bytes:
    assert len(text) <= _LONGEST
    return bytes((len(text),)) + text.encode("ascii")
