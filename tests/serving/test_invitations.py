"""Invitations by command, beside a running server of two workers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.support.commands import invoke
from tests.support.server import ServerProcess, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("invited")
    terms = folder / "terms.md"
    terms.write_text("Be *kind*.")
    options = ["--idp", "--registration", "invited", "--terms", str(terms), "--workers", "2"]
    with running_server(ServerProcess(folder / "root", options=options)) as server:
        yield server


def run(root: Path, *arguments: str) -> Result:
    return invoke(root, "invite", *arguments)


def answered(root: Path, *arguments: str) -> Any:  # noqa: ANN401 - whatever the JSON is
    result = run(root, *arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


def register(server: ServerProcess, code: str, name: str) -> int:
    sent = {"name": name, "email": f"{name}@example.org", "password": "a few words in a row"}
    body = json.dumps({**sent, "acceptTerms": True, "invitation": code})
    while True:
        answer = server.request("POST", "/.pods", body, {"Content-Type": "application/json"})
        # One client has only a share of the places where passwords are hashed.
        if answer.status != 503:
            return answer.status


def test_an_invitation_is_created_used_listed_and_revoked(server: ServerProcess) -> None:
    made = answered(server.root, "create", "--uses", "2", "--days", "3")
    assert made["link"] == f"{server.base_url}/idp/register?invitation={made['code']}"
    created, ends = (datetime.fromisoformat(made[name]) for name in ("created", "expires"))
    assert ends - created == timedelta(days=3)
    assert register(server, made["code"], "carol") == 201
    [listed] = [each for each in answered(server.root, "list") if each["id"] == made["id"]]
    assert (listed["uses"], listed["uses_left"]) == (2, 1)
    assert "code" not in listed
    assert made["id"] in run(server.root, "list").stdout
    assert answered(server.root, "revoke", made["id"]) == {"id": made["id"], "revoked": True}
    assert register(server, made["code"], "dave") == 403
    again = run(server.root, "revoke", made["id"])
    assert (again.exit_code, again.stderr) == (
        1,
        f"Error: There is no invitation '{made['id']}'.\n",
    )


def test_the_link_is_what_the_command_prints(server: ServerProcess) -> None:
    result = run(server.root, "create")
    [link] = result.stdout.split()
    page = server.get(link.removeprefix(server.base_url), {"Accept": "text/html"})
    assert link.partition("=")[2] in page.text
    assert "/.pages/terms" in page.text
    terms = server.get("/.pages/terms", {"Accept": "text/html"})
    assert "<em>kind</em>" in terms.text


@pytest.mark.parametrize("arguments", [("--uses", "0"), ("--days", "9999"), ("--uses", "many")])
def test_wrong_numbers_are_wrong_usage(server: ServerProcess, arguments: tuple[str, str]) -> None:
    assert run(server.root, "create", *arguments).exit_code == 2


def test_two_workers_give_no_more_uses_than_there_are(server: ServerProcess) -> None:
    code = answered(server.root, "create", "--uses", "3")["code"]
    with ThreadPoolExecutor(max_workers=9) as threads:
        names = [f"racer-{number}" for number in range(9)]
        statuses = list(threads.map(lambda name: register(server, code, name), names))
    assert sorted(statuses) == [201] * 3 + [403] * 6
    assert re.search(r"^\w{8} +0 ", run(server.root, "list").stdout, re.MULTILINE)
