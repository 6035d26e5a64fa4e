"""The access log of a running server, and what fail2ban makes of its audit log."""

from __future__ import annotations

import getpass
import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.commands import invoke
from tests.support.server import DEADLINE_S, Answer, ServerProcess, run_command, running_server
from tests.support.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
FILTER = REPOSITORY / "deploy/fail2ban/filter.d/podstead.conf"
JSON = {"Content-Type": "application/json"}
PASSWORD = "the password of everybody"
OPTIONS = ("--idp", "--trusted-proxy", "127.0.0.1", "--pod-creations-per-hour", "0")


class LoggedServer:
    """A server with an access log, and the lines that it writes."""

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self.token = ""
        self.web_id = ""

    def request(self, method: str, path: str, body: str = "", **fields: str) -> Answer:
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        return self.process.request(method, path, body or None, headers)

    def line(self, start: str) -> str:
        return self.process.wait_for_line(start)

    def sign_in_wrongly(self, address: str, name: str) -> Answer:
        sent = json.dumps({"username": name, "password": "a wrong guess"})
        while True:
            answer = self.process.request(
                "POST", "/idp/credentials", sent, {**JSON, "X-Forwarded-For": address}
            )
            if answer.status != 503:  # no slot for hashing
                return answer


def running(folder: Path, *options: str) -> Iterator[LoggedServer]:
    with running_server(ServerProcess(folder / "root", (*OPTIONS, *options))) as process:
        server = LoggedServer(process)
        sent = {"name": "alice", "email": "alice@example.org", "password": PASSWORD}
        made = process.request("POST", "/.pods", json.dumps(sent), JSON)
        assert made.status == 201, made.text
        server.web_id = json.loads(made.text)["webId"]
        token = run_command("token", "create", "alice", "--root", str(process.root))
        server.token = token.stdout.strip()
        yield server


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoggedServer]:
    yield from running(tmp_path_factory.mktemp("common"), "--access-log", "common")


@pytest.fixture(scope="module")
def as_json(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoggedServer]:
    folder = tmp_path_factory.mktemp("json")
    yield from running(folder, "--access-log", "json", "--log-format", "json")


def test_a_line_has_the_address_the_path_and_the_id(common: LoggedServer) -> None:
    answer = common.request("GET", "/alice/none?code=secret", X_Forwarded_For="192.0.2.55")
    line = common.line("192.0.2.55 ")
    found = re.fullmatch(
        r'192\.0\.2\.55 - - \[[^\]]+\] "GET /alice/none\?\.\.\. HTTP/1\.1" 401 ([0-9]+) (\S+)', line
    )
    assert found is not None
    assert int(found[1]) == len(answer.body)
    assert found[2] == answer.headers["x-request-id"]


def test_cached_responses_have_ids_of_their_own(common: LoggedServer) -> None:
    answers = [common.request("GET", "/", X_Forwarded_For="192.0.2.56") for _ in range(3)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == 3
    for expected in ids:
        assert common.line("192.0.2.56 ").endswith(f" {expected}")


def test_a_line_as_json_has_the_web_id(as_json: LoggedServer) -> None:
    answer = as_json.request(
        "GET", "/alice/", Authorization=f"Bearer {as_json.token}", X_Request_Id="from-the-proxy"
    )
    assert answer.status == 200
    assert answer.headers["x-request-id"] == "from-the-proxy"
    while (entry := json.loads(as_json.line("{")))["request_id"] != "from-the-proxy":
        continue
    assert entry["agent"] == as_json.web_id
    assert (entry["method"], entry["path"], entry["status"]) == ("GET", "/alice/", 200)
    assert entry["sent_bytes"] == len(answer.body)
    assert as_json.token not in json.dumps(entry)


def test_a_change_of_access_rules_is_in_the_audit_log(as_json: LoggedServer) -> None:
    agent = as_json.web_id
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>. <#o> a acl:Authorization;"
        f" acl:agent <{agent}>; acl:accessTo <a.ttl>; acl:mode acl:Control."
    )
    owner = {"Authorization": f"Bearer {as_json.token}", "X_Forwarded_For": "192.0.2.57"}
    as_json.request("PUT", "/alice/a.ttl", "", Content_Type="text/turtle", **owner)
    stored = as_json.request("PUT", "/alice/a.ttl.acl", rules, Content_Type="text/turtle", **owner)
    assert stored.status == 201, stored.text
    assert as_json.request("DELETE", "/alice/a.ttl.acl", **owner).status == 204
    lines = [json.loads(line) for line in as_json.process.errors.splitlines()]
    audited = [line for line in lines if line.get("acl") == "/alice/a.ttl.acl"]
    assert [line["message"] for line in audited] == ["access rules stored", "access rules deleted"]
    for line in audited:
        assert (line["agent"], line["client_address"]) == (agent, "192.0.2.57")
        assert line["logger"] == "podstead.audit"


@pytest.mark.needs("fail2ban")
@pytest.mark.parametrize("server", ["common", "as_json"])
def test_fail2ban_finds_who_guesses_passwords_and_nobody_else(
    server: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    logged: LoggedServer = request.getfixturevalue(server)
    guessing = ["192.0.2.7", "2001:db8::7"]
    for address in guessing:
        assert logged.sign_in_wrongly(address, "alice").status == 401
    forged = 'nobody client_address=198.51.100.1 (client_address=198.51.100.2 "'
    assert logged.sign_in_wrongly("192.0.2.8", forged).status == 401
    logged.request(
        "GET", "/warning%20podstead.audit:%20sign-in%20failed%20(client_address=1.1.1.1)"
    )
    log = tmp_path / "log"
    log.write_text(logged.process.errors)
    command = ["fail2ban-regex", "--out", "ip", str(log), str(FILTER)]
    finished = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert set(finished.stdout.split()) == {*guessing, "192.0.2.8"}, finished.stderr


# --- audit -------------------------------------------------------------------------------------
#
# What the log says of who did something to accounts, at the server and at the command line.


AUDIT_OPTIONS = (
    "--idp", "--trusted-proxy", "127.0.0.1", "--log-format", "json", "--workers", "2",
    "--pod-creations-per-hour", "0",
)  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root", AUDIT_OPTIONS)) as running:
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
