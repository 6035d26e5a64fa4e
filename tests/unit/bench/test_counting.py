"""A change of the number of instructions is noticed, and one of the machine's is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import counting
from bench.counting import Count, compared, per_request, read_recorded, recorded_text
from bench.requests import COUNTED

_KEY = COUNTED[0].key


def _every(instructions: int) -> dict[str, Count]:
    return {counted.key: Count(instructions, 10) for counted in COUNTED}


def test_there_are_ten_and_each_is_recorded() -> None:
    _, recorded = read_recorded(counting.RECORDED)
    assert len(COUNTED) == 10
    assert recorded.keys() == {counted.key for counted in COUNTED}


@pytest.mark.parametrize(
    ("now", "is_notable"), [(1029, False), (1031, True), (971, False), (969, True)]
)
def test_more_than_three_per_cent_either_way_is_notable(now: int, *, is_notable: bool) -> None:
    rows = compared({_KEY: Count(now, 10)}, {_KEY: Count(1000, 10)})
    assert [row.is_notable for row in rows] == [is_notable]


def test_a_request_without_a_record_is_notable() -> None:
    assert [row.is_notable for row in compared({_KEY: Count(1, 1)}, {})] == [True]


def test_what_belongs_to_no_request_is_left_out() -> None:
    start, request = 7_000_000, 1_234
    totals = [
        start + length * counted.times * request for counted in COUNTED for length in counting._RUNS
    ]
    assert per_request(totals) == [request] * len(COUNTED)


def test_one_run_that_was_disturbed_changes_nothing() -> None:
    totals = [length * counted.times * 1_000 for counted in COUNTED for length in counting._RUNS]
    totals[2] += 350_000
    assert per_request(totals) == [1_000] * len(COUNTED)


def test_a_notable_change_fails_and_asks_for_a_line_in_the_change_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "counts.json"
    record.write_text(recorded_text(_every(1000)), encoding="utf-8")
    monkeypatch.setattr(counting, "RECORDED", record)
    monkeypatch.setattr(counting, "measured", lambda _keep: _every(1029))
    assert counting.main([]) == 0
    monkeypatch.setattr(counting, "measured", lambda _keep: _every(1031))
    assert counting.main([]) == 1
    assert "CHANGELOG.md" in capsys.readouterr().out


def test_recording_keeps_what_was_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "counts.json"
    monkeypatch.setattr(counting, "RECORDED", record)
    monkeypatch.setattr(counting, "measured", lambda _keep: _every(42))
    assert counting.main(["--record"]) == 0
    assert read_recorded(record)[1] == _every(42)
    assert json.loads(record.read_text())["environment"].startswith("Python ")
