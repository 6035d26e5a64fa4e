"""When is a message sent again that a receiver did not take, and when is it given up? (N-21)

Pure: what happened and the time come in, the plan comes out. The waits grow, so that a receiver
that is down is not pestered and one that restarts is not kept waiting; after a day the channel is
given up, since nobody seems to care.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

WAITS_MS: Final = (1000, 5000, 30_000, 300_000, 1_800_000)
"""Before the second attempt, the third, and so on; the last one again and again."""
GIVEN_UP_AFTER_MS: Final = 24 * 3600 * 1000
GONE: Final = 410
"""The status by which a receiver asks to be left alone (RFC 9110 section 15.5.11)."""


@dataclass(frozen=True, slots=True)
class DeliveryAttempts:
    """What was tried in vain for the message that is next; times are Unix milliseconds."""

    failures: int = 0
    first_failed_ms: int = 0
    next_ms: int = 0

    def failed(self, *, now_ms: int) -> DeliveryAttempts:
        """One more in vain."""
        wait_ms = WAITS_MS[min(self.failures, len(WAITS_MS) - 1)]
        first_failed_ms = self.first_failed_ms if self.failures else now_ms
        return replace(
            self,
            failures=self.failures + 1,
            first_failed_ms=first_failed_ms,
            next_ms=now_ms + wait_ms,
        )

    def are_enough(self, *, now_ms: int) -> bool:
        """Whether there is no point in another."""
        return self.failures > 0 and now_ms - self.first_failed_ms >= GIVEN_UP_AFTER_MS
