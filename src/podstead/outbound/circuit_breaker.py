"""Has an origin failed so often lately that it should be left alone (A-191)?

An origin that failed several times in a row is not asked for a while, for the same purpose: whoever
names a dead port, or a URL that fails, keeps nobody from another origin, nor from asking this one
for something else. After the pause one fetch may try; meanwhile the others stay stopped, because
letting the trial through begins the next pause. Its success closes the circuit. Pure apart from its
own state: the time comes in with each call.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from podstead.core.expiring_cache import ExpiringCache
from podstead.outbound.errors import CircuitOpen
from podstead.outbound.foreign_documents import Purpose
from podstead.outbound.urls import Origin

MAX_CIRCUITS = 4096
# Failures further apart than this are not "in a row"; long against any pause.
_FORGET_AFTER_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Circuit:
    """What fails and recovers as one."""

    purpose: Purpose
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Trouble:
    failures: int
    stopped_until_ms: int


class CircuitBreaker:
    """Counts the failures of each circuit."""

    def __init__(self, *, max_failures: int, pause_s: float) -> None:
        self._max_failures = max_failures
        self._pause_ms = int(pause_s * 1000)
        self._troubles: ExpiringCache[Circuit, _Trouble] = ExpiringCache(max_weight=MAX_CIRCUITS)

    def check(self, circuit: Circuit, now_ms: int) -> None:
        """Let a fetch pass. Raises CircuitOpen."""
        trouble = self._troubles.get(circuit, now_ms)
        if trouble is None or trouble.failures < self._max_failures:
            return
        if now_ms < trouble.stopped_until_ms:
            raise CircuitOpen(ceil((trouble.stopped_until_ms - now_ms) / 1000))
        self._remember(circuit, trouble.failures, now_ms)

    def failed(self, circuit: Circuit, now_ms: int) -> None:
        """The origin was asked and did not answer properly."""
        trouble = self._troubles.get(circuit, now_ms)
        self._remember(circuit, 1 if trouble is None else trouble.failures + 1, now_ms)

    def succeeded(self, circuit: Circuit) -> None:
        """The origin answered."""
        self._troubles.discard(circuit)

    def _remember(self, circuit: Circuit, failures: int, now_ms: int) -> None:
        self._troubles.put(
            circuit,
            _Trouble(failures, now_ms + self._pause_ms),
            expires_at_ms=now_ms + self._pause_ms + _FORGET_AFTER_MS,
        )
