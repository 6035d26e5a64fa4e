"""How is a number of things written?"""

from __future__ import annotations

import pytest

from podstead.core.counting import counted
from podstead.core.errors import RateLimited


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 seconds"), (1, "1 second"), (2, "2 seconds"), (60, "60 seconds")]
)
def test_one_thing_is_in_the_singular(number: int, text: str) -> None:
    assert counted(number, "second") == text
    assert str(RateLimited(retry_after_s=number)).endswith(f"Try again in {text}.")
