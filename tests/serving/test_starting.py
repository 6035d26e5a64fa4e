"""A start says when the server is ready, or in one sentence why it cannot be."""

import re
import socket
import sys

import pytest

from podstead.app.process.run import usable_cores
from tests.support.listeners import MakeServer
from tests.support.server import ServerProcess, StartFailed
from tests.support.workers import processes_of


@pytest.fixture
def make_server(make_server: MakeServer) -> MakeServer:
    """A start begins with an interpreter that has loaded nothing."""

    def make(*options: str, **arguments: str) -> ServerProcess:
        server = make_server(*options, **arguments)
        server.own_interpreter = True
        return server

    return make


def test_the_summary_is_printed_when_requests_are_answered(make_server: MakeServer) -> None:
    server = make_server("--workers", "2")
    server.start()
    assert server.get("/pid").status == 200
    assert server.wait_for_line("  listening").split() == [
        *("listening", "localhost,", "port", f"{server.port},", "HTTP,", "2", "workers"),
    ]
    assert server.wait_for_line("  data").split() == ["data", str(server.root)]
    assert server.errors == ""


ON_TWO_CORES = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_there_is_a_worker_for_each_usable_core(make_server: MakeServer) -> None:
    """The default, on a machine of which the server may use two cores."""
    server = make_server()
    server.command = (sys.executable, "-c", ON_TWO_CORES, *server.command[1:])
    server.environment = {**server.environment, "PODSTEAD_WORKERS": ""}
    server.start()
    cores = min(2, usable_cores())
    workers = "1 worker" if cores == 1 else f"{cores} workers"
    assert server.wait_for_line("  listening").endswith(f", HTTP, {workers}")
    assert len(processes_of(server)) == 1 + cores


def test_port_0_gives_a_free_port_that_the_base_url_has_too(make_server: MakeServer) -> None:
    server = make_server("--port", "0")
    server.launch()
    line = server.wait_for_line("Podstead is ready at ")
    match = re.fullmatch(r"Podstead is ready at http://localhost:([0-9]+)/", line)
    assert match is not None
    server.port = int(match[1])
    assert server.get("/pid").status == 200


def test_a_quiet_server_prints_nothing(make_server: MakeServer) -> None:
    server = make_server("--quiet")
    server.port = free_port()
    server.launch()
    server.wait_for_line("starting")  # the stub application says this itself
    # The socket listens before the workers start, so the request waits for them.
    assert server.get("/pid").status == 200
    assert server.stop() == 0
    server.wait_for_line("closing")
    with pytest.raises(StartFailed, match=r"exit code 0: $"):
        server.wait_for_line("Podstead")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_in_use_stops_the_start_before_a_worker_runs(
    make_server: MakeServer, workers: str
) -> None:
    first = make_server("--workers", workers)
    first.start()
    second = make_server("--workers", workers, root="other")
    second.port = first.port
    second.launch()
    with pytest.raises(StartFailed):
        second.wait_for_line("factory")
    assert second.wait() == 2
    assert second.errors == (
        f"Error: Port {first.port} of localhost is in use. Stop the program that listens there, "
        "or choose another port with --port.\n"
    )
    assert not second.root.exists()
    assert first.get("/pid").status == 200


@pytest.mark.embedded
def test_a_data_root_in_use_stops_the_start(make_server: MakeServer) -> None:
    first = make_server()
    first.start()
    second = make_server("--port", "0")
    second.launch()
    assert second.wait() == 2
    assert second.errors == (
        f"Error: Another server is running on the data root {first.root}. Stop it first, or choose "
        "another root with --root.\n"
    )


def test_a_data_root_that_cannot_be_made_stops_the_start(make_server: MakeServer) -> None:
    server = make_server("--port", "0")
    server.root.write_text("a file stands here")
    server.launch()
    assert server.wait() == 2
    assert server.errors == (
        f"Error: Cannot create the data root {server.root}: it is not a folder. Choose another one "
        "with --root.\n"
    )


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("no-such-name.invalid", "has no address"),
        ("192.0.2.1", "is not an address of this machine"),
    ],
)
def test_a_host_that_is_not_ours_stops_the_start(
    make_server: MakeServer, host: str, sentence: str
) -> None:
    server = make_server("--host", host, "--port", "0", "--base-url", "http://pods.example")
    server.launch()
    assert server.wait() == 2
    assert sentence in server.errors
    assert server.errors.count("\n") == 1


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [("fail-in-factory", "The keys cannot be read."), ("fail", "The store is broken.")],
)
def test_expected_errors_of_the_application_are_logged_without_a_traceback(
    make_server: MakeServer, behaviour: str, sentence: str
) -> None:
    server = make_server("--port", "0", start=behaviour)
    server.launch()
    assert server.wait() == 1
    assert sentence in server.errors
    assert "Traceback" not in server.errors


def test_a_fault_of_the_application_at_its_start_stops_the_server(make_server: MakeServer) -> None:
    """Granian would take it for an application without a lifespan, and serve."""
    server = make_server("--port", "0", start="crash")
    server.launch()
    assert server.wait() == 1
    assert "RuntimeError: A fault of ours" in server.errors
    assert server.errors.endswith("Error: The server stopped because a worker failed.\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_every_local_address_can_be_listened_on(make_server: MakeServer, host: str) -> None:
    server = make_server("--host", host, "--port", "0", "--base-url", "http://localhost:0")
    server.launch()
    line = server.wait_for_line("Podstead is ready at ")
    port = int(line.strip("/").rpartition(":")[2])
    address = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host)
    with socket.create_connection((address, port)) as connection:
        connection.sendall(b"GET /pid HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(1024).startswith(b"HTTP/1.1 200 ")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
