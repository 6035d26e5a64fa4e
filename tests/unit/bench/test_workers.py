"""The table of workers compares each number with one worker, and names the goal of two."""

from __future__ import annotations

import os

from bench.workers import EXERCISES, Figures, generator_cores, pinned, report, server_cores


def _table(two_per_s: float) -> dict[str, dict[int, Figures]]:
    figures = {1: Figures([100], [50]), 2: Figures([two_per_s], [55]), 4: Figures([200], [60])}
    return {title: figures for title, _, _ in EXERCISES}


def test_two_workers_are_compared_with_their_goal() -> None:
    reads, writes = report(_table(169), 4).splitlines()[4:6]
    assert "169 (1.69); 55 µs" in reads
    assert "**missed**" in reads
    assert "**missed**" not in writes
    assert "**missed**" not in report(_table(170), 4)


def test_the_generator_has_a_processor_of_its_own_where_there_are_three() -> None:
    cores = sorted(os.sched_getaffinity(0))
    assert generator_cores() == cores[-1:]
    assert (set(server_cores()) & set(generator_cores()) == set()) == (len(cores) >= 3)
    assert pinned([0, 2]) == ["taskset", "--cpu-list", "0,2"]
