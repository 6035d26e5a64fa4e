"""What the log says of who did something to accounts, at the server and at the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.server import ServerProcess, running_server

JSON = {"Content-Type": "application/json"}
OPTIONS = (
    "--idp", "--trusted-proxy", "127.0.0.1", "--log-format", "json", "--workers", "2",
    "--pod-creations-per-hour", "0",
)  # fmt: skip
PASSWORD = "the password of everybody"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root", OPTIONS)) as running:
        yield running


def new_account(server: ServerProcess, name: str) -> str:
    sent = {"name": name, "email": f"{name}@example.org", "password": PASSWORD}
    answer = server.request("POST", "/.pods", json.dumps(sent), JSON)
    assert answer.status == 201, answer.text
    return name


def audited(server: ServerProcess, message: str) -> list[dict[str, str]]:
    """The lines of the audit that say this."""
    lines = [json.loads(line) for line in server.errors.splitlines() if line.startswith("{")]
    return [
        line
        for line in lines
        if line["logger"] == "podstead.audit" and line["message"] == message
    ]


def test_each_line_of_the_audit_has_the_address_of_its_own_request(server: ServerProcess) -> None:
    """Behind a proxy that says it, and while others are being answered."""
    names = {new_account(server, f"person{number}"): f"192.0.2.{number}" for number in range(8)}

    def fail(name: str) -> None:
        sent = json.dumps({"username": name, "password": "a wrong guess"})
        fields = {**JSON, "X-Forwarded-For": names[name]}
        assert server.request("POST", "/idp/credentials", sent, fields).status == 401

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fail, names))
    server.stop()
    failed = {line["account"]: line["client_address"] for line in audited(server, "sign-in failed")}
    assert sorted(failed.values()) == sorted(names.values())
