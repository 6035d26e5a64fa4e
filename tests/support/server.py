"""A server as its operator has it: a process with its own data root and port.

Nothing sleeps: every wait is for a line, an exit or an answer, and gives up at a deadline that is
far beyond what a busy machine needs.
"""

from __future__ import annotations

import contextlib
import http.client
import queue
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest

from tests.support.engine import engine_environment
from tests.support.processes import (
    REPOSITORY,
    Process,
    clean_environment,
    run_process,
    start_process,
)

DEADLINE_S = 60
START = (sys.executable, "-m", "podstead.cli", "start")
STUB_START = (sys.executable, "-m", "tests.support.stub_server", "start")
"""The same start around the application of ``stub_server.py``."""

# Below the range from which systems give ports to others, so that a server that is down for a
# moment finds its port again.
_PORTS = range(20_000, 32_000)
_PORT_ATTEMPTS = 20
_IN_USE = "is in use"


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; of repeated headers the last."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class StartFailed(AssertionError):
    """The server ended before it was ready."""


@dataclass
class ServerProcess:
    """One server; started, stopped and killed as often as a test likes, on the same root."""

    root: Path
    options: Sequence[str] = ()
    command: Sequence[str] = START
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None
    """Chosen at the first start, and the same afterwards."""
    tls: ssl.SSLContext | None = None
    own_interpreter: bool = False
    """Start a new interpreter, as an operator does, and fork none that has the modules loaded."""

    _process: Process | None = None
    _reader: threading.Thread | None = None
    _lines: queue.Queue[str | None] = field(default_factory=queue.Queue)

    @property
    def base_url(self) -> str:
        """Without a slash at the end."""
        return f"{'https' if self.tls else 'http'}://localhost:{self.port}"

    @property
    def pid(self) -> int:
        """The main process."""
        return self._running().pid

    @property
    def errors(self) -> str:
        """All that was written to standard error since the last start."""
        return self._error_log.read_text(encoding="utf-8")

    @property
    def _error_log(self) -> Path:
        return self.root.with_name(f"{self.root.name}.stderr")

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start and wait until it is ready. Raises StartFailed with what it said."""
        if self.port is not None:
            self.launch()
            self.wait_for_line(f"Podstead is ready at {self.base_url}/")
            return
        for _ in range(_PORT_ATTEMPTS):
            self.port = secrets.choice(_PORTS)
            self.launch()
            with contextlib.suppress(StartFailed):
                self.wait_for_line(f"Podstead is ready at {self.base_url}/")
                return
            if _IN_USE not in self.errors:
                break
        raise StartFailed(self.errors)

    def launch(self) -> None:
        """Start and wait for nothing."""
        self._lines = queue.Queue()
        port = () if self.port is None else ("--port", str(self.port))
        environment = {**clean_environment(), **engine_environment(self.root), **self.environment}
        with self._error_log.open("wb") as errors:
            self._process = start_process(
                [*self.command, "--root", str(self.root), *port, *self.options],
                environment=environment,
                errors=errors,
                own_interpreter=self.own_interpreter,
            )
        self._reader = threading.Thread(
            target=_read_lines, args=(self._process, self._lines), daemon=True
        )
        self._reader.start()

    def wait_for_line(self, start: str) -> str:
        """The next line of standard output that begins so. Raises StartFailed at its end."""
        while True:
            line = self._lines.get(timeout=DEADLINE_S)
            if line is None:
                code = self.wait()
                raise StartFailed(f"ended with exit code {code}: {self.errors}")
            if line.startswith(start):
                return line

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the main process."""
        self._running().send_signal(number)

    def refusal(self) -> str:
        """The one sentence with which a start ends for a mistake of the operator."""
        self.launch()
        assert self.wait() == 2
        self.close()
        assert self.errors.startswith("Error: ")
        assert self.errors.count("\n") == 1
        return self.errors

    def wait(self) -> int:
        """Wait until the process has ended; its exit code."""
        return self._running().wait(DEADLINE_S)

    def stop(self) -> int:
        """Stop as an operator does, with SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it as a power cut does, with SIGKILL; wait until its workers have ended, too."""
        self._running().kill()
        self.wait()
        self._wait_for_workers()

    def restart(self) -> None:
        """Stop and start again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it however it is, for fixtures."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._wait_for_workers()

    def _wait_for_workers(self) -> None:
        if self._reader is not None:  # it reads for as long as anybody can write
            self._reader.join(DEADLINE_S)
            assert not self._reader.is_alive(), "a worker outlives its server"

    def _running(self) -> Process:
        assert self._process is not None, "the server was not started"
        return self._process

    # --- requests -----------------------------------------------------------------------------

    def connect(self) -> http.client.HTTPConnection:
        """A connection to the server."""
        assert self.port is not None
        if self.tls is not None:
            return http.client.HTTPSConnection(
                "localhost", self.port, timeout=DEADLINE_S, context=self.tls
            )
        return http.client.HTTPConnection("localhost", self.port, timeout=DEADLINE_S)

    def open_socket(self, port: int | None = None) -> socket.socket:
        """A connection over which a test sends what it likes, to another port if that is given;
        with TLS, the handshake is made when first something is sent."""
        port = port or self.port
        assert port is not None
        connection = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        if self.tls is None:
            return connection
        return self.tls.wrap_socket(
            connection, server_hostname="localhost", do_handshake_on_connect=False
        )

    def request(
        self,
        method: str,
        target: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        with contextlib.closing(self.connect()) as connection:
            return _exchange(connection, method, target, body, headers)

    def get(self, target: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.request("GET", target, headers=headers)


def request_to(
    method: str,
    url: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request to any server, by plain HTTP."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        return _exchange(connection, method, parts.path, body, headers)


@contextlib.contextmanager
def running_server(server: ServerProcess) -> Iterator[ServerProcess]:
    """Start a server and end it whatever happens."""
    try:
        server.start()
        yield server
    finally:
        server.close()


def server_fixture(
    options: Sequence[str] = (),
    *,
    scope: Literal["module", "session"] = "module",
    **others: Any,  # noqa: ANN401 - further fields of ServerProcess
) -> Callable[..., Iterator[ServerProcess]]:
    """A fixture: a server with these options that runs as long as its scope lasts."""

    @pytest.fixture(scope=scope)
    def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
        root = tmp_path_factory.mktemp("server") / "root"
        with running_server(ServerProcess(root, options, **others)) as running:
            yield running

    return server


def run_command(
    *arguments: str, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``podstead …`` to its end."""
    engine: dict[str, str] = {}
    if "--root" in arguments:
        engine = engine_environment(Path(arguments[arguments.index("--root") + 1]))
    return run_process(
        [sys.executable, "-m", "podstead.cli", *arguments],
        folder=folder or REPOSITORY,
        environment={**clean_environment(), **engine, **(environment or {})},
        timeout_s=DEADLINE_S,
    )


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    body: bytes | str | None,
    headers: Mapping[str, str] | None,
) -> Answer:
    content = body.encode() if isinstance(body, str) else body
    connection.request(method, target, body=content, headers=dict(headers or {}))
    response = connection.getresponse()
    return Answer(
        response.status,
        {name.lower(): value for name, value in response.getheaders()},
        response.read(),
    )


def _read_lines(process: Process, lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    with process.stdout as output:  # ends when the last worker has ended
        for line in output:
            lines.put(line.rstrip("\n"))
    lines.put(None)
