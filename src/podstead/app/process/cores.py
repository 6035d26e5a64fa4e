"""How many cores may this process use?

The kernel knows three limits: the cores that exist, the affinity of the process (taskset, cpusets),
and the processor time that a control group may take, which is how containers and systemd's CPUQuota
limit a service. The standard library knows only the first two.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MAX_CORES = 64
"""The largest number of workers that the setting accepts."""


def usable_cores(system: Path = Path("/")) -> int:
    """The number of cores, at least 1; a limit of one and a half cores is one.

    ``system`` is the folder in which ``proc`` and ``sys`` are mounted.
    """
    return max(1, min(_cores_by_affinity(), MAX_CORES, *_limits(system)))


def _cores_by_affinity() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limits(system: Path) -> Iterator[int]:
    """The limits of the control groups that the process is in, in whole cores."""
    for line in _read(system / "proc/self/cgroup").splitlines():
        _hierarchy, controllers, group = line.split(":", 2)
        if "cpu" in controllers.split(","):  # version 1
            mount = system / "sys/fs/cgroup/cpu"
        elif not controllers:  # version 2
            mount = system / "sys/fs/cgroup"
        else:
            continue
        # The limit of each group above applies as well. Inside a container, the group may be named
        # as the host knows it; what is mounted then is the container's own group.
        below = mount / group.lstrip("/")
        for folder in (below, *below.parents):
            if folder.is_relative_to(mount):
                yield from _limit_of(folder)


def _limit_of(group: Path) -> Iterator[int]:
    quotas = _read(group / "cpu.max").split() or [
        *_read(group / "cpu.cfs_quota_us").split(),
        *_read(group / "cpu.cfs_period_us").split(),
    ]
    with suppress(ValueError):  # no limit: "max" in version 2, no file in the group at the top
        quota_us, period_us = map(int, quotas)
        if quota_us > 0:  # in version 1, -1 is no limit
            yield quota_us // period_us


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
