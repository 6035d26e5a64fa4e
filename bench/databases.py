"""How are PostgreSQL and S3 run for measurements, near and far? As the tests run them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.distance import SOCKET_NAME
from bench.processes import NotStarted, tree_cpu_s
from tests.support.postgresql import PostgresServer, server_on_disk
from tests.support.seaweedfs import S3Server

SETTINGS: Final = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
}
_WAIT_S: Final = 10.0
_POLL_S: Final = 0.01


class MeasuredDatabase(PostgresServer):
    """A server of PostgreSQL on this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, SETTINGS)
        self.folder = folder

    def cpu_s(self) -> float:
        """Return the processor time that all its processes have taken so far."""
        return tree_cpu_s(self.process_id)

    @contextmanager
    def seen_from_afar(self, database: str, delay_ms: float) -> Iterator[str]:
        """Give the URL of a database by which each round trip takes so much longer."""
        with tempfile.TemporaryDirectory(prefix="podstead-") as folder:
            places = [folder, str(self.folder), str(delay_ms)]
            proxy = subprocess.Popen([sys.executable, "-m", "bench.distance", *places])
            try:
                _await(Path(folder) / SOCKET_NAME)
                yield database.replace(str(self.folder), folder)
            finally:
                proxy.terminate()
                proxy.wait()


@contextmanager
def running_postgresql() -> Iterator[MeasuredDatabase]:
    """Run a server on the disk, which is removed at the end."""
    with server_on_disk(MeasuredDatabase) as server:
        server.create()
        yield server


@contextmanager
def running_s3() -> Iterator[S3Server]:
    """Run SeaweedFS on the disk."""
    with tempfile.TemporaryDirectory(prefix="podstead-bench-", dir="/var/tmp") as folder:
        server = S3Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


def _await(socket: Path) -> None:
    deadline_s = time.monotonic() + _WAIT_S
    while not socket.exists():
        if time.monotonic() > deadline_s:
            raise NotStarted("the proxy of the database does not listen")
        time.sleep(_POLL_S)
