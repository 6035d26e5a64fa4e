"""S3 servers for tests: SeaweedFS from a Python package, one that all tests of a run share, and
servers of their own for tests that stop them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Final, TextIO

import obstore
from obstore.store import S3Store

ACCESS_KEY: Final = "podstead"
SECRET_KEY: Final = "a-key-for-tests"
REGION: Final = "us-east-1"

_BUCKET: Final = "tests"
_PORTS: Final = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
)
_OPTIONS: Final = (
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-filer",
    "-s3",
    "-s3.iam=false",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-master.telemetry=false",
    "-master.volumeSizeLimitMB=64",
    "-volume.max=64",
)
_users: list[TextIO] = []
"""The open file whose lock says that this process uses the shared server."""


class S3Server:
    """One server, with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = folder / "ports.json"
        self._process_id = folder / "pid"

    def start(self) -> None:
        """Start it, at the ports it had before if there are any, and wait until it answers."""
        if not self._ports.exists():
            self._ports.write_text(json.dumps(dict(zip(_PORTS, _free_ports(), strict=True))))
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin"],
        }
        access = self._folder / "access.json"
        access.write_text(json.dumps({"identities": [identity]}))
        (self._folder / "data").mkdir(exist_ok=True)
        ports = json.loads(self._ports.read_text())
        started = subprocess.run(
            [
                # A shell starts it, so that it is nobody's child and may outlive this process.
                "sh",
                "-c",
                '"$@" >> "$0" 2>&1 < /dev/null & echo $!',
                self._folder / "log",
                Path(sys.executable).with_name("weed"),
                "-logtostderr=true",
                "server",
                f"-dir={self._folder / 'data'}",
                f"-s3.config={access}",
                *_OPTIONS,
                *(f"-{name}={port}" for name, port in ports.items()),
            ],
            stdout=subprocess.PIPE,
            check=True,
            start_new_session=True,
        )
        self._process_id.write_bytes(started.stdout)
        # The parts of the server start one after another. Requests are repeated until all have.
        store = S3Store(
            _BUCKET,
            config={
                "endpoint": self.endpoint,
                "region": REGION,
                "access_key_id": ACCESS_KEY,
                "secret_access_key": SECRET_KEY,
            },
            client_options={"allow_http": True},
            retry_config={"max_retries": 600, "backoff": {"max_backoff": timedelta(seconds=0.1)}},
        )
        obstore.put(store, "ready", b"ready")
        assert bytes(obstore.get(store, "ready").bytes()) == b"ready"

    @property
    def port(self) -> int:
        """The port at which it speaks the protocol of S3."""
        port: int = json.loads(self._ports.read_text())["s3.port"]
        return port

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_location(self, *, parameters: str = "") -> str:
        """The URL of a prefix that nothing else uses."""
        # In one bucket, because the server reserves space for each.
        return f"s3://{_BUCKET}/{secrets.token_hex(8)}?endpoint={self.endpoint}&region={REGION}{parameters}"

    def pause(self) -> None:
        """Let it answer nothing, while connections to it stay open."""
        os.kill(self._number(), signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._number(), signal.SIGCONT)

    def kill(self) -> None:
        """End it as a power cut does, and wait until it is gone. Idempotent."""
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            ended = os.pidfd_open(self._number())
            os.kill(self._number(), signal.SIGKILL)
            select.select([ended], [], [])
            os.close(ended)
        self._process_id.unlink(missing_ok=True)

    def _number(self) -> int:
        return int(self._process_id.read_text())


def s3_environment() -> dict[str, str]:
    """The variables with the credentials for every server."""
    return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}


def shared_s3_server() -> S3Server:
    """The server that the first process of a run starts, and the last one stops.

    Sets the variables with its credentials in this process.
    """
    os.environ.update(s3_environment())
    return _shared_server()


def bodies_of(root: Path) -> str:
    """Where the bodies of the data root of a test are, chosen at the first call."""
    noted = root.with_name(f"{root.name}.bodies")
    if not noted.exists():
        noted.write_text(shared_s3_server().new_location())
    return noted.read_text()


def leave_s3_server() -> None:
    """End the use of the shared server by this process; the last one stops it. Idempotent."""
    if not _users:
        return
    users, folder = _users.pop(), _shared_folder()
    with contextlib.suppress(BlockingIOError), users:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        S3Server(folder).kill()
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _shared_server() -> S3Server:
    folder = _shared_folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    _users.append((folder / "users").open("w"))
    fcntl.flock(_users[0], fcntl.LOCK_SH)
    server = S3Server(folder)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            server.start()
            (folder / "ready").touch()
    return server


def _shared_folder() -> Path:
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    return Path(tempfile.gettempdir()) / f"podstead-s3-{run}"


def _free_ports() -> list[int]:
    # A port that is only bound and not listened at can be taken over at once.
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in _PORTS]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
