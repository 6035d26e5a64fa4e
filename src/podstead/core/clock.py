"""What time is it, and what is random? Both come in as values, so that cores stay pure."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall-clock time; tests move it."""

    def now_ms(self) -> int:
        """Unix time in milliseconds."""


class Randomness(Protocol):
    """Unguessable values."""

    def token_hex(self, size_bytes: int) -> str:
        """``size_bytes`` random bytes as lower-case hex digits."""
