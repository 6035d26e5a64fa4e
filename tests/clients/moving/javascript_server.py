"""javascript-solid-server, whose data is imported."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.node import JAVASCRIPT_SERVER, NODE, install_packages
from tests.support.server import DEADLINE_S, Answer, request_to
from tests.support.waiting import wait_until

_SERVER = JAVASCRIPT_SERVER / "node_modules/javascript-solid-server/bin/jss.js"
_PORTS = range(20_000, 32_000)
_PORT_ATTEMPTS = 20
PASSWORD = "password123"


class JavaScriptServer:
    """A running server; ``base_url`` has a slash at its end."""

    def __init__(self, folder: Path) -> None:
        install_packages(JAVASCRIPT_SERVER)
        self.data = folder / "files"
        self._log = folder / "javascript-server.log"
        for _ in range(_PORT_ATTEMPTS):
            self.port = secrets.choice(_PORTS)
            self._process = self._launch()
            wait_until(self._has_ended_or_answers, "the start of javascript-solid-server")
            if self._process.poll() is None:
                return
        raise AssertionError(self._log.read_text())

    @property
    def base_url(self) -> str:
        return f"http://localhost:{self.port}/"

    def close(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def create_pod(self, name: str) -> str:
        """A pod with an account; a token of its owner."""
        email = f"{name}@example.com"
        self._post(".pods", {"name": name, "email": email, "password": PASSWORD}, 201)
        login = {"email": email, "password": PASSWORD}
        token: str = json.loads(self._post("idp/credentials", login, 200).body)["access_token"]
        return token

    def _post(self, path: str, content: object, status: int) -> Answer:
        headers = {"Content-Type": "application/json"}
        answer = request_to("POST", self.base_url + path, json.dumps(content), headers)
        assert answer.status == status, answer.text
        return answer

    def _launch(self) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [
                    *(NODE, _SERVER, "start", "--port", str(self.port), "--host", "127.0.0.1"),
                    *("--root", self.data, "--idp", "--idp-issuer", self.base_url),
                    *("--conneg", "--quiet"),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._log.parent,
            )

    def _has_ended_or_answers(self) -> bool:
        if self._process.poll() is not None:
            return True
        try:
            return request_to("GET", self.base_url).status > 0
        except (OSError, http.client.HTTPException):
            return False


@contextlib.contextmanager
def running_javascript_server(folder: Path) -> Iterator[JavaScriptServer]:
    """A server that ends whatever happens."""
    server = JavaScriptServer(folder)
    try:
        yield server
    finally:
        server.close()
