"""What the log says of who did something to accounts, at the server and at the command line."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.commands import invoke
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until

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
        line for line in lines if line["logger"] == "podstead.audit" and line["message"] == message
    ]


def test_each_line_of_the_audit_has_the_address_of_its_own_request(server: ServerProcess) -> None:
    """Behind a proxy that says it, and while others are being answered."""
    names = {new_account(server, f"person{number}"): f"192.0.2.{number}" for number in range(4)}

    def fail(name: str) -> None:
        sent = json.dumps({"username": name, "password": "a wrong guess"})
        fields = {**JSON, "X-Forwarded-For": names[name]}
        while True:
            status = server.request("POST", "/idp/credentials", sent, fields).status
            if status != 503:  # no slot for hashing, and so nothing noted
                break
        assert status == 401

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fail, names))
    server.stop()
    failed = {line["account"]: line["client_address"] for line in audited(server, "sign-in failed")}
    assert sorted(failed.values()) == sorted(names.values())


def test_what_the_operator_does_by_command_is_in_the_log_of_the_server(
    server: ServerProcess,
) -> None:
    """Once, whichever worker finds it; with who gave the command."""
    new_account(server, "alice")
    acts = {
        ("account", "disable", "alice"): "account disabled",
        ("account", "enable", "alice"): "account enabled",
        ("account", "credentials", "alice"): "client credentials created",
        ("token", "create", "alice"): "token of a pod created",
        ("token", "revoke", "--pod", "alice"): "token of the pod revoked",
        ("keys", "rotate"): "signing key made",
        ("account", "delete", "alice", "--yes"): "account deleted",
        ("account", "free-name", "alice"): "name of a former pod freed",
    }
    for command in acts:
        done = invoke(server.root, *command)
        assert done.exit_code == 0, done.output
    for message in acts.values():
        wait_until(lambda: bool(_by_operator(server, message)), f"the line '{message}'")  # noqa: B023
    server.stop()
    for command, message in acts.items():
        lines = _by_operator(server, message)
        assert len(lines) == (2 if command[0] == "keys" else 1), message
        assert {line["operator"] for line in lines} == {getpass.getuser()}
        assert all("at" in line for line in lines)


def test_what_is_done_while_no_server_runs_is_logged_when_the_next_one_starts(
    server: ServerProcess,
) -> None:
    new_account(server, "alice")
    server.stop()
    done = invoke(server.root, "account", "disable", "alice")
    assert done.exit_code == 0, done.output
    assert _by_operator(server, "account disabled") == []
    server.start()
    wait_until(lambda: len(_by_operator(server, "account disabled")) == 1, "the line")


def _by_operator(server: ServerProcess, message: str) -> list[dict[str, str]]:
    return [line for line in audited(server, message) if "operator" in line]


def test_the_lines_name_the_account(server: ServerProcess) -> None:
    """Those of a request, and those of a command, which a worker writes later."""
    new_account(server, "alice")
    sent = json.dumps({"username": "alice", "password": "wrong"})
    assert server.request("POST", "/idp/credentials", sent, JSON).status == 401
    assert invoke(server.root, "account", "disable", "alice").exit_code == 0
    wait_until(lambda: bool(audited(server, "account disabled")), "a worker logs it")
    for message in ("sign-in failed", "account disabled"):
        [line] = audited(server, message)
        assert line["account_name"] == "alice"
        assert len(line["account"]) == 32
