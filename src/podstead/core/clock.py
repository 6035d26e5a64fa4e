"""Ports for time and randomness. Pure code receives both as values."""

from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, which tests replace."""

    def now_ms(self) -> int:
        """Unix time in milliseconds."""


class Randomness(Protocol):
    """Unguessable values."""

    def token_hex(self, size_bytes: int) -> str:
        """``size_bytes`` random bytes as lower-case hex digits."""
