"""When may the next message go out on a channel with a rate? (N-13)

At most one message an interval. What comes in between is not dropped but taken together: the last
notice is told when the interval is over, so a receiver is never left with an old state. Pure: time
comes in as milliseconds of any steady clock.
"""

from __future__ import annotations

from podstead.notifications.notification import Notification


class Throttle:
    """Holds back what comes too early."""

    def __init__(self, rate_ms: int | None) -> None:
        """``None`` and 0 hold nothing back."""
        self._rate_ms = rate_ms or 0
        self._free_from_ms: int | None = None
        self._held: Notification | None = None

    def offer(self, notification: Notification, *, now_ms: int) -> Notification | None:
        """The notice if it may go out at once, else ``None``, and it is held back instead of the
        one that was."""
        if self._free_from_ms is not None and now_ms < self._free_from_ms:
            self._held = notification
            return None
        self._sent(now_ms)
        return notification

    @property
    def due_ms(self) -> int | None:
        """When what is held back may go out, ``None`` if nothing is."""
        return None if self._held is None else self._free_from_ms

    def release(self, *, now_ms: int) -> Notification | None:
        """What was held back, if its time has come."""
        held, due_ms = self._held, self.due_ms
        if held is None or due_ms is None or now_ms < due_ms:
            return None
        self._sent(now_ms)
        return held

    def _sent(self, now_ms: int) -> None:
        self._held = None
        if self._rate_ms:
            self._free_from_ms = now_ms + self._rate_ms
