"""Numbers with nouns in messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """The number with its noun, as in "1 second", "2 seconds" and "0 repositories"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{number} {noun}s"
