"""The private address tells of all workers together, and a taken one keeps no server from
starting."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.client import Client
from tests.support.server import (
    DEADLINE_S,
    ServerProcess,
    run_command,
    running_server,
    server_fixture,
)
from tests.support.waiting import wait_until
from tests.support.workers import processes_of, worker_of

ANY_PORT = ("--admin-listen", "127.0.0.1:0")


class PrivateAddress:
    """A client of the private address of a server."""

    def __init__(self, server: ServerProcess) -> None:
        line = server.wait_for_line("  metrics")
        found = re.fullmatch(r" +metrics +http://127\.0\.0\.1:([0-9]+)/metrics", line)
        assert found is not None
        self.port = int(found[1])

    def get(self, path: str, host: str | None = None, method: str = "GET") -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        with closing(connection):
            connection.request(method, path, headers={"Host": host} if host else {})
            response = connection.getresponse()
            return response.status, response.read().decode()

    def samples(self) -> dict[str, float]:
        """The value of each time series."""
        status, text = self.get("/metrics")
        assert status == 200
        return {
            sample.name + json.dumps(sample.labels, sort_keys=True): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def readiness(self) -> tuple[int, dict[str, dict[str, object]]]:
        status, text = self.get("/health/ready")
        return status, json.loads(text)["checks"]


server = server_fixture((*ANY_PORT, "--workers", "2"))


@pytest.fixture(scope="module")
def private(server: ServerProcess) -> PrivateAddress:
    return PrivateAddress(server)


OK = 'podstead_http_requests_total{"method": "OPTIONS", "route": "/", "status": "204"}'


def test_requests_to_all_workers_are_added(server: ServerProcess, private: PrivateAddress) -> None:
    before = private.samples().get(OK, 0)
    seen: dict[int, int] = {}
    while len(seen) < 2:
        with closing(Client(server)) as client:
            worker = worker_of(server, client)
            seen[worker] = seen.get(worker, 0) + 1
    assert private.samples()[OK] - before == sum(seen.values())


def test_ready_and_live(private: PrivateAddress) -> None:
    assert private.get("/health/live") == (200, '{"status":"live"}\n')
    status, checks = private.readiness()
    assert status == 200
    assert checks.keys() == {"workers", "store", "disk", "clock"}
    assert all(check["ok"] for check in checks.values())
    assert checks["workers"]["detail"] == "2 of 2 workers answered."


def test_other_paths_and_methods(private: PrivateAddress) -> None:
    assert private.get("/elsewhere")[0] == 404
    assert private.get("/metrics", method="POST")[0] == 501
    assert private.get("/metrics", method="HEAD") == (200, "")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9090", "localhost.evil.example"])
def test_a_name_that_leads_to_this_machine_is_refused(private: PrivateAddress, host: str) -> None:
    """A page in a browser of this machine could read the metrics otherwise (DNS rebinding)."""
    assert private.get("/metrics", host=host)[0] == 421


@pytest.mark.parametrize("host", ["localhost:9090", "127.0.0.1", "[::1]:9090"])
def test_names_of_this_machine_are_accepted(private: PrivateAddress, host: str) -> None:
    assert private.get("/health/live", host=host)[0] == 200


def test_the_public_address_has_none_of_it(server: ServerProcess) -> None:
    for path in ("/metrics", "/health/live", "/health/ready"):
        assert server.get(path).status in (401, 404)


def test_no_names_of_pods_are_in_metrics(server: ServerProcess, private: PrivateAddress) -> None:
    made = server.request(
        "POST", "/.pods", '{"name": "verysecretname"}', {"Content-Type": "application/json"}
    )
    assert made.status == 201
    server.get("/verysecretname/profile/card")
    _, text = private.get("/metrics")
    assert "verysecretname" not in text
    assert private.samples()["podstead_pods{}"] == 1


def test_a_failed_backup_is_seen(server: ServerProcess, private: PrivateAddress) -> None:
    """One in the data root is refused."""
    failed = "podstead_last_failed_backup_timestamp_seconds{}"
    assert failed not in private.samples()
    place = str(server.root / "backup")
    assert run_command("backup", place, "--root", str(server.root)).returncode == 1
    assert private.samples()[failed] > 0


def test_a_silent_worker_is_seen(server: ServerProcess, private: PrivateAddress) -> None:
    with closing(Client(server)) as client:
        worker = worker_of(server, client)
    os.kill(worker, signal.SIGSTOP)
    try:
        status, checks = private.readiness()
        assert (status, checks["workers"]["detail"]) == (503, "1 of 2 workers answered.")
        assert private.get("/health/live")[0] == 200
        assert private.samples()['podstead_workers{"state": "silent"}'] == 1
    finally:
        os.kill(worker, signal.SIGCONT)
    assert private.readiness()[0] == 200


def test_what_a_killed_worker_counted_is_not_lost(
    server: ServerProcess, private: PrivateAddress
) -> None:
    with closing(Client(server)) as client:
        worker = worker_of(server, client)
    before = private.samples()
    os.kill(worker, signal.SIGKILL)
    restarts = "podstead_worker_restarts_total{}"
    wait_until(lambda: private.samples()[restarts] == before[restarts] + 1, "a new worker")
    wait_until(lambda: private.readiness()[0] == 200, "that it answers")
    assert private.samples()[OK] >= before[OK]


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which something else listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_an_address_that_was_set_must_be_free(tmp_path: Path, taken: int) -> None:
    server = ServerProcess(
        tmp_path / "root", ("--admin-listen", f"127.0.0.1:{taken}", "--port", "0")
    )
    server.launch()
    assert server.wait() == 2
    assert server.errors == (
        f"Error: Cannot open the private address 127.0.0.1:{taken} of admin-listen: it is in use. "
        "Choose another one, or turn it off with --admin-listen off.\n"
    )
    assert not server.root.exists()


def test_a_default_address_that_is_taken_does_not_stop_a_second_server(tmp_path: Path) -> None:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", 9090))
            listener.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        unset = {"PODSTEAD_ADMIN_LISTEN": ""}
        with running_server(ServerProcess(tmp_path / "root", environment=unset)) as server:
            assert server.get("/").status == 200
            assert "Cannot open the private address 127.0.0.1:9090" in server.errors


def test_a_full_disk_is_no_readiness_and_the_folder_is_removed(tmp_path: Path) -> None:
    options = (*ANY_PORT, "--min-free-bytes", str(2**52))
    with tempfile.TemporaryDirectory() as folder:  # a short name
        _check_full_disk(tmp_path / "root", options, Path(folder))


def _check_full_disk(root: Path, options: Sequence[str], temporary: Path) -> None:
    environment = {"TMPDIR": str(temporary)}
    with running_server(ServerProcess(root, options, environment=environment)) as full:
        status, checks = PrivateAddress(full).readiness()
        assert (status, checks["disk"]["ok"], checks["store"]["ok"]) == (503, False, True)
        folders = [path for path in temporary.iterdir() if path.name.startswith("podstead-")]
        assert [path.stat().st_mode & 0o777 for path in folders] == [0o700]
        assert len(processes_of(full)) == 2
        assert full.stop() == 0
    assert not any(path.name.startswith("podstead-") for path in temporary.iterdir())
