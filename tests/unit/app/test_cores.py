"""The number of usable cores respects every limit that the kernel knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podstead.app.process.run import MAX_CORES, usable_cores


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def system(folder: Path, memberships: str, files: dict[str, str]) -> Path:
    """A folder with the files that the kernel shows to a process in these control groups."""
    for name, text in {"proc/self/cgroup": memberships, **files}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return folder


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("memberships", "files", "expected"),
    [
        ("0::/", {}, 8),
        ("0::/", {"cpu.max": "max 100000"}, 8),
        ("0::/", {"cpu.max": "300000 100000"}, 3),
        ("0::/", {"cpu.max": "150000 100000"}, 1),
        ("0::/", {"cpu.max": "20000 100000"}, 1),
        ("0::/", {"cpu.max": "1600000 100000"}, 8),
        ("0::/a/b", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "max 100000"}, 4),
        ("0::/a/b", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "200000 100000"}, 2),
        ("0::/unknown/here", {"cpu.max": "200000 100000"}, 2),
        ("0::/../other", {"cpu.max": "200000 100000"}, 2),
        ("2:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "-1"}, 8),
        (
            "3:memory:/a\n2:cpu,cpuacct:/a\n0::/",
            {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "50000"},
            5,
        ),
        ("4:cpuset:/a", {"cpu/a/cpu.cfs_quota_us": "1", "cpu/a/cpu.cfs_period_us": "1"}, 8),
        ("0::/", {"cpu.max": "what is this"}, 8),
    ],
)
def test_the_limits_of_control_groups_apply(
    tmp_path: Path, memberships: str, files: dict[str, str], expected: int
) -> None:
    mounted = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    assert usable_cores(system(tmp_path, memberships, mounted)) == expected


def test_a_process_bound_to_one_core_uses_one() -> None:
    """As taskset does it; in a process of its own, since affinity is for good."""
    code = (
        "import os; from podstead.app.process.run import usable_cores;"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(usable_cores())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    )
    assert printed.stdout == "1\n"


@pytest.mark.usefixtures("eight_cores")
def test_a_system_without_control_groups_has_its_cores(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 8


def test_without_affinity_all_cores_are_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cores(tmp_path) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(tmp_path) == 1
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    assert usable_cores(tmp_path) == MAX_CORES
