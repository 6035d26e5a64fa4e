"""Delays messages on channels with a rate (N-13).

At most one message is sent in each interval. Of the notifications in between, the last is sent when
the interval is over, so a receiver is never left with an old state. Pure: callers pass the time, in
milliseconds of any monotonic clock.
"""

from __future__ import annotations

from podstead.notifications.notification import Notification


class Throttle:
    """Holds back notifications that come too early."""

    def __init__(self, rate_ms: int | None) -> None:
        """With a rate of ``None`` or 0, nothing is held back."""
        self._rate_ms = rate_ms or 0
        self._free_from_ms: int | None = None
        self._held: Notification | None = None

    def offer(self, notification: Notification, *, now_ms: int) -> Notification | None:
        """The notification if it may be sent now; otherwise ``None``, and it replaces the one that
        is held back."""
        if self._free_from_ms is not None and now_ms < self._free_from_ms:
            self._held = notification
            return None
        self._sent(now_ms)
        return notification

    @property
    def due_ms(self) -> int | None:
        """When the notification held back may be sent; ``None`` if there is none."""
        return None if self._held is None else self._free_from_ms

    def release(self, *, now_ms: int) -> Notification | None:
        """The notification held back, if it may be sent now."""
        held, due_ms = self._held, self.due_ms
        if held is None or due_ms is None or now_ms < due_ms:
            return None
        self._sent(now_ms)
        return held

    def _sent(self, now_ms: int) -> None:
        self._held = None
        if self._rate_ms:
            self._free_from_ms = now_ms + self._rate_ms
