"""When the next backup of a series is made, and what happens when one fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Never

import pytest

from podstead.app.operator.backup_series import (
    RETRY_S,
    BackupSeries,
    SeriesResult,
    keep_backing_up,
)
from podstead.config import Settings, read_settings
from podstead.storage.backup.reading import MANIFEST
from podstead.storage.backup.sinks import partial_file, partial_folder
from podstead.storage.root import prepare_root


class _Enough(Exception):
    """Ends the service in a test."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    prepare_root(tmp_path / "root")
    return read_settings({"root": str(tmp_path / "root")}, {}, folder=tmp_path)


@pytest.fixture
def series(settings: Settings, tmp_path: Path) -> BackupSeries:
    return BackupSeries(settings, tmp_path / "series", ())


def fail(error: Exception) -> Never:
    raise error


def no_step(_step: str, _done: int, _total: int) -> None:
    """Nobody looks."""


async def run(series: BackupSeries, *, rounds: int) -> tuple[list[SeriesResult], list[float]]:
    """The backups that are made until the service has waited so often, and the waits."""
    results: list[SeriesResult] = []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == rounds:
            raise _Enough

    with pytest.raises(_Enough):
        await keep_backing_up(
            series, 3600, on_step=no_step, on_result=results.append, on_failure=fail, wait=wait
        )
    return results, waits


async def test_the_first_backup_is_made_at_once_and_the_next_when_it_is_due(
    series: BackupSeries,
) -> None:
    results, waits = await run(series, rounds=1)
    assert [result.folder.parent for result in results] == [series.place]
    assert 3500 < waits[0] <= 3600


async def test_a_service_that_is_started_again_goes_on_with_the_series(
    series: BackupSeries,
) -> None:
    await run(series, rounds=1)
    results, waits = await run(series, rounds=1)
    assert results == []
    assert 3500 < waits[0] <= 3600


async def test_after_a_failure_it_is_tried_again_soon(series: BackupSeries) -> None:
    shutil.rmtree(series.settings.root)
    failures: list[Exception] = []

    def wait(seconds: float) -> None:
        assert seconds == RETRY_S
        if len(failures) == 2:
            raise _Enough

    with pytest.raises(_Enough):
        await keep_backing_up(
            series,
            3600,
            on_step=no_step,
            on_result=lambda _: None,
            on_failure=failures.append,
            wait=wait,
        )
    assert "There is no data" in str(failures[0])
    assert not series.place.exists() or not list(series.place.iterdir())


async def test_an_incomplete_backup_is_not_part_of_the_series(series: BackupSeries) -> None:
    await run(series, rounds=1)
    (folder,) = series.existing().values()
    (folder / MANIFEST).unlink()
    assert series.existing() == {}
    assert series.due_in_s(3600, now_s=datetime.now(tz=UTC).timestamp()) == 0


def test_what_a_killed_backup_left_is_removed_by_the_next(tmp_path: Path) -> None:
    abandoned = tmp_path / ".b.partial-1"
    abandoned.mkdir()
    (abandoned / "file").write_text("x")
    with partial_folder(tmp_path / "a") as in_progress, partial_folder(tmp_path / "b"):
        assert in_progress.exists(), "one in progress is not abandoned"
        assert not abandoned.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("partial", [partial_folder, partial_file])
def test_a_backup_that_fails_leaves_nothing(
    tmp_path: Path, partial: Callable[[Path], AbstractContextManager[Path]]
) -> None:
    with pytest.raises(_Enough), partial(tmp_path / "backup"):
        raise _Enough
    assert list(tmp_path.iterdir()) == []
