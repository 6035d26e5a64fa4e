"""Processes that run our commands: forked from one that has the modules loaded, where possible.

What shows how an interpreter starts asks for one of its own, and so does anything that differs from
the fork server in what an interpreter reads at its start.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from podstead.features import LEFT_OUT_VARIABLE

NUMBER_BYTES = 4
"""The size of a process id or exit code on the pipe that reports it."""

REPOSITORY = Path(__file__).resolve().parent.parent.parent

# An interpreter, the loader and the C library read these at their start and not later.
_READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", LEFT_OUT_VARIABLE)

# A process that is killed, as a worker of pytest is after too long, ends nothing that it started.
_ENDS_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()


class HasFileno(Protocol):
    """A file, pipe or socket."""

    def fileno(self) -> int: ...


class ForkedProcess:
    """What ``subprocess.Popen`` shows of a process, of a child of the fork server."""

    def __init__(self, report: int, output: IO[str] | None, errors: IO[str] | None) -> None:
        """``report`` is the pipe on which the fork server tells the process id and exit code."""
        self.stdout = output
        self.stderr = errors
        self.returncode: int | None = None
        self._report = report
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, report)
        self.pid = self._next_number()

    def poll(self) -> int | None:
        """The exit code, or ``None`` as long as it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises TimeoutExpired after so many seconds."""
        # At the end of the pipe, every thread that waits here wakes up, and one reads the number.
        if not becomes_readable(self._report, timeout):
            raise subprocess.TimeoutExpired(["fork server"], timeout or 0)
        with self._lock:
            if self.returncode is None:
                self.returncode = self._next_number()
            return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _next_number(self) -> int:
        number = os.read(self._report, NUMBER_BYTES)
        assert number, "the fork server has ended"
        return int.from_bytes(number, signed=True)


Process = subprocess.Popen[str] | ForkedProcess


def start_process(
    command: Sequence[str],
    *,
    folder: Path = REPOSITORY,
    environment: Mapping[str, str],
    output: IO[bytes] | None = None,
    errors: IO[bytes] | None = None,
    own_interpreter: bool = False,
) -> Process:
    """Start ``python -m module …`` in a session of its own, so that a signal to the tests' terminal
    is no signal to it. Standard output and error go to these files, or else to pipes."""
    if own_interpreter or not _can_fork(command, environment):
        return subprocess.Popen(
            [*(_ENDS_WITH_PARENT if own_interpreter else ()), *command],
            stdout=output or subprocess.PIPE,
            stderr=errors or subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    return _fork_server().start(command, folder, environment, output, errors)


def run_process(
    command: Sequence[str],
    *,
    folder: Path = REPOSITORY,
    environment: Mapping[str, str],
    timeout_s: float,
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m module …`` to its end."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = start_process(
            command, folder=folder, environment=environment, output=output, errors=errors
        )
        try:
            code = process.wait(timeout_s)
        finally:
            process.kill()
        texts = [_text(file) for file in (output, errors)]
    return subprocess.CompletedProcess(command, code, *texts)


def becomes_readable(file: int | HasFileno, timeout_s: float | None = None) -> bool:
    """Wait until there is something to read, or the end, for so many seconds. The number of the
    descriptor may be larger than ``select`` takes, since clients of other tests keep connections
    for a while."""
    readable = select.poll()
    readable.register(file, select.POLLIN)
    return bool(readable.poll(None if timeout_s is None else timeout_s * 1000))


def clean_environment() -> dict[str, str]:
    """Without settings, except that a server has one worker and no private address unless a test
    asks for more: tests run in parallel, and most are about what one worker does."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("PODSTEAD_") or name == LEFT_OUT_VARIABLE
    }
    return {**kept, "PODSTEAD_WORKERS": "1", "PODSTEAD_ADMIN_LISTEN": "off"}


def _can_fork(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    return (
        sys.platform == "linux"
        and tuple(command[:2]) == (sys.executable, "-m")
        and _read_at_start(environment) == _read_at_start(os.environ)
    )


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environment.items() if name.startswith(_READ_AT_START)}


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


class _ForkServer:
    """The fork server of this process, which ends with it."""

    def __init__(self) -> None:
        self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=REPOSITORY,
                env=clean_environment(),
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        atexit.register(self._end)

    def start(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        output: IO[bytes] | None,
        errors: IO[bytes] | None,
    ) -> ForkedProcess:
        request = {
            "module": command[2],
            "arguments": list(command[3:]),
            "folder": str(folder),
            "environment": dict(environment),
        }
        with contextlib.ExitStack() as sent:
            stdout, output_end = _stream(output, sent)
            stderr, errors_end = _stream(errors, sent)
            report, report_end = _pipe(sent)
            streams = [0, output_end, errors_end, report_end]
            socket.send_fds(self._control, [json.dumps(request).encode("ascii")], streams)
        return ForkedProcess(report, stdout, stderr)

    def _end(self) -> None:
        self._control.close()
        self._process.wait()


@functools.cache
def _fork_server() -> _ForkServer:
    return _ForkServer()


def _stream(file: IO[bytes] | None, sent: contextlib.ExitStack) -> tuple[IO[str] | None, int]:
    """What the caller reads, if anything, and the descriptor to which the process writes."""
    if file is not None:
        return None, file.fileno()
    ours, theirs = _pipe(sent)
    return os.fdopen(ours, encoding="utf-8"), theirs


def _pipe(sent: contextlib.ExitStack) -> tuple[int, int]:
    ours, theirs = os.pipe()
    sent.callback(os.close, theirs)
    return ours, theirs
