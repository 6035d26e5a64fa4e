"""Settings that change while a server of two workers runs, by command and after a restart."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import Result

from tests.support.commands import invoke
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until

IN_A_ROW = 30
"""So many equal answers in a row come from both workers."""


def run(root: Path, *arguments: str, typed: str = "") -> Result:
    return invoke(root, "settings", *arguments, typed=typed)


def done(root: Path, *arguments: str, typed: str = "") -> str:
    result = run(root, *arguments, typed=typed)
    assert result.exit_code == 0, result.output
    return result.stdout


def is_closed(server: ServerProcess) -> bool:
    return "createPod" not in server.get("/", {"Accept": "application/json"}).text


def are_closed(server: ServerProcess) -> bool:
    """Whether all workers say so. Each request has a connection of its own."""
    return all(is_closed(server) for _ in range(IN_A_ROW))


def test_all_workers_follow_a_command_and_a_restart_keeps_it(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root", options=["--idp", "--workers", "2"])
    with running_server(server):
        assert not is_closed(server)
        done(server.root, "set", "registration", "closed")
        wait_until(lambda: are_closed(server), "both workers to follow")
    again = ServerProcess(tmp_path / "root", options=["--idp", "--workers", "2"])
    again.port = server.port
    with running_server(again):
        assert are_closed(again)
        done(server.root, "unset", "registration")
        wait_until(
            lambda: not any(is_closed(again) for _ in range(IN_A_ROW)), "both workers to follow"
        )


def test_the_summary_of_a_start_says_what_is_in_effect(tmp_path: Path) -> None:
    """Also of a server without accounts."""
    with running_server(ServerProcess(tmp_path / "root")) as server:
        assert "/.pods creates one" in server.wait_for_line("  pods")
        done(server.root, "set", "registration", "closed")
    again = ServerProcess(tmp_path / "root")
    again.port = server.port
    with running_server(again):
        assert "registration is closed" in again.wait_for_line("  pods")


def test_what_the_server_was_started_with_is_stronger(tmp_path: Path) -> None:
    options = ["--idp", "--registration", "closed"]
    with running_server(ServerProcess(tmp_path / "root", options=options)) as server:
        result = run(server.root, "set", "registration", "open")
        assert result.exit_code == 1
        assert "--registration" in result.output
        [listed] = [
            each
            for each in json.loads(done(server.root, "list", "--json"))
            if each["name"] == "registration"
        ]
        assert (listed["source"], listed["value"]) == ("--registration", None)
        assert is_closed(server)


def test_secrets_are_typed_and_never_printed(tmp_path: Path) -> None:
    with running_server(ServerProcess(tmp_path / "root", options=["--idp"])) as server:
        url = "smtps://name:secret-word@mail.example:465?from=a@mail.example"
        refused = run(server.root, "set", "mail", url)
        assert refused.exit_code != 0
        assert "secret-word" not in refused.output
        assert "secret-word" not in done(server.root, "set", "mail", typed=f"{url}\n")
        listed = done(server.root, "list", "--json") + done(server.root, "list")
        assert "secret-word" not in listed
        assert re.search(r"mail\s+-\s+operators", listed)
        # As in the console, nobody can try by a setting what else is in the network.
        other = run(server.root, "set", "mail", typed=url.replace(":465", ":5432") + "\n")
        assert other.exit_code == 2
        assert "port 5432" in other.output
        assert "secret-word" not in other.output
        wrong = run(server.root, "set", "mail", typed="smtp://name:other-word@mail.example\n")
        assert wrong.exit_code == 2
        assert "other-word" not in wrong.output
    assert "secret-word" not in server.errors


def test_only_settings_that_take_effect_can_be_set(tmp_path: Path) -> None:
    with running_server(ServerProcess(tmp_path / "root", options=["--idp"])) as server:
        assert run(server.root, "set", "port", "1").exit_code == 1
        assert run(server.root, "set", "quota-bytes", "much").exit_code == 2
        assert "much" not in done(server.root, "list")
