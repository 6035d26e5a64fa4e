"""Does a server that the processes of a test run share end with the last of them?"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S

_USER = """
import signal, subprocess, sys
from pathlib import Path
from tests.support.shared_server import SharedServer

class Server:
    def __init__(self, folder: Path) -> None:
        self.noted = folder / "pid"

    def start(self) -> None:
        shell = ["sh", "-c", "sleep 1000 > /dev/null & echo $!"]
        self.noted.write_bytes(subprocess.run(shell, stdout=subprocess.PIPE, check=True).stdout)

    @property
    def process_id(self) -> int:
        return int(self.noted.read_text())

shared = SharedServer("asleep", Server, Server.start, ended_by=signal.SIGKILL)
print(shared.running().process_id, flush=True)
sys.stdin.read()
"""


def test_it_ends_with_its_last_user_even_if_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "a-run")
    with _user() as first, _user() as second:
        assert first.stdout is not None
        assert second.stdout is not None
        server = int(first.stdout.readline())
        assert int(second.stdout.readline()) == server
        ended = os.pidfd_open(server)
        first.send_signal(signal.SIGKILL)
        first.wait()
        signal.pidfd_send_signal(ended, 0)  # it is still there
        second.send_signal(signal.SIGKILL)
    assert select.select([ended], [], [], DEADLINE_S)[0]
    os.close(ended)


def _user() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _USER],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
