"""Has a host failed so often lately that it should be left alone (A-191)?

A host that failed several times in a row is not asked for a while. After the pause one fetch may
try; meanwhile the others stay stopped, because letting the trial through begins the next pause. Its
success closes the circuit. Pure apart from its own state: the time comes in with each call.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.outbound.cache import ExpiringCache
from podstead.outbound.errors import CircuitOpen

MAX_HOSTS = 4096
# Failures further apart than this are not "in a row"; long against any pause.
_FORGET_AFTER_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class _Trouble:
    failures: int
    stopped_until_ms: int


class CircuitBreaker:
    """Counts the failures of each host."""

    def __init__(self, *, max_failures: int, pause_s: float) -> None:
        self._max_failures = max_failures
        self._pause_ms = int(pause_s * 1000)
        self._troubles: ExpiringCache[str, _Trouble] = ExpiringCache(max_weight=MAX_HOSTS)

    def check(self, host: str, now_ms: int) -> None:
        """Let a fetch from the host pass. Raises CircuitOpen."""
        trouble = self._troubles.get(host, now_ms)
        if trouble is None or trouble.failures < self._max_failures:
            return
        if now_ms < trouble.stopped_until_ms:
            raise CircuitOpen
        self._remember(host, trouble.failures, now_ms)

    def failed(self, host: str, now_ms: int) -> None:
        """The host was asked and did not answer properly."""
        trouble = self._troubles.get(host, now_ms)
        self._remember(host, 1 if trouble is None else trouble.failures + 1, now_ms)

    def succeeded(self, host: str) -> None:
        """The host answered."""
        self._troubles.discard(host)

    def _remember(self, host: str, failures: int, now_ms: int) -> None:
        self._troubles.put(
            host,
            _Trouble(failures, now_ms + self._pause_ms),
            expires_at_ms=now_ms + self._pause_ms + _FORGET_AFTER_MS,
        )
