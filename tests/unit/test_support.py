"""What the tests use: Debian and npm packages, and servers that several runs share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import pytest_runtest_setup
from tests.support import node
from tests.support.processes import REPOSITORY, becomes_readable
from tests.support.server import DEADLINE_S


class NeedsCurl:
    """What of a test item is looked at."""

    path = Path(__file__)

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        if name == "needs":
            yield pytest.mark.needs("curl").mark


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setattr("tests.support.system_packages._search_path", lambda: str(tmp_path))
    return monkeypatch


def test_an_absent_package_skips_the_test_by_its_name(
    without_packages: pytest.MonkeyPatch,
) -> None:
    without_packages.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs the Debian package curl"):
        pytest_runtest_setup(NeedsCurl())  # type: ignore[arg-type]


def test_in_ci_an_absent_package_is_a_failure(without_packages: pytest.MonkeyPatch) -> None:
    without_packages.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="needs the Debian package curl"):
        pytest_runtest_setup(NeedsCurl())  # type: ignore[arg-type]


def test_a_package_that_is_there_lets_the_test_run(
    without_packages: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    curl = tmp_path / "curl"
    curl.touch(mode=0o755)
    without_packages.setenv("CI", "true")
    pytest_runtest_setup(NeedsCurl())  # type: ignore[arg-type]


# --- node --------------------------------------------------------------------------------------
#
# The clients' packages are installed once for each state of the lock file, and never by halves.


NPM = """
const fs = require("node:fs");
fs.rmSync("node_modules", { recursive: true, force: true });
fs.appendFileSync("runs", process.argv.slice(2).join(" ") + "\\n");
if (fs.existsSync("broken")) process.exit(1);
fs.mkdirSync("node_modules");
"""
"""Like npm's ci, it begins by removing what is there."""


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of clients, and in the place of npm something that only writes down its runs."""
    (tmp_path / "package-lock.json").write_text("{}")
    (tmp_path / "npm.cjs").write_text(NPM)
    monkeypatch.setattr(node, "_NPM", tmp_path / "npm.cjs")
    return tmp_path


def runs(clients: Path) -> int:
    return len((clients / "runs").read_text().splitlines())


def test_what_is_installed_is_not_installed_again(clients: Path) -> None:
    node.install_packages(clients)
    node.install_packages(clients)
    assert (clients / "runs").read_text() == "ci --loglevel error\n"


def test_concurrent_callers_wait_for_the_first(clients: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(node.install_packages, clients) for _ in range(4)]:
            done.result()
    assert runs(clients) == 1


def test_another_lock_file_is_installed(clients: Path) -> None:
    node.install_packages(clients)
    (clients / "package-lock.json").write_text('{"lockfileVersion": 3}')
    node.install_packages(clients)
    assert runs(clients) == 2


def test_what_failed_is_tried_again(clients: Path) -> None:
    (clients / "broken").touch()
    with pytest.raises(subprocess.CalledProcessError):
        node.install_packages(clients)
    (clients / "broken").unlink()
    node.install_packages(clients)
    node.install_packages(clients)
    assert runs(clients) == 2


# --- shared server -----------------------------------------------------------------------------
#
# Does a server that the processes of a test run share end with the last of them?


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
    assert becomes_readable(ended, DEADLINE_S)
    os.close(ended)


def _user() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _USER],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
