"""Whole numbers as people and programs write them."""


def whole_number(text: str, at_most: int) -> int | None:
    """The number that ASCII digits state; ``None`` for any other text, and for a number that is
    larger than ``at_most``."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(at_most)):
        return None
    number = int(text)
    return number if number <= at_most else None
