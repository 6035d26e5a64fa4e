"""The processes that a process has started, and the memory that they take."""

from __future__ import annotations

import os
from pathlib import Path


def children_of(pid: int) -> set[int]:
    """The ids of all its children."""
    tasks = Path(f"/proc/{pid}/task")
    return {
        int(child)
        for task in tasks.iterdir()
        for child in (task / "children").read_text(encoding="ascii").split()
    }


def children_of_this_process() -> set[int]:
    """The ids of the processes that the test has started."""
    return children_of(os.getpid())


def resident_bytes(pid: int) -> int:
    """How much memory a process takes now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
