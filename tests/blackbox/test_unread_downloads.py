"""A download that nobody reads ends within its time-outs, whatever the version of HTTP."""

from __future__ import annotations

import select
import shutil
import socket
import sys
from collections.abc import Iterator

import pytest

from tests.support import http2
from tests.support.client import create_pod
from tests.support.features import WITHOUT_SEARCH
from tests.support.server import DEADLINE_S, ServerProcess, running_server
from tests.support.waiting import wait_until
from tests.support.workers import descriptor_count, only_worker

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere connections are not bounded"
)

SIZE_BYTES = 20_000_000
OPTIONS = (*WITHOUT_SEARCH, "--header-read-timeout-s", "1", "--body-idle-timeout-s", "1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("unread") / "root"
    with running_server(ServerProcess(root=root, options=OPTIONS)) as server:
        yield server
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def stored(server: ServerProcess) -> str:
    """The path of a large public resource."""
    pod = create_pod(server)
    target = f"{pod.root}public/stored.bin"
    with pod.owner() as client:
        body = bytes(SIZE_BYTES)
        assert client.put(target, body, "application/octet-stream").status == 201
    return target


@pytest.mark.parametrize("part", [{}, {"range": "bytes=1-"}], ids=["whole", "part"])
@pytest.mark.parametrize("version", ["1.1", "2"])
def test_a_download_that_nobody_reads_is_given_up(
    server: ServerProcess, stored: str, version: str, part: dict[str, str]
) -> None:
    """HTTP/2 stops at its own window (RFC 9113 section 5.2), so the system has nothing to send."""
    host = f"localhost:{server.port}"
    fields = "".join(f"{name}: {value}\r\n" for name, value in part.items())
    request = {
        "1.1": f"GET {stored} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode(),
        "2": http2.PREFACE + http2.SETTINGS + http2.get(stored, host=host, headers=part),
    }
    before = server.errors
    worker = only_worker(server)
    at_rest = descriptor_count(worker)
    assert server.port is not None
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(request[version])
        received = 0
        while received < 8192:
            received += len(connection.recv(8192 - received))
        ends = select.poll()
        ends.register(connection, select.POLLRDHUP)
        assert ends.poll(DEADLINE_S * 1000), "the connection is still open"
    wait_until(lambda: descriptor_count(worker) <= at_rest, "its descriptors are closed")
    assert server.errors == before
