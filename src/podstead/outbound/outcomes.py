"""Counts the outcomes of requests to other servers, by purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from podstead.outbound.errors import CircuitOpen, Congested, Refused
from podstead.outbound.foreign_documents import Purpose

SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
REFUSED: Final = "refused"
"""The guard forbade the request, or the address to which it led."""
NOT_SENT: Final = "not sent"
"""The origin has failed too often, or too many requests were in progress."""


class Outcomes:
    """Counts the outcomes of the requests of one kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Purpose, str]] = Counter()

    def note(self, purpose: Purpose, failure: BaseException | None) -> None:
        """Count one request, with what it raised."""
        self._counts[purpose, _outcome(failure)] += 1

    def counts(self) -> Mapping[tuple[Purpose, str], int]:
        """How many requests had which outcome."""
        return self._counts


def _outcome(failure: BaseException | None) -> str:
    if failure is None:
        return SUCCEEDED
    if isinstance(failure, Refused):
        return REFUSED
    return NOT_SENT if isinstance(failure, CircuitOpen | Congested) else FAILED
