"""Whole numbers that people and programs send."""

import pytest

from podstead.core.numbers import whole_number


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("7", 7), ("007", 7), ("999", 999), ("1000", None)]
)
def test_a_number_up_to_the_largest_is_read(text: str, number: int | None) -> None:
    assert whole_number(text, 999) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "1_0", "٣", "²", "1e3", "9" * 9999])
def test_anything_else_is_no_number(text: str) -> None:
    assert whole_number(text, 999) is None
