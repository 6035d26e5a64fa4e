"""The Community Solid Server, as another provider and another resource server than ours.

Its data is in memory, or in files for a test that imports them. It is started once for the tests of
a module, since it takes some seconds.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.node import COMMUNITY_SERVER, NODE, install_packages
from tests.support.server import DEADLINE_S
from tests.support.waiting import wait_until

_PACKAGE = COMMUNITY_SERVER / "node_modules/@solid/community-server"
_SERVER = _PACKAGE / "bin/server.js"
# Below the range from which systems give ports to others.
_PORTS = range(20_000, 32_000)
_PORT_ATTEMPTS = 20
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
    """A running server; ``base_url`` has a slash at its end, as its issuer identifier does."""

    def __init__(self, folder: Path, *, in_files: bool = False) -> None:
        install_packages(COMMUNITY_SERVER)
        self._folder = folder
        self.data = folder / "files"
        self._configuration = "config/file.json" if in_files else "config/default.json"
        for _ in range(_PORT_ATTEMPTS):
            self._port = secrets.choice(_PORTS)
            self._log = folder / f"community-server-{self._port}.log"
            self._process = self._launch()
            wait_until(self._has_ended_or_answers, "the Community Solid Server's start")
            if self._process.poll() is None:
                return
            self.close()
            if _IN_USE not in self._log.read_text():
                break
        raise AssertionError(self._log.read_text())

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        return f"http://localhost:{self._port}/"

    def close(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)

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
        connection = http.client.HTTPConnection("localhost", self._port, timeout=DEADLINE_S)
        with contextlib.closing(connection):
            connection.request(method, "/" + url.removeprefix(self.base_url), body, headers)
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 200, answer
            return json.loads(answer)

    def _launch(self) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [
                    *(NODE, _SERVER, "--port", str(self._port), "--baseUrl", self.base_url),
                    *("--rootFilePath", self.data, "--loggingLevel", "info"),
                    *("--config", _PACKAGE / self._configuration),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=COMMUNITY_SERVER,
            )

    def _has_ended_or_answers(self) -> bool:
        # It says that it listens before it does, and before it finds the port in use.
        if self._process.poll() is not None:
            return True
        if _READY not in self._log.read_text():
            return False
        try:
            return bool(self._controls(""))
        except (OSError, http.client.HTTPException, AssertionError, ValueError):
            return False


@contextlib.contextmanager
def running_community_server(folder: Path, *, in_files: bool = False) -> Iterator[CommunityServer]:
    """A server that ends whatever happens."""
    server = CommunityServer(folder, in_files=in_files)
    try:
        yield server
    finally:
        server.close()
