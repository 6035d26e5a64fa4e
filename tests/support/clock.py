"""The clock that tests set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class FakeClock:
    """A clock that stands still until a test advances it."""

    time_ms: int = 1_800_000_000_000

    def now_ms(self) -> int:
        """Unix time in milliseconds."""
        return self.time_ms

    def now_s(self) -> int:
        """Unix time in whole seconds."""
        return self.time_ms // 1000

    def monotonic_s(self) -> float:
        """Seconds with their fraction, for what measures how long something takes."""
        return self.time_ms / 1000

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.time_ms += round(seconds * 1000)
