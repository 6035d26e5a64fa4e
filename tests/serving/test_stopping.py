"""A server that is told to stop answers what it has begun, takes nothing new, and ends."""

import contextlib
import signal
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.listeners import MakeServer, hold
from tests.support.server import DEADLINE_S, ServerProcess

FAR_AWAY = ("--drain-timeout-s", "3600")


@pytest.mark.usefixtures("listener")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_request_in_flight_is_answered_before_the_server_ends(
    make_server: MakeServer,
    threads: ThreadPoolExecutor,
    tmp_path: Path,
    number: signal.Signals,
    workers: str,
) -> None:
    server = make_server("--workers", workers, *FAR_AWAY)
    server.start()
    answer = hold(server, threads)
    server.signal(number)
    wait_until_refused(server)
    assert not answer.done()
    (tmp_path / "release").touch()
    assert answer.result(DEADLINE_S).status == 200
    server.wait_for_line("closing")
    assert server.wait() == 0
    assert server.errors == ""


def wait_until_refused(server: ServerProcess) -> None:
    while True:
        try:
            with server.open_socket() as connection:
                connection.sendall(b"GET /pid HTTP/1.1\r\nHost: localhost\r\n\r\n")
                if connection.recv(1) == b"":
                    return
        except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError, ssl.SSLError):
            return


@pytest.mark.usefixtures("listener")
def test_an_idle_connection_does_not_hold_the_server(make_server: MakeServer) -> None:
    server = make_server(*FAR_AWAY, "--header-read-timeout-s", "3600")
    server.start()
    with contextlib.closing(server.connect()) as connection:
        connection.request("GET", "/pid")
        connection.getresponse().read()
        assert server.stop() == 0


@pytest.mark.usefixtures("listener")
def test_a_request_that_never_ends_is_cut_off_after_the_drain_timeout(
    make_server: MakeServer, threads: ThreadPoolExecutor
) -> None:
    server = make_server("--drain-timeout-s", "1")
    server.start()
    answer = hold(server, threads)
    assert server.stop() == 0
    assert "Requests still in flight after 1 second were cut off" in server.errors
    with pytest.raises(OSError, match=r".*"):
        answer.result(DEADLINE_S)


@pytest.mark.usefixtures("listener")
def test_a_second_signal_stops_at_once(
    make_server: MakeServer, threads: ThreadPoolExecutor
) -> None:
    server = make_server(*FAR_AWAY)
    server.start()
    answer = hold(server, threads)
    server.signal(signal.SIGINT)
    wait_until_refused(server)
    server.signal(signal.SIGINT)
    assert server.wait() == 1
    assert "The server stopped immediately" in server.errors
    with pytest.raises(OSError, match=r".*"):
        answer.result(DEADLINE_S)


@pytest.mark.parametrize(("behaviour", "line"), [("hang-in-factory", "factory"), ("hang", "start")])
def test_a_stop_while_workers_are_starting_does_not_hang(
    make_server: MakeServer, behaviour: str, line: str
) -> None:
    """Seen with granian: a worker that gets SIGTERM while it imports never ends."""
    server = make_server("--workers", "2", "--drain-timeout-s", "2", "--port", "0", start=behaviour)
    server.launch()
    server.wait_for_line(line)
    server.wait_for_line(line)
    assert server.stop() == 0


def test_a_stop_before_any_worker_runs_does_not_hang(make_server: MakeServer) -> None:
    server = make_server("--port", "0", "--base-url", "http://pods.example", *FAR_AWAY)
    for _ in range(10):
        server.launch()
        server.wait_for_line("factory")
        assert server.stop() == 0
