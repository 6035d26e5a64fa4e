"""How is a number of things written?"""

from __future__ import annotations

import pytest

from podstead.core.errors import RateLimited
from podstead.core.messages import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 seconds"), (1, "1 second"), (2, "2 seconds"), (60, "60 seconds")]
)
def test_one_thing_is_in_the_singular(number: int, text: str) -> None:
    assert counted(number, "second") == text
    assert str(RateLimited(retry_after_s=number)).endswith(f"Try again in {text}.")


def test_the_plural_is_spelt_as_in_english() -> None:
    assert counted(0, "git repository") == "0 git repositories"
    assert counted(1, "git repository") == "1 git repository"
    assert counted(2, "day") == "2 days"
