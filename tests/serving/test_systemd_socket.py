"""A server that gets its socket from systemd is restarted, and no connection is refused."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, clean_environment
from tests.support.server import DEADLINE_S, START, Answer, ServerProcess

CLIENTS = 4


class Clients:
    """Some clients that send requests until they are told to stop, each on a new connection, and
    what they got."""

    def __init__(self, send: Callable[[str], Answer]) -> None:
        self._send = send
        self._stop = threading.Event()
        self._more = threading.Condition()
        self.outcomes: Counter[str] = Counter()

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [pool.submit(self._run, client) for client in range(CLIENTS)]
            try:
                self.wait_for_more()
                yield
                self.wait_for_more()
            finally:
                self._stop.set()
            for each in running:
                each.result(DEADLINE_S)

    def wait_for_more(self) -> None:
        """Wait until each client may have had another answer."""
        with self._more:
            wanted = self.outcomes.total() + 2 * CLIENTS
            assert self._more.wait_for(lambda: self.outcomes.total() >= wanted, DEADLINE_S)

    def _run(self, client: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                outcome = str(self._send(f"{client}-{number}").status)
            except OSError as error:
                outcome = repr(error)
            with self._more:
                self.outcomes[outcome] += 1
                self._more.notify_all()


@pytest.mark.needs("systemd")
def test_a_restart_with_a_socket_of_systemd_refuses_no_connection(tmp_path: Path) -> None:
    """The socket is that of ``systemd-socket-activate``, which stays; the server is replaced by
    itself, as ``systemctl restart`` does it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    activator = shutil.which("systemd-socket-activate")
    assert activator is not None
    restarting = tmp_path / "restart"
    restarting.write_text(
        "#!/bin/sh\n"
        # What systemd does at each start of the service: it passes the socket to the process.
        'while true; do sh -c \'export LISTEN_PID=$$; exec "$@"\' sh "$@" || exit $?; done\n'
    )
    restarting.chmod(0o755)
    command = [*START, "--port", str(port), "--root", str(tmp_path / "root"), "--workers", "2"]
    listening = [activator, f"--listen=127.0.0.1:{port}", str(restarting), *command]
    with subprocess.Popen(
        listening,
        cwd=REPOSITORY,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as activated:
        try:
            assert activated.stderr is not None
            assert "Listening on" in activated.stderr.readline()
            threading.Thread(target=activated.stderr.read, daemon=True).start()
            server = ServerProcess(root=tmp_path / "root", port=port)
            assert server.get("/").status == 200  # the first connection starts the server
            clients = Clients(lambda _: server.get("/"))
            with clients.running():
                assert activated.stdout is not None
                pids = (int(line.split()[1]) for line in activated.stdout if "  process" in line)
                os.kill(next(pids), signal.SIGTERM)
                os.kill(next(pids), 0)  # the second one is ready
            assert set(clients.outcomes) == {"200"}
        finally:
            os.killpg(activated.pid, signal.SIGKILL)
