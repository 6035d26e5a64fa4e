"""A node process with one client library, whose behaviours tests ask for by name.

The process is started once for the tests of a module, since libraries take long to load; every
test asks for one behaviour and gives it a container of its own.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.node import NODE, install_packages

CLIENTS = Path(__file__).resolve().parents[1] / "clients"
DEADLINE_S = 60
"""For one behaviour, on a machine that may be busy."""


@dataclass(frozen=True, slots=True)
class Agent:
    """Whom a client acts for."""

    web_id: str
    token: str


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that the library sent, and the status it was answered with."""

    method: str
    url: str
    headers: dict[str, str]
    """By names in lower case."""
    patch: str | None
    """The body of a PATCH."""
    status: int | None
    """``None`` when there was no answer."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a behaviour returned, and what the library sent on the way."""

    value: Any
    requests: list[Sent]

    def sent(self, method: str) -> list[Sent]:
        """The requests with this method, in order."""
        return [sent for sent in self.requests if sent.method == method]


class ClientFailed(Exception):
    """The behaviour ended with an exception: the library's own, or a defect of the scenario."""

    def __init__(self, error: dict[str, Any], requests: list[Sent]) -> None:
        sent = "".join(f"\n  {one.method} {one.url} -> {one.status}" for one in requests)
        super().__init__(f"{error['name']}: {error['message']}{sent}\n{error['stack']}")
        self.name: str = error["name"]
        self.status: int | None = error["status"]
        """The HTTP status that the library tells with its error."""
        self.requests = requests


class ClientProcess:
    """Runs the behaviours of one module, by its name in ``scenarios/`` or by its path."""

    def __init__(self, scenario: str | Path, log: Path) -> None:
        install_packages(CLIENTS)
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [NODE, "runner.mjs", Path("scenarios", scenario)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=CLIENTS,
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, behaviour: str, agent: Agent | None = None, /, **arguments: object) -> Report:
        """Run a behaviour as an agent, or as nobody. Raises ClientFailed with its error."""
        asked = {
            "behaviour": behaviour,
            "agent": None if agent is None else {"webId": agent.web_id, "token": agent.token},
            "arguments": arguments,
        }
        answer = self._ask(json.dumps(asked))
        requests = [Sent(**sent) for sent in answer["requests"]]
        if "error" in answer:
            raise ClientFailed(answer["error"], requests)
        return Report(answer["value"], requests)

    def close(self) -> None:
        """End the process, whatever it does."""
        assert self._process.stdin is not None
        self._process.kill()
        self._process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # told better by what it logged
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        try:
            answer = self._lines.get(timeout=DEADLINE_S)
        except queue.Empty:
            raise AssertionError(f"no answer to {line}: {self._log.read_text()}") from None
        assert answer is not None, f"node ended: {self._log.read_text()}"
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self._lines.put(line)
        self._lines.put(None)


@contextlib.contextmanager
def running_client(scenario: str | Path, log: Path) -> Iterator[ClientProcess]:
    """Start a scenario module and end it whatever happens."""
    client = ClientProcess(scenario, log)
    try:
        yield client
    finally:
        client.close()
