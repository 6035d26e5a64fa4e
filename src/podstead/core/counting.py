"""Numbers with nouns in messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """The number with its noun, as in "1 second" and "2 seconds"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
