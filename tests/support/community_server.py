"""The Community Solid Server, as another provider and another resource server than ours.

Its data is in memory, and then all tests of a run share it, or in files for a test that imports
them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.node import COMMUNITY_SERVER, NODE, install_packages
from tests.support.processes import becomes_readable
from tests.support.server import DEADLINE_S
from tests.support.shared_server import SharedServer
from tests.support.waiting import wait_until

_PACKAGE = COMMUNITY_SERVER / "node_modules/@solid/community-server"
_SERVER = _PACKAGE / "bin/server.js"
# Below the range from which systems give ports to others.
_PORTS = range(20_000, 32_000)
_PORT_ATTEMPTS = 20
_START_DEADLINE_S = 240
"""It takes more than ten seconds of processor time."""
_READY = "Listening to server at"
_IN_USE = "EADDRINUSE"
PASSWORD = "password123"


@dataclass(frozen=True, slots=True)
class ForeignAgent:
    """Somebody with an account there, and what an application without a browser signs in with."""

    web_id: str
    pod_url: str
    client_id: str
    client_secret: str


class CommunityServer:
    """A server with its files in a folder; ``base_url`` has a slash at its end, as its issuer
    identifier does."""

    def __init__(self, folder: Path, *, in_files: bool = False) -> None:
        self._folder = folder
        self.data = folder / "files"
        self._configuration = "config/file.json" if in_files else "config/default.json"
        self._log = folder / "community-server.log"
        self._noted = folder / "community-server.json"

    def start(self) -> None:
        """Start it at a free port, and wait until it answers."""
        install_packages(COMMUNITY_SERVER)
        for _ in range(_PORT_ATTEMPTS):
            if self._start_at(secrets.choice(_PORTS)):
                return
            if _IN_USE not in self._log.read_text():
                break
        raise AssertionError(self._log.read_text())

    def _start_at(self, port: int) -> bool:
        """Whether it answers there, and has not ended."""
        self._launch(port)
        ended = os.pidfd_open(self.process_id)
        try:
            wait_until(
                lambda: becomes_readable(ended, 0) or self._answers(),
                "the Community Solid Server's start",
                deadline_s=_START_DEADLINE_S,
            )
            return not becomes_readable(ended, 0)
        finally:
            os.close(ended)

    @property
    def port(self) -> int:
        port: int = json.loads(self._noted.read_text())["port"]
        return port

    @property
    def process_id(self) -> int:
        process_id: int = json.loads(self._noted.read_text())["process_id"]
        return process_id

    @property
    def base_url(self) -> str:
        return f"http://localhost:{self.port}/"

    def close(self) -> None:
        """End it, and wait until it is gone."""
        ended = os.pidfd_open(self.process_id)
        os.kill(self.process_id, signal.SIGKILL)
        becomes_readable(ended)
        os.close(ended)

    def create_agent(self, name: str) -> ForeignAgent:
        """An account with a pod and client credentials, made as its own pages do."""
        account = self._ask("POST", self._controls("")["account"]["create"], {})["authorization"]
        controls = self._controls(account)
        email = f"{name}@example.com"
        self._ask(
            "POST", controls["password"]["create"], {"email": email, "password": PASSWORD}, account
        )
        pod = self._ask("POST", controls["account"]["pod"], {"name": name}, account)
        credentials = self._ask(
            "POST",
            controls["account"]["clientCredentials"],
            {"name": "tests", "webId": pod["webId"]},
            account,
        )
        return ForeignAgent(pod["webId"], pod["pod"], credentials["id"], credentials["secret"])

    def _controls(self, account: str) -> Any:  # noqa: ANN401 - links by their purpose
        return self._ask("GET", f"{self.base_url}.account/", None, account)["controls"]

    def _ask(self, method: str, url: str, content: object, account: str = "") -> Any:  # noqa: ANN401
        headers = {"Accept": "application/json"}
        if account:
            headers["Authorization"] = f"CSS-Account-Token {account}"
        if content is not None:
            headers["Content-Type"] = "application/json"
        body = None if content is None else json.dumps(content)
        connection = http.client.HTTPConnection("localhost", self.port, timeout=DEADLINE_S)
        with contextlib.closing(connection):
            connection.request(method, "/" + url.removeprefix(self.base_url), body, headers)
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 200, answer
            return json.loads(answer)

    def _launch(self, port: int) -> None:
        started = subprocess.run(
            [
                # A shell starts it, so that it is nobody's child and may outlive this process.
                *("sh", "-c", '"$@" > "$0" 2>&1 < /dev/null & echo $!', self._log),
                *(NODE, _SERVER, "--port", str(port), "--baseUrl", f"http://localhost:{port}/"),
                *("--rootFilePath", self.data, "--loggingLevel", "info"),
                *("--config", _PACKAGE / self._configuration),
            ],
            stdout=subprocess.PIPE,
            check=True,
            cwd=COMMUNITY_SERVER,
            start_new_session=True,
        )
        self._noted.write_text(json.dumps({"port": port, "process_id": int(started.stdout)}))

    def _answers(self) -> bool:
        # It says that it listens before it does, and before it finds the port in use.
        if _READY not in self._log.read_text():
            return False
        try:
            return bool(self._controls(""))
        except (OSError, http.client.HTTPException, AssertionError, ValueError):
            return False


_SHARED: Final = SharedServer(
    "community", CommunityServer, CommunityServer.start, ended_by=signal.SIGKILL
)


def shared_community_server() -> CommunityServer:
    """The server of this run, with its data in memory, where each test has agents of its own."""
    return _SHARED.running()


@contextlib.contextmanager
def running_community_server(folder: Path) -> Iterator[CommunityServer]:
    """A server with its data in files that ends whatever happens."""
    server = CommunityServer(folder, in_files=True)
    server.start()
    try:
        yield server
    finally:
        server.close()
