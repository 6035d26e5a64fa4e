"""The operator makes, lists and revokes tokens beside a running server (A-31, A-33)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.commands import invoke
from tests.support.server import ServerProcess, running_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root")) as server:
        yield server


@pytest.fixture
def first_token(server: ServerProcess) -> str:
    """The token that a new pod comes with."""
    answer = server.request(
        "POST", "/.pods", '{"name": "alice"}', {"Content-Type": "application/json"}
    )
    assert answer.status == 201
    token: str = json.loads(answer.body)["token"]
    return token


def run(root: Path, *arguments: str, **environment: str) -> Result:
    return invoke(root, "token", *arguments, **environment)


def token_command(server: ServerProcess, *arguments: str) -> str:
    result = run(server.root, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def status_with(server: ServerProcess, token: str) -> int:
    return server.get("/alice/private/", {"Authorization": f"Bearer {token}"}).status


def id_of(token: str) -> str:
    """The id by which a token is listed: its ``jti`` (A-30)."""
    payload = token.partition(".")[0]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return str(claims["jti"])


def states(server: ServerProcess) -> dict[str, str]:
    """The state of each of Alice's tokens, by id."""
    lines = token_command(server, "list", "alice").splitlines()
    assert lines[0].split() == ["ID", "POD", "ISSUED", "EXPIRES", "STATE"]
    return {line.split()[0]: line.split()[4] for line in lines[1:]}


def test_a_further_token_is_accepted_by_the_running_server(
    server: ServerProcess, first_token: str
) -> None:
    """A-31"""
    token = token_command(server, "create", "alice").strip()
    assert token != first_token
    assert status_with(server, token) == status_with(server, first_token) == 200
    assert states(server) == {id_of(first_token): "valid", id_of(token): "valid"}


def test_a_revoked_token_is_refused_from_the_next_request_on_and_no_other_is(
    server: ServerProcess, first_token: str
) -> None:
    """A-33"""
    first_id = id_of(first_token)
    token = token_command(server, "create", "alice").strip()
    assert status_with(server, first_token) == 200
    assert token_command(server, "revoke", first_id) == f"Revoked {first_id}.\n"
    assert status_with(server, first_token) == 401
    assert status_with(server, token) == 200
    assert states(server) == {id_of(first_token): "revoked", id_of(token): "valid"}


def test_all_tokens_of_a_pod_are_revoked_together(server: ServerProcess, first_token: str) -> None:
    """A-33"""
    token = token_command(server, "create", "alice").strip()
    assert token_command(server, "revoke", "--pod", "alice") == "Revoked 2 tokens of alice.\n"
    assert status_with(server, token) == status_with(server, first_token) == 401
    assert token_command(server, "revoke", "--pod", "alice") == "Revoked 0 tokens of alice.\n"


def test_tokens_survive_a_restart_and_so_does_their_revocation(
    server: ServerProcess, first_token: str
) -> None:
    """A-32"""
    token = token_command(server, "create", "alice", "--token-lifetime-s", "0").strip()
    token_command(server, "revoke", id_of(first_token))
    server.restart()
    assert status_with(server, token) == 200
    assert status_with(server, first_token) == 401
    assert f"{id_of(token)}  alice" in token_command(server, "list")
    assert "never" in token_command(server, "list")


def test_tokens_outlive_a_change_of_the_key_while_it_is_the_previous_one(
    tmp_path: Path,
) -> None:
    """A-32"""
    old, new = bytes(range(32)).hex(), bytes(range(32, 64)).hex()
    secret = tmp_path / "secret"
    secret.write_text(old)
    server = ServerProcess(tmp_path / "root", options=("--token-secret-file", str(secret)))
    with running_server(server):
        answer = server.request(
            "POST", "/.pods", '{"name": "alice"}', {"Content-Type": "application/json"}
        )
        token: str = json.loads(answer.body)["token"]
        secret.write_text(f"{new}\n{old}\n")
        server.restart()
        assert status_with(server, token) == 200
        secret.write_text(new)
        server.restart()
        assert status_with(server, token) == 401


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "bob"), "There is no pod 'bob'."),
        (("list", "bob"), "There is no pod 'bob'."),
        (("revoke", "--pod", "bob"), "There is no pod 'bob'."),
        (("revoke", "0123"), "There is no token with the id '0123'."),
    ],
)
def test_what_is_not_there_is_said_and_ends_with_1(
    server: ServerProcess, arguments: tuple[str, ...], sentence: str
) -> None:
    result = run(server.root, *arguments)
    assert (result.exit_code, result.stderr) == (1, f"Error: {sentence}\n")


def test_without_data_there_are_no_tokens(tmp_path: Path) -> None:
    result = run(tmp_path, "list")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: There is no data in {tmp_path}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("revoke",), ("revoke", "0123", "--pod", "alice")])
def test_revoking_needs_one_of_an_id_and_a_pod(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert run(tmp_path, *arguments).exit_code == 2


def test_no_token_is_made_where_none_is_accepted(server: ServerProcess, first_token: str) -> None:
    """A-34"""
    result = run(server.root, "create", "alice", PODSTEAD_SIMPLE_TOKENS="false")
    assert result.exit_code == 2
    assert "Simple tokens are off" in result.stderr
    assert len(states(server)) == 1
