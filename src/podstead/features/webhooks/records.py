"""What is stored about sending on a channel: how far it got, and its failed attempts (N-21). Pure.

The waits before another attempt grow, so that a receiver that is down gets few requests, and one
that restarts gets the message soon. After a day the server gives up on the channel.
"""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from podstead.storage.record_store import RecordKind

WAITS_MS: Final = (1000, 5000, 30_000, 300_000, 1_800_000)
"""The waits before the second attempt, the third, and so on. The last one is repeated."""
GIVEN_UP_AFTER_MS: Final = 24 * 3600 * 1000
GONE: Final = 410
"""The status with which a receiver ends the channel (RFC 9110 section 15.5.11)."""


@dataclass(frozen=True, slots=True)
class DeliveryAttempts:
    """The failed attempts to send the next message; times are Unix milliseconds."""

    failures: int = 0
    first_failed_ms: int = 0
    next_ms: int = 0

    def failed(self, *, now_ms: int) -> "DeliveryAttempts":
        """The state after one more failed attempt."""
        wait_ms = WAITS_MS[min(self.failures, len(WAITS_MS) - 1)]
        first_failed_ms = self.first_failed_ms if self.failures else now_ms
        return replace(
            self,
            failures=self.failures + 1,
            first_failed_ms=first_failed_ms,
            next_ms=now_ms + wait_ms,
        )

    def are_enough(self, *, now_ms: int) -> bool:
        """Whether the server gives up."""
        return self.failures > 0 and now_ms - self.first_failed_ms >= GIVEN_UP_AFTER_MS


class Webhook(msgspec.Struct, frozen=True):
    """How far sending on a channel got. Its record has the same key as the channel.

    ``position`` is the sequence number of the last change that is done with. ``given_up`` is the
    reason why nothing is sent any more. ``greeted`` is true if the ``state`` of the channel has
    been compared with the topic (N-14). ``state`` is the answer that was told last, if the topic is
    a live query. Times are Unix milliseconds.
    """

    position: int
    greeted: bool = False
    failures: int = 0
    first_failed_ms: int = 0
    next_ms: int = 0
    given_up: str | None = None
    state: str | None = None

    @property
    def attempts(self) -> DeliveryAttempts:
        return DeliveryAttempts(self.failures, self.first_failed_ms, self.next_ms)


WEBHOOKS: Final = RecordKind("webhook", Webhook)
