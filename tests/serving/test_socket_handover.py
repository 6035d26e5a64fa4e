"""A server takes the place of another on the same data root, and no connection is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from podstead.storage.migrations import read_migrations
from tests.support.listeners import MakeServer, hold
from tests.support.processes import REPOSITORY, clean_environment
from tests.support.server import DEADLINE_S, START, Answer, ServerProcess, StartFailed

TAKE_OVER = "--take-over"
CLIENTS = 4
FAR_AWAY = ("--drain-timeout-s", "3600")


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


@pytest.mark.parametrize("workers", [("1", "1"), ("1", "2")], ids=["1", "1 to 2"])
@pytest.mark.usefixtures("listener")
def test_no_connection_is_refused_while_a_server_takes_over(
    make_server: MakeServer, workers: tuple[str, str]
) -> None:
    with_port = ("--sockets-port", "0") if workers == ("1", "2") else ()
    old = make_server("--workers", workers[0], *with_port)
    old.start()
    clients = Clients(lambda _: old.get("/pid"))
    with clients.running():
        new = make_server("--workers", workers[1], TAKE_OVER, *with_port)
        new.port = old.port
        new.start()
        assert old.wait() == 0
    assert set(clients.outcomes) == {"200"}
    assert new.stop() == 0


def test_what_one_server_acknowledges_the_next_one_has(tmp_path: Path) -> None:
    """Writes go on through three generations of servers with two workers each."""
    generations = [_real(tmp_path, "--workers", "2")]
    first = generations[0]
    first.start()
    try:
        token = _token(first)
        written: list[str] = []

        def write(name: str) -> Answer:
            path = f"/alice/{name}.txt"
            headers = {"authorization": f"Bearer {token}", "content-type": "text/plain"}
            answer = first.request("PUT", path, name, headers)
            written.append(path)
            return answer

        clients = Clients(write)
        with clients.running():
            for _ in range(2):
                new = _real(tmp_path, "--workers", "2", TAKE_OVER)
                new.port = first.port
                new.start()
                assert generations[-1].wait() == 0
                generations.append(new)
                clients.wait_for_more()
        assert set(clients.outcomes) == {"201"}
        headers = {"authorization": f"Bearer {token}"}
        assert {first.get(path, headers).status for path in written} == {200}
    finally:
        for server in generations:
            server.close()


def test_the_old_server_answers_what_it_has_begun(
    make_server: MakeServer, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """It asks clients with an open connection to use another one, and whoever connects meanwhile
    waits for the new one."""
    old = make_server(*FAR_AWAY)
    old.start()
    begun = hold(old, threads)
    before = old.get("/pid").text
    with closing(old.connect()) as connection:
        new = make_server(TAKE_OVER)
        new.port = old.port
        new.launch()
        is_closing = False
        while not is_closing:
            connection.request("GET", "/pid")
            response = connection.getresponse()
            assert response.read().decode() == before
            is_closing = response.getheader("connection") == "close"
    waiting = threads.submit(old.get, "/pid")
    assert not begun.done()
    (tmp_path / "release").touch()
    assert begun.result(DEADLINE_S).status == 200
    assert old.wait() == 0
    answer = waiting.result(DEADLINE_S)
    assert answer.status == 200
    assert answer.text != before


def test_without_a_running_server_it_starts_as_usual(make_server: MakeServer) -> None:
    server = make_server(TAKE_OVER)
    server.start()
    server.kill()  # which leaves the socket of the handover behind
    assert (server.root / "handover").exists()
    server.start()
    assert server.get("/pid").status == 200
    assert server.stop() == 0
    assert not (server.root / "handover").exists()


def test_only_the_owner_of_the_data_root_can_take_over(make_server: MakeServer) -> None:
    server = make_server()
    server.start()
    door = server.root / "handover"
    assert door.is_socket()
    assert door.stat().st_mode & 0o777 == 0o600
    assert server.root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "1"), "has 2 workers, and 1 are wanted"),
        (("--port", "1"), "localhost, port 1 is set"),
        (("--base-url", "https://elsewhere.example"), "belongs to http://localhost"),
    ],
)
def test_a_server_that_cannot_take_over_leaves_the_other_running(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    old = _real(tmp_path, "--workers", "2")
    old.start()
    new = _real(tmp_path, "--workers", "2", TAKE_OVER, *options)
    new.port = old.port
    try:
        with pytest.raises(StartFailed, match=re.escape(message)):
            new.start()
        assert old.get("/").status == 200
        assert old.stop() == 0
    finally:
        new.close()
        old.close()


@pytest.mark.embedded
def test_an_older_version_takes_over_from_no_newer_one(tmp_path: Path) -> None:
    """The newer one has changed the schema, and goes on."""
    newer = _real(tmp_path)
    newer.start()
    older = _real(tmp_path, TAKE_OVER)
    older.port = newer.port
    schema = read_migrations()[-1].number + 1
    try:
        with closing(apsw.Connection(str(newer.root / "podstead.db"))) as connection:
            connection.execute("UPDATE schema_version SET version = ?", (schema,))
        with pytest.raises(StartFailed, match="written by a newer version of Podstead"):
            older.start()
        assert older.wait() == 2
        assert newer.get("/").status == 200
    finally:
        older.close()
        newer.close()


# --- systemd ----------------------------------------------------------------------------------


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


def _real(tmp_path: Path, *options: str) -> ServerProcess:
    return ServerProcess(root=tmp_path / "root", options=options)


def _token(server: ServerProcess) -> str:
    headers = {"content-type": "application/json"}
    made = server.request("POST", "/.pods", json.dumps({"name": "alice"}), headers)
    token: str = json.loads(made.body)["token"]
    return token
