"""The operator makes, lists, changes and removes accounts beside a running server."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.commands import invoke
from tests.support.server import Answer, ServerProcess, running_server

PASSWORD = "correct horse battery staple"
OTHER_PASSWORD = "another password of alice"
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    options = ("--idp", "--registration", "closed")
    with running_server(ServerProcess(tmp_path / "root", options=options)) as server:
        yield server


class Terminal(io.BytesIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


def run(root: Path, *arguments: str, typed: str | io.BytesIO = "") -> Result:
    return invoke(root, "account", *arguments, typed=typed)


def account(server: ServerProcess, *arguments: str, typed: str = "") -> str:
    result = run(server.root, *arguments, typed=typed)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


@pytest.fixture
def alice(server: ServerProcess) -> str:
    """Her account; gives what was printed."""
    return account(server, "create", "alice", "--email", "a@example.org", typed=f"{PASSWORD}\n")


def sign_in(server: ServerProcess, password: str = PASSWORD, login: str = "alice") -> Answer:
    body = json.dumps({"email": login, "password": password})
    return server.request("POST", "/idp/credentials", body, JSON)


def token(server: ServerProcess, password: str = PASSWORD) -> str:
    answer = sign_in(server, password)
    assert answer.status == 200, answer.text
    return str(json.loads(answer.body)["access_token"])


def status_with(server: ServerProcess, token: str) -> int:
    return server.get("/alice/private/", {"Authorization": f"Bearer {token}"}).status


def states(server: ServerProcess) -> dict[str, tuple[str, str]]:
    """The address and state of each account, by pod."""
    lines = account(server, "list").splitlines()
    assert re.split("  +", lines[0]) == ["POD", "E-MAIL", "CREATED", "STATE"]
    cells = [re.split("  +", line) for line in lines[1:]]
    return {pod: (email, state) for pod, email, _, state in cells}


def test_an_account_that_was_made_is_there_at_once(server: ServerProcess, alice: str) -> None:
    """A-94, A-96: also where nobody else can register."""
    assert alice == f"{server.base_url}/alice/#me\n"
    assert status_with(server, token(server)) == 200
    assert sign_in(server, login="A@example.org").status == 200
    assert states(server) == {"alice": ("a@example.org", "in use")}
    profile = server.get("/alice/").text
    assert f"solid:oidcIssuer <{server.base_url}>" in profile
    body = json.dumps({"name": "bob", "email": "b@example.org", "password": PASSWORD})
    assert server.request("POST", "/.pods", body, JSON).status == 403


def test_another_password_ends_tokens_of_the_one_before(server: ServerProcess, alice: str) -> None:
    """A-76"""
    old = token(server)
    assert status_with(server, old) == 200
    account(server, "password", "a@example.org", typed=f"{OTHER_PASSWORD}\r\n")
    assert status_with(server, old) == 401
    assert sign_in(server).status == 401
    assert status_with(server, token(server, OTHER_PASSWORD)) == 200


def test_a_disabled_account_is_of_no_use_until_it_is_enabled(
    server: ServerProcess, alice: str
) -> None:
    old = token(server)
    assert "Disabled" in account(server, "disable", "alice")
    assert states(server)["alice"][1] == "disabled"
    assert (status_with(server, old), sign_in(server).status) == (401, 401)
    account(server, "enable", "alice")
    assert states(server)["alice"][1] == "in use"
    assert status_with(server, old) == 401
    assert status_with(server, token(server)) == 200


def test_a_removed_account_is_gone_with_its_pod(server: ServerProcess, alice: str) -> None:
    """A-97"""
    old = token(server)
    account(server, "delete", "alice", "--yes")
    assert states(server) == {}
    assert status_with(server, old) == 401
    assert server.get("/alice/").status in (401, 404)
    again = run(server.root, "create", "alice", typed=f"{PASSWORD}\n")
    assert (again.exit_code, states(server)) == (1, {}), "the name was somebody's"
    assert "'alice'" in account(server, "free-name", "alice")
    account(server, "create", "alice", typed=f"{PASSWORD}\n")
    assert states(server) == {"alice": ("-", "in use")}
    assert status_with(server, old) == 401
    assert run(server.root, "free-name", "alice").exit_code == 1


def test_removing_requires_confirmation(server: ServerProcess, alice: str) -> None:
    refused = run(server.root, "delete", "alice", typed="n\n")
    assert refused.exit_code == 1
    assert "Permanently delete the account" in refused.output
    assert "everything in its pod 'alice'?" in refused.output
    assert run(server.root, "delete", "alice").exit_code == 1
    assert list(states(server)) == ["alice"]
    assert run(server.root, "delete", "alice", typed="y\n").exit_code == 0
    assert states(server) == {}


def test_client_credentials_get_tokens_of_the_account(server: ServerProcess, alice: str) -> None:
    """A-67"""
    made = json.loads(account(server, "credentials", "alice", "--label", "backup", "--json"))
    assert made["web_id"] == alice.strip()
    assert made["issuer"] == server.base_url
    form = (
        f"grant_type=client_credentials&client_id={made['id']}&client_secret={made['secret']}"
        "&scope=webid"
    )
    answer = server.request("POST", "/idp/token", form, FORM)
    assert answer.status == 200, answer.text
    assert status_with(server, json.loads(answer.body)["access_token"]) == 200
    printed = account(server, "credentials", "alice").splitlines()
    assert [line.split()[0] for line in printed] == ["id", "secret", "web_id", "issuer"]


def test_a_password_is_typed_twice_at_a_terminal(server: ServerProcess) -> None:
    twice = Terminal(f"{PASSWORD}\nsomething else\n{PASSWORD}\n{PASSWORD}\n".encode())
    result = run(server.root, "create", "alice", typed=twice)
    assert result.exit_code == 0, result.output
    assert PASSWORD not in result.output
    assert sign_in(server).status == 200


def test_a_pod_from_before_the_provider_gets_an_account(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root")
    with running_server(server):
        assert server.request("POST", "/.pods", '{"name": "alice"}', JSON).status == 201
        server.options = ("--idp",)
        server.restart()
        taken = run(server.root, "create", "alice", typed=f"{PASSWORD}\n")
        assert (taken.exit_code, "already has this name" in taken.stderr) == (1, True)
        made = run(server.root, "create", "alice", "--existing-pod", typed=f"{PASSWORD}\n")
        assert made.exit_code == 0
        assert made.stdout == f"{server.base_url}/alice/#me\n"
        stated = f"solid/terms#oidcIssuer> <{server.base_url}>"
        assert stated in made.stderr
        access = token(server)
        assert status_with(server, access) == 401  # the profile does not name the provider yet
        own = invoke(server.root, "token", "create", "alice")
        answer = server.request(
            "PATCH",
            "/alice/",
            f"INSERT DATA {{ <{server.base_url}/alice/#me> <http://www.w3.org/ns/{stated} }}",
            {
                "Content-Type": "application/sparql-update",
                "Authorization": f"Bearer {own.stdout.strip()}",
            },
        )
        assert answer.status == 204
        assert status_with(server, access) == 200


def test_simple_tokens_come_from_the_command_line_only(server: ServerProcess, alice: str) -> None:
    """A-34: a provider accepts them, and gives none with a new pod."""
    made = invoke(server.root, "token", "create", "alice")
    assert made.exit_code == 0
    assert status_with(server, made.stdout.strip()) == 200


@pytest.mark.parametrize(
    "arguments",
    [("password", "bob"), ("disable", "bob"), ("enable", "bob"), ("delete", "bob", "--yes"),
     ("credentials", "bob@example.org")],
)  # fmt: skip
def test_what_is_not_there_is_said_and_ends_with_1(
    server: ServerProcess, arguments: tuple[str, ...]
) -> None:
    result = run(server.root, *arguments, typed=f"{PASSWORD}\n")
    sentence = f"Error: There is no account '{arguments[1]}'.\n"
    assert (result.exit_code, result.stderr) == (1, sentence)


@pytest.mark.parametrize(
    ("arguments", "typed", "exit_code", "part"),
    [
        (("create", "bob"), "1234567\n", 2, "at least 8 characters"),
        (("create", "idp"), f"{PASSWORD}\n", 2, "reserves this name"),
        (("create", "bob", "--email", "bob"), f"{PASSWORD}\n", 2, "must contain one @"),
        (("create", "bob"), "", 2, "the password, but is empty"),
        (("create", "bob", PASSWORD), "", 2, "unexpected extra argument"),
        (("create", "bob", "--existing-pod"), f"{PASSWORD}\n", 1, "There is no pod 'bob'."),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_sentence(
    server: ServerProcess, arguments: tuple[str, ...], typed: str, exit_code: int, part: str
) -> None:
    result = run(server.root, *arguments, typed=typed)
    assert result.exit_code == exit_code
    assert part in result.stderr
    assert states(server) == {}


def test_without_data_there_are_no_accounts(tmp_path: Path) -> None:
    result = run(tmp_path, "list")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: There is no data in {tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_a_command_takes_several_accounts_and_changes_none_if_one_is_wrong(
    server: ServerProcess,
) -> None:
    for name in ("alice", "bob", "carol"):
        account(server, "create", name, typed=f"{PASSWORD}\n")
    assert run(server.root, "disable", "alice", "bob", "nobody").exit_code == 1
    assert {state for _, state in states(server).values()} == {"in use"}
    assert account(server, "disable", "alice", "bob").splitlines() == [
        "Disabled the account alice.",
        "Disabled the account bob.",
    ]
    shown = json.loads(account(server, "enable", "alice", "bob", "--json"))
    assert [(each["pod"], each["disabled"]) for each in shown] == [("alice", False), ("bob", False)]
    assert json.loads(account(server, "promote", "carol", "--json"))["operator"] is True
    account(server, "delete", "alice", "bob", "--yes")
    account(server, "free-name", "alice", "bob")
    assert set(states(server)) == {"carol"}
