"""How are the servers started, monitored and stopped?

Each runs in a session of its own, so that its whole process group can be stopped by the ID that we
got at the start, and by nothing else. Linux only: memory and processor time are read from /proc.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.site import LOOPBACK

START_TIMEOUT_S: Final = 90.0
STOP_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.01


class NotStarted(Exception):
    """A server could not be started; the message ends with what it said."""


class RunningServer:
    """One server process with its descendants."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        port: int,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the command and wait until it accepts connections on the port.

        Raises:
            NotStarted: it ended, or did not listen within `START_TIMEOUT_S`.
        """
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        try:
            self._await_port(port)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process and everything it started; does nothing when it is gone."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT_S)
        # What did not end in time, or was left behind by the first process.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def rss_bytes(self) -> int:
        """Return the resident set sizes of the process and its descendants, added up.

        Pages shared between them count more than once.
        """
        return sum(_rss_bytes(pid) for pid in _tree(self._process.pid))

    def pss_bytes(self) -> int:
        """Return the same with each shared page divided by the number of those who share it."""
        return sum(_pss_bytes(pid) for pid in _tree(self._process.pid))

    def largest_child_pss_bytes(self) -> int:
        """Return that of the largest descendant: of the worker, where there is one."""
        return max((_pss_bytes(pid) for pid in _tree(self._process.pid)[1:]), default=0)

    def cpu_s(self) -> float:
        """Return the processor time, user and system, that the process and its descendants have
        taken so far, those that have ended included."""
        return tree_cpu_s(self._process.pid)

    def _await_port(self, port: int) -> None:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise NotStarted(f"ended with code {self._process.returncode}: {self._said()}")
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    return
            time.sleep(POLL_S)
        raise NotStarted(f"not listening after {START_TIMEOUT_S:.0f} s: {self._said()}")

    def _said(self) -> str:
        return self._log.read_text("utf-8", "replace").strip()[-1000:] or "(nothing said)"


def free_port() -> int:
    """Return a port that the system says is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def tree_cpu_s(root: int) -> float:
    """Return the processor time that a process and its descendants have taken so far."""
    return sum(_cpu_s(pid) for pid in _tree(root))


def _tree(root: int) -> list[int]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            parent = _status(int(entry.name)).get("PPid")
            if parent is not None:
                children[int(parent)].append(int(entry.name))
    found = [root]
    for pid in found:
        found.extend(children[pid])
    return found


def _rss_bytes(pid: int) -> int:
    kibibytes = _status(pid).get("VmRSS", "0 kB").split()[0]
    return int(kibibytes) * 1024


def _pss_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _cpu_s(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return cpu_s_of(text)


def cpu_s_of(stat: str) -> float:
    """Return the processor time in a process's line of statistics (proc_pid_stat(5)): that of all
    its threads, and that of its children that have ended and were waited for."""
    # The name of the program, in parentheses, may hold spaces and parentheses itself.
    fields = stat[stat.rindex(")") + 1 :].split()
    user, system, children_user, children_system = (int(field) for field in fields[11:15])
    return (user + system + children_user + children_system) / os.sysconf("SC_CLK_TCK")


def _status(pid: int) -> dict[str, str]:
    """Return the fields of a process's status; empty when it has just ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}
