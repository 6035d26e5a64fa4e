"""The interface to ``git http-backend``: the Common Gateway Interface.

Pure: a request becomes environment variables (RFC 3875, section 4.1), and the head of a response is
parsed into a value (section 6.3). Only the variables and fields that git needs are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, ServerTrouble, UnsupportedMediaType
from podstead.core.media_types import essence
from podstead.git.requests import GitRequest

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
