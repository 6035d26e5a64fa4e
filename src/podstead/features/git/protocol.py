"""Recognizing requests of git's smart HTTP protocol (gitprotocol-http).

For a container ``<c>/``, ``<c>/info/refs?service=…`` advertises references, ``<c>/git-upload-pack``
serves fetches, and ``<c>/git-receive-pack`` receives pushes. Other methods and queries of these
URLs, and the files of the dumb protocol, are ordinary resources. Pure.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from podstead.core.errors import BadRequest, BodyTooLarge, ServerTrouble, UnsupportedMediaType
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.media_types import essence

_ADVERTISEMENT: Final = "info/refs"


class Service(Enum):
    """A service of the protocol, named after the program that implements it."""

    UPLOAD_PACK = "git-upload-pack"
    """Clone and fetch."""
    RECEIVE_PACK = "git-receive-pack"
    """Push."""


_SERVICES: Final = {service.value: service for service in Service}
_QUERIES: Final = {f"service={service.value}".encode("ascii"): service for service in Service}


@dataclass(frozen=True, slots=True)
class GitRequest:
    """One request of the protocol; ``advertises`` requests the references and has no content."""

    container: ResourcePath
    service: Service
    advertises: bool

    @property
    def is_push(self) -> bool:
        """Whether the request needs the modes for a push, even for the advertisement."""
        return self.service is Service.RECEIVE_PACK

    @property
    def path_in_repository(self) -> str:
        """The path after the container's path."""
        return _ADVERTISEMENT if self.advertises else self.service.value

    @property
    def query(self) -> str:
        return f"service={self.service.value}" if self.advertises else ""

    @property
    def content_type(self) -> str:
        """The media type of the content."""
        return f"application/x-{self.service.value}-request"


def git_request(method: str, path: ResourcePath, query: bytes) -> GitRequest | None:
    """Parse a request; ``None`` if it is not one of git's protocol."""
    if method == "GET":
        service = _QUERIES.get(query)
        container = path.removesuffix(_ADVERTISEMENT)
    elif method == "POST" and not query:
        service = _SERVICES.get(path[path.rindex("/") + 1 :])
        container = path if service is None else path.removesuffix(service.value)
    else:
        return None
    if service is None or container == path or not container.endswith("/"):
        return None
    place = ResourcePath(container)
    if storage_root(place) is None:
        return None
    return GitRequest(place, service, advertises=method == "GET")


MAX_HEAD_BYTES: Final = 8 * 1024
"""The head of git's responses has a few hundred bytes."""

_CODINGS: Final = frozenset({"gzip", "x-gzip"})
"""The codings with which git compresses requests."""
_PROTOCOL: Final = re.compile(r"[a-z0-9]+(?:=[a-z0-9.-]+)?(?::[a-z0-9]+(?:=[a-z0-9.-]+)?)*")
_MAX_PROTOCOL_CHARACTERS: Final = 100
_FIELDS: Final = frozenset({"content-type", "cache-control", "expires", "pragma"})
_FIELD: Final = re.compile(r"([A-Za-z-]+): ([\x20-\x7e]*)")
_STATUS: Final = re.compile(r"([2-5][0-9]{2}) [\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Transfer:
    """The headers of a git request, as received."""

    content_type: str | None = None
    content_coding: str | None = None
    protocol: str | None = None
    size_bytes: int | None = None

    @property
    def is_compressed(self) -> bool:
        """Whether the content must be decompressed before it is passed to git."""
        return self.content_coding is not None

    def check(self, asked: GitRequest) -> None:
        """Check the headers. Raises BadRequest and UnsupportedMediaType."""
        protocol = self.protocol
        if protocol is not None and (
            len(protocol) > _MAX_PROTOCOL_CHARACTERS or not _PROTOCOL.fullmatch(protocol)
        ):
            raise BadRequest("The Git-Protocol header is malformed")
        if asked.advertises:
            return
        if self.content_type is None or essence(self.content_type) != asked.content_type:
            raise UnsupportedMediaType(f"The Content-Type must be {asked.content_type}")
        if self.content_coding is not None and self.content_coding.lower() not in _CODINGS:
            raise UnsupportedMediaType("The only supported Content-Encoding is gzip")


def variables(
    asked: GitRequest,
    transfer: Transfer,
    *,
    directory: str,
    agent: str | None,
    client_address: str,
) -> dict[str, str]:
    """The environment variables of http-backend for a request that :meth:`Transfer.check` accepted.

    ``directory`` is the absolute path of the repository, ``agent`` the IRI of the agent. For
    compressed content, there is no length, because git receives the decompressed content.
    """
    root, _, name = directory.rpartition("/")
    said: Mapping[str, str | None] = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REQUEST_METHOD": "GET" if asked.advertises else "POST",
        "QUERY_STRING": asked.query,
        "GIT_PROJECT_ROOT": root,
        "PATH_INFO": f"/{name}/{asked.path_in_repository}",
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": transfer.protocol,
        "REMOTE_USER": agent,
        "REMOTE_ADDR": client_address,
        "CONTENT_TYPE": None if asked.advertises else asked.content_type,
        "CONTENT_LENGTH": None if asked.advertises else _length(transfer),
    }
    return {name: value for name, value in said.items() if value is not None}


def _length(transfer: Transfer) -> str | None:
    if transfer.size_bytes is None or transfer.is_compressed:
        return None
    return str(transfer.size_bytes)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a response: its status and the fields to pass on, with names in lower case."""

    status: int
    fields: tuple[tuple[str, str], ...]


def read_head(head: bytes) -> Head:
    """Parse the lines before the empty one. Raises ServerTrouble if they are malformed."""
    status, fields = 200, []
    for line in head.decode("latin-1").splitlines():
        field = _FIELD.fullmatch(line)
        if field is None:
            raise ServerTrouble("The response of git cannot be parsed")
        name, value = field[1].lower(), field[2]
        if name == "status":
            said = _STATUS.fullmatch(value)
            if said is None:
                raise ServerTrouble("The response of git has no status")
            status = int(said[1])
        elif name in _FIELDS:
            fields.append((name, value))
    return Head(status, tuple(fields))


MAX_COMMAND_BYTES: Final = 10 * 1024 * 1024
"""The limit that http-backend applies to requests before decompression (http.maxRequestBuffer)."""

_GZIP_WINDOW_BITS: Final = 16 + zlib.MAX_WBITS
_PIECE_BYTES: Final = 64 * 1024
_LENGTH_DIGITS: Final = 4
_HEXADECIMAL: Final = frozenset(b"0123456789abcdefABCDEF")


async def decompressed(content: AsyncIterator[bytes], *, limit_bytes: int) -> AsyncIterator[bytes]:
    """Decompress one gzip member (RFC 1952), in pieces of bounded size.

    Raises BodyTooLarge if the result exceeds the limit, and BadRequest if the data is damaged,
    truncated, or followed by anything.
    """
    inflating = zlib.decompressobj(_GZIP_WINDOW_BITS)
    held_bytes = 0
    async for chunk in content:
        for piece in _pieces(inflating, chunk):
            held_bytes += len(piece)
            if held_bytes > limit_bytes:
                raise BodyTooLarge(f"The decompressed content is larger than {limit_bytes} bytes")
            yield piece
        if inflating.unused_data:
            raise BadRequest("The content continues after the gzip data")
    if not inflating.eof:
        raise BadRequest("The content is truncated")


def _pieces(inflating: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    """Decompress a chunk. Raises BadRequest."""
    rest, is_full = chunk, False
    while rest or is_full:  # after a full piece, the decompressor can have more output
        try:
            piece = inflating.decompress(rest, _PIECE_BYTES)
        except zlib.error as error:
            raise BadRequest("The content is not valid gzip data") from error
        rest, is_full = inflating.unconsumed_tail, len(piece) == _PIECE_BYTES
        if piece:
            yield piece


async def limit_commands(content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass on the content of a push, and limit the size of the commands before the flush packet.

    Raises BodyTooLarge. Malformed packets (gitprotocol-common, pkt-line) are left for git to
    refuse.
    """
    commands = _Commands()
    async for piece in content:
        commands.feed(piece)
        yield piece


class _Commands:
    """Finds the flush packet that ends the commands, and measures the size before it."""

    def __init__(self) -> None:
        self._over = False
        self._length = b""
        self._to_skip_bytes = 0
        self._seen_bytes = 0

    def feed(self, piece: bytes) -> None:
        """Process a piece. Raises BodyTooLarge."""
        at = 0
        while at < len(piece) and not self._over:
            at = self._skip(piece, at) if self._to_skip_bytes else self._read_length(piece, at)
        if not self._over and self._seen_bytes > MAX_COMMAND_BYTES:
            raise BodyTooLarge(f"The commands of a push can have at most {MAX_COMMAND_BYTES} bytes")

    def _skip(self, piece: bytes, at: int) -> int:
        skipped_bytes = min(self._to_skip_bytes, len(piece) - at)
        self._to_skip_bytes -= skipped_bytes
        self._seen_bytes += skipped_bytes
        return at + skipped_bytes

    def _read_length(self, piece: bytes, at: int) -> int:
        """Read the available part of the four digits at the start of a packet."""
        taken = piece[at : at + _LENGTH_DIGITS - len(self._length)]
        self._length += taken
        self._seen_bytes += len(taken)
        if len(self._length) == _LENGTH_DIGITS:
            # An invalid length ends git's reading like a flush packet.
            length = int(self._length, 16) if _HEXADECIMAL.issuperset(self._length) else 0
            self._over = length == 0
            self._to_skip_bytes = max(length - _LENGTH_DIGITS, 0)
            self._length = b""
        return at + len(taken)
