"""Requests with placeholders, responses, and the one error.

A request may contain placeholders, which are filled in each time it is sent:

- `SEQUENCE`: the running number of the request in eight digits. It is as long as its replacement,
  so a Content-Length computed with the placeholder remains correct.
- `PROOF`: one of the proofs of the load, each used once.
- `ADDRESS`: an IPv4 address that changes every fifty requests, for a server that limits writes
  per client address and has no setting to turn this off.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SEQUENCE: Final = "SEQUENCE"
ADDRESS: Final = "ADDRESS"
PROOF: Final = "PROOF"
REQUESTS_PER_ADDRESS: Final = 50

JSON_LD: Final = "application/ld+json"
TURTLE: Final = "text/turtle"
N3: Final = "text/n3"
SPARQL_UPDATE: Final = "application/sparql-update"
OCTETS: Final = "application/octet-stream"


class WrongAnswer(Exception):
    """A server answered, but not with what was asked for: the figure is void."""


class NotMeasurable(Exception):
    """The answers are right, but the load generator cannot take them: there is no figure."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP/1.1 request; `path` is what stands in the request line."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: str | bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response; header names are lower-case.

    `size_bytes` counts status line, header section and body as they came over the wire; it is
    None when the body was chunked, because the chunk sizes are not known.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    size_bytes: int | None

    @property
    def media_type(self) -> str:
        """The Content-Type without parameters, in lower case; empty when there is none."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    def require(self, *statuses: int) -> Answer:
        """Return itself when the status is one of these.

        Raises:
            WrongAnswer: any other status.
        """
        if self.status not in statuses:
            excerpt = " ".join(self.body[:200].decode("utf-8", "replace").split())
            raise WrongAnswer(f"status {self.status} instead of {statuses}: {excerpt}")
        return self


def sequence_text(number: int) -> str:
    """Return what stands in place of `SEQUENCE` in request `number`."""
    return f"{number:08d}"


def address_text(number: int) -> str:
    """Return what stands in place of `ADDRESS` when the address block's number is `number`."""
    return str(IPv4Address("10.0.0.0") + number)
