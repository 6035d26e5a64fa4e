"""A server that all processes of a test run share. The first one that asks starts it, and it ends
with the last one, even if that is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TextIO, TypeVar

from tests.support.processes import REPOSITORY


class Sharable(Protocol):
    """A server with its files in a folder."""

    @property
    def process_id(self) -> int:
        """The process that has to end."""


Server = TypeVar("Server", bound=Sharable)


class SharedServer(Generic[Server]):
    """One kind of server, of which each run has one."""

    def __init__(
        self,
        name: str,
        in_folder: Callable[[Path], Server],
        start: Callable[[Server], None],
        *,
        ended_by: signal.Signals,
    ) -> None:
        self._name = name
        self._in_folder = in_folder
        self._start = start
        self._ended_by = ended_by
        self._server: Server | None = None
        self._use: TextIO | None = None
        """The open file whose lock says that this process uses the server."""

    def running(self) -> Server:
        """The server, started if it does not run yet."""
        if self._server is None:
            run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
            folder = Path(tempfile.gettempdir()) / f"podstead-{self._name}-{run}"
            self._use = _lock_of_user(folder)
            server = self._in_folder(folder)
            with (folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not (folder / "ready").exists():
                    self._start(server)
                    _end_after_last_use(folder, server.process_id, self._ended_by)
                    (folder / "ready").touch()
            self._server = server
        return self._server


def _lock_of_user(folder: Path) -> TextIO:
    """Hold a shared lock until this process ends."""
    while True:
        folder.mkdir(mode=0o755, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            users = (folder / "users").open("w")
            fcntl.flock(users, fcntl.LOCK_SH)
            if os.fstat(users.fileno()).st_nlink:
                return users
            users.close()  # the server has ended and its files have been removed meanwhile


def _end_after_last_use(folder: Path, process_id: int, ended_by: signal.Signals) -> None:
    """Start a process that ends the server then."""
    module = [sys.executable, "-m", "tests.support.shared_server"]
    # A shell starts it, so that it is nobody's child and may outlive this process.
    subprocess.run(
        [
            "sh",
            "-c",
            '"$@" > /dev/null 2>&1 < /dev/null &',
            "sh",
            *module,
            folder,
            str(process_id),
            str(ended_by.value),
        ],
        check=True,
        cwd=REPOSITORY,
        start_new_session=True,
    )


def main(arguments: list[str]) -> None:
    """Wait until nobody uses the server of a folder, and end it."""
    folder, process_id, number = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    ended = os.pidfd_open(process_id)
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(ended, number)
        select.select([ended], [], [])
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
