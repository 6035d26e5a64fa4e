"""Workers share the load, are replaced when they die, and end with their server."""

import contextlib
import http.client
import os
from pathlib import Path

import pytest

from tests.support.listeners import MakeServer
from tests.support.processes import becomes_readable
from tests.support.server import DEADLINE_S, ServerProcess

pytestmark = pytest.mark.usefixtures("listener")


def test_every_worker_answers(make_server: MakeServer) -> None:
    server = make_server("--workers", "2")
    server.start()
    pids: set[str] = set()
    while len(pids) < 2:  # each new connection goes to one of them
        pids.add(server.get("/pid").text)


def kill_the_worker(server: ServerProcess) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        server.get("/die")


def test_a_worker_that_dies_is_replaced(make_server: MakeServer) -> None:
    server = make_server()
    server.start()
    before = server.get("/pid").text
    kill_the_worker(server)
    # The listening socket outlives the worker, so no client is refused meanwhile.
    assert server.get("/pid").text != before
    assert "Unexpected exit from worker-1" in server.errors
    assert server.stop() == 0


def test_a_worker_that_cannot_be_replaced_stops_the_server(
    make_server: MakeServer, tmp_path: Path
) -> None:
    server = make_server()
    server.start()
    (tmp_path / "broken").touch()
    kill_the_worker(server)
    assert server.wait() == 1
    assert server.errors.endswith("Error: The server stopped because a worker failed.\n")


def test_a_killed_server_leaves_nothing_behind_and_starts_again_at_once(
    make_server: MakeServer,
) -> None:
    server = make_server("--workers", "2")
    for _ in range(3):
        server.start()
        workers: set[int] = set()
        while len(workers) < 2:
            workers.add(int(server.get("/pid").text))
        server.kill()
        for pid in workers:
            wait_until_gone(pid)


def wait_until_gone(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert becomes_readable(process, DEADLINE_S), f"worker {pid} outlives its server"
    finally:
        os.close(process)
