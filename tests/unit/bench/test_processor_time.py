"""The processor time of a server is that of its processes, all threads and ended children
included."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from bench.processes import cpu_s_of

_BURN = "sum(i * i for i in range(2_000_000))"


def _stat(name: str) -> str:
    # proc_pid_stat(5): pid, (comm), state, then the fields from 4 to 13, and utime, stime, cutime
    # and cstime as the fields 14 to 17.
    between = " ".join(str(number) for number in range(4, 14))
    return f"4711 ({name}) S {between} 100 20 3000 400 20 0 1 0"


@pytest.mark.parametrize("name", ["podstead", "a (b) c", "1 2 3) 4 5"])
def test_the_four_times_are_added_whatever_the_program_is_called(name: str) -> None:
    assert cpu_s_of(_stat(name)) == 3520 / os.sysconf("SC_CLK_TCK")


def test_children_that_were_waited_for_are_included() -> None:
    subprocess.run([sys.executable, "-c", _BURN], check=True)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    used_s = sum(each.ru_utime + each.ru_stime for each in (children, own))
    told_s = cpu_s_of(Path("/proc/self/stat").read_text("utf-8"))
    # Both come from the kernel; the one in /proc is in hundredths of a second, each part cut off.
    assert told_s == pytest.approx(used_s, abs=4 / os.sysconf("SC_CLK_TCK") + 0.05)
