"""The access log of a running server, and what fail2ban makes of its audit log."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import DEADLINE_S, Answer, ServerProcess, run_command, running_server

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
