"""S3 servers for tests: SeaweedFS from a Python package, one that all tests of a run share, and
servers of their own for tests that stop them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

import obstore
from obstore.store import S3Store

from podstead.storage.blobs.s3 import objects
from tests.support.processes import becomes_readable
from tests.support.shared_server import SharedServer

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


class S3Server:
    """One server, with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = folder / "ports.json"
        self._noted_process = folder / "pid"

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
            env={**os.environ, "WEED_S3_SSE_KEY": "a-key-for-tests"},
        )
        self._noted_process.write_bytes(started.stdout)
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
        # Stores in this process have a connection each. Those of earlier tests are closed now.
        objects._open_both.cache_clear()
        objects._open_to_probe.cache_clear()
        # In one bucket, because the server reserves space for each.
        return f"s3://{_BUCKET}/{secrets.token_hex(8)}?endpoint={self.endpoint}&region={REGION}{parameters}"

    def unfinished_uploads(self, prefix: str) -> list[str]:
        """The keys of multipart uploads below a prefix that were neither completed nor aborted."""
        listed = self.ask("GET", f"{_BUCKET}?prefix={prefix}%2F&uploads=")
        return re.findall(r"<Key>([^<]*)</Key>", listed)

    def ask(self, method: str, path: str, *options: str) -> str:
        """What curl prints for a signed request."""
        return subprocess.run(
            [
                *("curl", "--silent", "--show-error", "--fail-with-body", "--request", method),
                *("--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", f"{ACCESS_KEY}:{SECRET_KEY}"),
                *options,
                f"{self.endpoint}/{path}",
            ],
            capture_output=True,
            check=True,
            text=True,
        ).stdout

    def pause(self) -> None:
        """Let it answer nothing, while connections to it stay open."""
        os.kill(self.process_id, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.process_id, signal.SIGCONT)

    def kill(self) -> None:
        """End it as a power cut does, and wait until it is gone. Idempotent."""
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            ended = os.pidfd_open(self.process_id)
            os.kill(self.process_id, signal.SIGKILL)
            becomes_readable(ended)
            os.close(ended)
        self._noted_process.unlink(missing_ok=True)

    @property
    def process_id(self) -> int:
        return int(self._noted_process.read_text())


_SHARED: Final = SharedServer("s3", S3Server, S3Server.start, ended_by=signal.SIGKILL)


def s3_environment() -> dict[str, str]:
    """The variables with the credentials for every server."""
    return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}


def shared_s3_server() -> S3Server:
    """The server of this run. Sets the variables with its credentials in this process."""
    os.environ.update(s3_environment())
    return _SHARED.running()


def bodies_of(root: Path) -> str:
    """Where the bodies of the data root of a test are, chosen at the first call."""
    noted = root.with_name(f"{root.name}.bodies")
    if not noted.exists():
        noted.write_text(shared_s3_server().new_location())
    return noted.read_text()


def _free_ports() -> list[int]:
    # A port that is only bound and not listened at can be taken over at once.
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in _PORTS]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
