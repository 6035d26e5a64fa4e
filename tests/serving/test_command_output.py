"""What all commands have in common: the JSON that they print, and their exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from podstead.cli.commands import main
from podstead.features import features
from tests.support.commands import invoke
from tests.support.features import LEFT_OUT
from tests.support.server import ServerProcess, server_fixture

RECORDED = Path(__file__).parents[1] / "servers/node/recorded/server"
CSS_BASE_URL = "css/.internal/setup/current-base-url$.json"
PASSWORD = "correct horse battery staple"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TIMES = {
    *("created", "expires", "issued", "signs_from"),
    *("started", "finished", "moment"),
}
"""Members whose values are times, or null."""

PRINT_NO_JSON = {
    "cert new": "writes files",
    "service install": "writes files",
    "service uninstall": "removes files",
    "start": "is the server",
}
TESTED_ELSEWHERE = {
    "copy": "prints the fields of a dataclass, and takes other databases than this server's",
    "watch": "prints the messages of servers as they are",
}


server = server_fixture(("--idp",))


def run(root: Path, command: str, *arguments: str, typed: str = "") -> Result:
    result = invoke(root, *command.split(), *arguments, typed=typed)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        elif command is not None:
            yield " ".join((*names, name)), command


@dataclass
class Asked:
    """Runs commands with ``--json``, and keeps what they printed."""

    server: ServerProcess
    folder: Path
    printed: dict[str, list[object]] = field(default_factory=dict)

    def __call__(self, command: str, *arguments: str, exit_code: int = 0, typed: str = "") -> Any:  # noqa: ANN401 - JSON
        result = run(self.server.root, command, *arguments, "--json", typed=typed)
        assert result.exit_code == exit_code, (command, result.output)
        lines = result.stdout.splitlines() if command == "check" else [result.stdout]
        self.printed[command] = [json.loads(line) for line in lines]
        return self.printed[command][0] if lines else None

    def file(self, name: str, content: str) -> str:
        """Write a file; the name of the folder below which it is."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return str(self.folder / name.partition("/")[0])


def test_every_command_prints_json_whose_members_are_named_alike(
    server: ServerProcess, tmp_path: Path
) -> None:
    ask = Asked(server, tmp_path)
    ask_about_accounts(ask)
    ask_about_pods(ask)
    ask_for_imports(ask)
    ask_about_the_root(ask)
    assert PRINT_NO_JSON.keys() | TESTED_ELSEWHERE.keys() | ask.printed.keys() == {
        name for name, _ in commands(main)
    }
    for name, command in commands(main):
        options = {each for parameter in command.params for each in parameter.opts}
        assert ("--json" in options) == (name not in PRINT_NO_JSON), name
    for name, value in ask.printed.items():
        assert_named_alike(value, name)


def ask_about_accounts(ask: Asked) -> None:
    ask("account create", "alice", typed=f"{PASSWORD}\n")
    web_id = f"{ask.server.base_url}/alice/#me"
    assert [each["web_id"] for each in ask("account list")] == [web_id]
    ask("account password", "alice", typed=f"{PASSWORD}\n")
    ask("account create", "other", typed=f"{PASSWORD}\n")
    ask("account promote", "other")
    resets = [reset.name for each in features() for reset in each.account_resets()]
    for change in ("disable", "enable", "promote", "demote", "sign-out", *resets):
        assert ask(f"account {change}", "alice")["disabled"] == (change == "disable")
    ask("account sign-in-link", "alice")
    assert ask("account credentials", "alice")["web_id"] == web_id
    made = ask("invite create")
    assert [each["id"] for each in ask("invite list")] == [made["id"]]
    ask("invite revoke", made["id"])
    ask("settings set", "registration", "closed")
    listed = {each["name"]: each["value"] for each in ask("settings list")}
    assert listed["registration"] == "closed"
    ask("settings unset", "registration")
    ask("account delete", "alice", "--yes")
    ask("account free-name", "alice")


def ask_about_pods(ask: Asked) -> None:
    ask("pod create", "bob")
    assert {each["name"] for each in ask("pod list")} >= {"bob"}
    assert ask("token create", "bob")["token"]
    token = ask("token list", "bob")[0]
    assert ask("token revoke", token["id"])["revoked_tokens"] == 1
    assert ask("pod quota", "bob", "1000000")["quota_bytes"] == 1_000_000
    assert ask("pod size", "bob")["quota_bytes"] == 1_000_000
    ask("pod rename", "bob", "robert", "--yes")
    ask("pod export", "robert", str(ask.folder / "robert.zip"))
    ask("pod import", str(ask.folder / "robert.zip"), "--as", "carol")
    ask("pod delete", "robert", "--yes")
    if "search" not in LEFT_OUT:
        assert ask("search rebuild")["indexed"] > 0
    if "history" not in LEFT_OUT:
        assert ask("purge", f"{ask.server.base_url}/carol/inbox/")["removed"] == 0


def ask_for_imports(ask: Asked) -> None:
    files = ask.file("files/a.txt", "a")
    ask("import folder", files, "--into", "carol/files/")
    ask("import webdav", files, "--into", "carol/dav/")
    base_url = {"key": "current-base-url", "payload": "https://old.example/"}
    ask("import css", ask.file(CSS_BASE_URL, json.dumps(base_url)))
    ask("import nss", str(RECORDED), "--dry-run", exit_code=1)
    from_url = ("--from-url", "https://old.example/")
    ask("import jss", ask.file("jss/eve/card", "<a> <b> <c>."), *from_url, exit_code=1)


def ask_about_the_root(ask: Asked) -> None:
    ask("keys list")
    ask("keys rotate")
    ask("check")
    ask("compact")
    ask("backup", str(ask.folder / "backup"))
    ask("restore", str(ask.folder / "backup"), "--verify-only")
    ask("doctor", exit_code=1)
    ask("account change-issuer", "https://login.example")
    ask("move-base", "https://new.example", "--dry-run")


def assert_named_alike(value: object, where: str) -> None:
    if isinstance(value, list):
        for each in value:
            assert_named_alike(each, where)
    elif isinstance(value, dict):
        for name, member in value.items():
            place = f"{where}: {name}"
            assert NAME.fullmatch(name), place
            if name in TIMES:
                assert member is None or TIME.fullmatch(member), place
            assert_named_alike(member, place)


def test_what_check_prints_for_each_finding_is_a_line_of_json(
    server: ServerProcess, tmp_path: Path
) -> None:
    config = tmp_path / "podstead.toml"
    config.write_text(f"min-free-bytes = {10**15}\n")
    result = run(server.root, "check", "--json", "--config", str(config))
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert_named_alike(json.loads(line), "check")


@pytest.fixture(scope="module")
def places(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what commands refuse."""
    folder = tmp_path_factory.mktemp("places")
    assert run(server.root, "pod create", "dora").exit_code == 0
    assert run(server.root, "backup", str(folder / "backup")).exit_code == 0
    (folder / "text.txt").write_text("not a backup")
    (folder / "text.tar.zst").write_text("not a backup")
    (folder / "empty").mkdir()
    (folder / "used").mkdir()
    (folder / "used/manifest.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("command", "exit_code", "part"),
    [
        # Done.
        ("pod size dora", 0, ""),
        ("backup {}/new", 0, ""),
        # What is named does not exist.
        ("pod size nobody", 1, "There is no pod 'nobody'"),
        ("pod rename nobody somebody --yes", 1, "There is no pod 'nobody'"),
        ("pod export nobody {}/new.zip", 1, "There is no pod 'nobody'"),
        ("pod import {}/missing.zip", 1, "No such file"),
        ("account disable nobody", 1, "There is no account 'nobody'"),
        ("token revoke 00", 1, "There is no token"),
        ("invite revoke 00", 1, "There is no invitation"),
        ("restore --verify-only {}/missing", 1, "There is no backup at"),
        ("import css {}/missing", 1, "is not"),
        ("import folder {}/missing --into dora/x/", 1, ""),
        # What is named exists already.
        ("pod create dora", 1, "already has this name"),
        ("pod export dora {}/text.txt", 1, "exists"),
        ("backup {}/used", 1, "exists"),
        ("backup {}/text.tar.zst", 1, "exists"),
        ("restore {}/backup --root {}/used", 1, "is not empty"),
        # What is named is something else.
        ("pod import {}/text.txt", 1, "is not a ZIP file"),
        ("restore --verify-only {}/text.txt", 1, "text.txt is not a backup"),
        ("restore --verify-only {}/empty", 1, "empty is not a complete backup"),
        ("restore --verify-only {}/used", 1, "not a backup"),
        ("import css {}/empty", 1, "is not"),
        # A finding.
        ("check --config {}/full.toml", 1, ""),
        # Wrong usage: values of arguments and options.
        ("pod create a/b", 2, "must not contain '/'"),
        ("pod create idp", 2, "reserves this name"),
        ("pod rename dora a/b --yes", 2, "must not contain '/'"),
        ("account create a/b", 2, "must not contain '/'"),
        ("pod quota dora much", 2, "must be a number"),
        ("invite create --uses 0", 2, "--uses"),
        ("backup {}/other --every often", 2, "--every"),
        ("move-base nowhere", 2, "URL"),
        ("account change-issuer nowhere", 2, "URL"),
        ("import folder {} --into /", 2, ""),
        ("import folder {}", 2, "--into"),
        ("pod size", 2, "Missing argument"),
        ("pod shrink dora", 2, "No such command"),
        ("check --fast", 2, "No such option"),
        # Wrong usage: settings, and what they name.
        ("check --config {}/missing.toml", 2, "missing.toml"),
        ("check --root {}/empty", 2, "There is no data"),
        ("compact --root {}/empty", 2, "There is no data"),
        ("backup {}/other --root {}/empty", 2, "There is no data"),
        ("pod list --root {}/empty", 2, "There is no data"),
        ("account list --root {}/empty", 2, "There is no data"),
        ("token list --root {}/empty", 2, "There is no data"),
        ("invite list --root {}/empty", 2, "There is no data"),
        ("keys list --root {}/empty", 2, "There are no keys"),
        ("import folder {} --into dora/x/ --root {}/empty", 2, "There is no data"),
        ("start --port x", 2, "--port"),
    ],
)
def test_the_exit_code_says_whether_the_usage_was_wrong(
    server: ServerProcess, places: Path, command: str, exit_code: int, part: str
) -> None:
    (places / "full.toml").write_text(f"min-free-bytes = {10**15}\n")
    arguments = command.replace("{}", str(places)).split()
    typed = f"{PASSWORD}\n"
    result = (
        CliRunner().invoke(main, arguments, input=typed)
        if "--root" in arguments
        else invoke(server.root, *arguments, typed=typed)
    )
    assert result.exit_code == exit_code, result.output
    assert part in " ".join(result.stderr.split())
    assert exit_code == 0 or result.stderr or result.stdout
    assert "Traceback" not in result.output
