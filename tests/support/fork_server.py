"""A process that has loaded what the server and the commands use, and forks one for each request.

A Python interpreter that loads these modules takes longer to do so than the server takes to start,
and the tests start hundreds of them. ``processes.py`` starts this process and says on a socket
which module to run, as ``python -m`` does, with which arguments, folder, environment and standard
streams. The child runs it at the top of its own stack: exit codes, handlers at exit and tracebacks
are those of any interpreter. Only the memory is not taken down object by object at the end: that
would copy every page that the child shares with this process, and take longer than most commands.

Three things take a server long that no test of a forked one is about. Here the templates of all
pages are compiled before the fork, passwords are hashed at a low cost, and a worker does not check
the signing keys that its main process has.

There are no threads here, and no signal is handled: the exits of children are read from process
descriptors. When the tests close the socket, or are killed, every child is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from podstead.app import operator
from podstead.app.adapters import passwords
from podstead.app.process.preload import preload
from podstead.config import read_settings
from podstead.jose.tokens import SigningAlgorithm, SigningKeyPair
from podstead.web.pages.templates import load_templates
from tests.support.application import CHEAP
from tests.support.processes import NUMBER_BYTES

MAX_REQUEST_BYTES = 160 * 1024
DESCRIPTORS = 4
"""Standard input, output and error, and the pipe to which the process id and exit code go."""

_ALSO_USED = (
    "podstead.app.services",
    "podstead.app.process.run",
    "podstead.app.process.tls.terminator",
    "podstead.cli.commands",
    "podstead.storage.blobs.s3",
    "podstead.storage.postgresql",
    "uvloop",
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a child runs."""

    module: str
    arguments: Sequence[str]
    folder: str
    environment: dict[str, str]

    def run(self) -> None:
        """Run the module as the interpreter does at its start."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        time.tzset()
        tempfile.tempdir = None  # found anew, from this environment
        sys.path[0] = self.folder
        sys.argv[1:] = self.arguments
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


@dataclass(frozen=True, slots=True)
class _Child:
    pid: int
    report: int
    """The descriptor to which the exit code goes."""


def load() -> None:
    """Load what a server loads before it forks its workers, and what commands load."""
    preload(read_settings({"idp": True}, {}, folder=Path.cwd()))
    commands = (each.name for each in iter_modules(operator.__path__, f"{operator.__name__}."))
    for name in (*_ALSO_USED, *commands):
        import_module(name)
    templates = load_templates()
    for name in templates.list_templates(extensions=["html"]):
        templates.get_template(name)
    passwords.HashCost = lambda: CHEAP  # type: ignore[assignment,misc]
    _check_no_signing_key_twice()
    gc.collect()
    gc.freeze()  # a collection in a child would copy all memory


def _check_no_signing_key_twice() -> None:
    """A worker finds the keys that its main process generated, or read, before it was forked. To
    check the primes of an RSA key takes longer than all else that a worker does at its start."""
    generate, load = SigningKeyPair.generate, SigningKeyPair.load
    kept: dict[bytes, SigningKeyPair] = {}

    def generate_and_keep(algorithm: SigningAlgorithm) -> SigningKeyPair:
        pair = generate(algorithm)
        return kept.setdefault(pair.dump(), pair)

    def load_if_new(content: bytes) -> SigningKeyPair:
        return kept.get(content) or kept.setdefault(content, load(content))

    SigningKeyPair.generate = generate_and_keep  # type: ignore[method-assign]
    SigningKeyPair.load = load_if_new  # type: ignore[method-assign]


def serve(control: socket.socket) -> Request | None:
    """Fork a child for each request: in the child the request, ``None`` at the end."""
    selector = selectors.PollSelector()
    selector.register(control, selectors.EVENT_READ)
    children: dict[int, _Child] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is not control:
                selector.unregister(key.fd)
                _report(key.fd, children.pop(key.fd))
                continue
            message, descriptors, _, _ = socket.recv_fds(control, MAX_REQUEST_BYTES, DESCRIPTORS)
            if not message:
                _kill(children)
                return None
            *streams, report = descriptors
            pid = os.fork()
            if pid == 0:
                _separate(control, children, streams, report)
                return Request(**json.loads(message))
            for stream in streams:
                os.close(stream)
            _tell(report, pid)
            exit_descriptor = os.pidfd_open(pid)
            children[exit_descriptor] = _Child(pid, report)
            selector.register(exit_descriptor, selectors.EVENT_READ)


def _separate(
    control: socket.socket, children: dict[int, _Child], streams: Sequence[int], report: int
) -> None:
    """Give the child its own session and streams, and nothing that belongs to others."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.close(report)
    control.close()
    for exit_descriptor, other in children.items():
        os.close(exit_descriptor)
        os.close(other.report)


def _report(exit_descriptor: int, child: _Child) -> None:
    _, status = os.waitpid(child.pid, 0)
    _tell(child.report, os.waitstatus_to_exitcode(status))
    os.close(child.report)
    os.close(exit_descriptor)


def _tell(report: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits any more
        os.write(report, number.to_bytes(NUMBER_BYTES, signed=True))


def _kill(children: dict[int, _Child]) -> None:
    for child in children.values():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # it leads a session of its own
        os.waitpid(child.pid, 0)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    load()
    threads = list(Path("/proc/self/task").iterdir())
    assert len(threads) == 1, "a fork copies one thread only"
    request = serve(control)
    if request is None:
        return
    code = 0
    try:
        request.run()
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    _exit(code)


def _exit(code: int) -> None:
    """Do what the interpreter does at its end before it takes down the memory."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # the interpreter says so
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
