"""Which workers may take what they have committed themselves for all that was committed?"""

from __future__ import annotations

import pytest

from podstead.app.live_updates import commits_alone
from podstead.config import Settings


@pytest.mark.parametrize(
    ("workers", "database", "expected"),
    [
        (1, None, True),
        (2, None, False),
        (None, None, False),
        (1, "postgresql://db.example/podstead", False),
    ],
)
def test_only_the_one_worker_of_an_embedded_database_commits_alone(
    workers: int | None, database: str | None, *, expected: bool
) -> None:
    assert commits_alone(Settings(workers=workers, database=database)) == expected
