"""Pauses requests to origins that have failed too often (A-191).

After several failures in a row, nothing is fetched from an origin for the same purpose during a
pause. A dead port or a failing URL does not affect other origins, nor other purposes at this one.
After the pause one fetch is allowed as a trial, and its start begins the next pause, so the others
have to wait. If it succeeds, the circuit is closed. Pure apart from its own state: the caller
passes the time with each call.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from podstead.core.caches import ExpiringCache
from podstead.outbound.errors import CircuitOpen
from podstead.outbound.foreign_documents import Purpose
from podstead.outbound.urls import Origin

MAX_CIRCUITS = 4096
# Failures that are further apart than this are not "in a row"; much longer than any pause.
_FORGET_AFTER_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Circuit:
    """An origin and a purpose, which fail and recover together."""

    purpose: Purpose
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Failures:
    failures: int
    stopped_until_ms: int


class CircuitBreaker:
    """Counts the failures of each circuit."""

    def __init__(self, *, max_failures: int, pause_s: float) -> None:
        self._max_failures = max_failures
        self._pause_ms = int(pause_s * 1000)
        self._failures: ExpiringCache[Circuit, _Failures] = ExpiringCache(max_weight=MAX_CIRCUITS)

    def check(self, circuit: Circuit, now_ms: int) -> None:
        """Allow a fetch. Raises CircuitOpen."""
        known = self._failures.get(circuit, now_ms)
        if known is None or known.failures < self._max_failures:
            return
        if now_ms < known.stopped_until_ms:
            raise CircuitOpen(ceil((known.stopped_until_ms - now_ms) / 1000))
        self._remember(circuit, known.failures, now_ms)

    def failed(self, circuit: Circuit, now_ms: int) -> None:
        """Record that the origin did not respond properly."""
        known = self._failures.get(circuit, now_ms)
        self._remember(circuit, 1 if known is None else known.failures + 1, now_ms)

    def succeeded(self, circuit: Circuit) -> None:
        """Record that the origin responded."""
        self._failures.discard(circuit)

    def open_circuits(self, now_ms: int) -> int:
        """The number of circuits that are open at this moment."""
        return sum(
            each.failures >= self._max_failures and now_ms < each.stopped_until_ms
            for each in self._failures.values(now_ms)
        )

    def _remember(self, circuit: Circuit, failures: int, now_ms: int) -> None:
        self._failures.put(
            circuit,
            _Failures(failures, now_ms + self._pause_ms),
            expires_at_ms=now_ms + self._pause_ms + _FORGET_AFTER_MS,
        )
