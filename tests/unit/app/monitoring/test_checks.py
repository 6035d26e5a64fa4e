"""Is a server ready? Not if its clock has been set back, and not if the disk is full."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.app.monitoring.checks import check_clock, check_disk
from podstead.storage.disk_space import DiskSpace

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("newest_ms", "ok"),
    [(None, True), (NOW_MS, True), (NOW_MS + 60_000, True), (NOW_MS + 61_000, False)],
)
def test_the_clock_must_not_be_behind_what_is_stored(newest_ms: int | None, ok: bool) -> None:
    check = check_clock(NOW_MS, newest_ms)
    assert check.ok == ok
    assert ok or "61 seconds behind" in check.detail


def test_the_disk_must_have_room(tmp_path: Path) -> None:
    assert check_disk(DiskSpace(tmp_path)).ok
    assert not check_disk(DiskSpace(tmp_path, min_free_bytes=2**62)).ok
