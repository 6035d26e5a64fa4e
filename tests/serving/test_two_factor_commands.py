"""``podstead account reset-two-factor``, beside a running server."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyotp

from tests.support.client import Client
from tests.support.people import PASSWORD, Person, create_account
from tests.support.server import ServerProcess, run_command, running_server

FACTOR = "/idp/account/two-factor"


def token_status(server: ServerProcess, name: str) -> int:
    """The status of a sign-in with the password alone."""
    sent = json.dumps({"username": name, "password": PASSWORD})
    with Client(server) as client:
        json_type = {"Content-Type": "application/json"}
        return client.request("POST", "/idp/credentials", sent, json_type).status


def test_an_operator_resets_a_second_factor_by_command(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with running_server(ServerProcess(root=root, options=["--idp"])) as server:
        account = create_account(server)
        person = Person(account)
        person.sign_in(person.open(f"{server.base_url}/idp/login"))
        page = person.open(server.base_url + FACTOR)
        secret = page.form(FACTOR).fields["secret"]
        person.fill_in(page, FACTOR, code=pyotp.TOTP(secret).at(int(time.time())))
        assert token_status(server, account.name) == 401
        ended = run_command("account", "reset-two-factor", account.name, "--root", str(root))
        assert ended.returncode == 0, ended.stderr
        assert token_status(server, account.name) == 200
        ended = run_command("account", "reset-two-factor", "nobody", "--root", str(root))
        assert ended.returncode == 1
