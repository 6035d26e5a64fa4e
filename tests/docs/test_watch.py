"""The page about watching works as written: its commands, and its example for applications.

Only the port is ours. A member is made and deleted whenever something listens; times are times.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.support.client import Client
from tests.support.node import NODE
from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S, ServerProcess, server_fixture
from tests.support.watching import Lines

PAGE = (REPOSITORY / "docs/use/watch-for-changes.md").read_text(encoding="utf-8")
CONTAINER = "/alice/public/"
TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")
COMMANDS = re.findall(r"^```console\n\$ (.*)\n([^`]*)^```$", PAGE, re.MULTILINE)
EXAMPLES = re.findall(r"^```javascript\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


server = server_fixture()


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    typed = {"Content-Type": "application/json"}
    made = server.request("POST", "/.pods", '{"name": "alice"}', typed)
    assert made.status == 201
    found = re.search(r'"token":\s*"([^"]+)"', made.text)
    assert found is not None
    return found[1]


def change(server: ServerProcess, token: str) -> None:
    with Client(server, token=token) as owner:
        assert owner.put(f"{CONTAINER}milk.txt", "2 l").status == 201
        assert owner.delete(f"{CONTAINER}milk.txt").status == 204


@contextmanager
def running(command: list[str | Path], environment: dict[str, str]) -> Iterator[Lines]:
    """The lines of a process group, on standard output and error alike."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    stream: IO[str] = process.stdout
    lines = Lines(stream)
    try:
        yield lines
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(DEADLINE_S)
        lines.join()


@pytest.mark.parametrize(("command", "shown"), COMMANDS)
def test_the_command_prints_what_the_page_shows(
    command: str, shown: str, server: ServerProcess, token: str, tmp_path: Path
) -> None:
    program = tmp_path / "podstead"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m podstead.cli "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    first, *others = TIME.sub("…", shown).replace(":3000", f":{server.port}").splitlines()
    ours = command.replace(":3000", f":{server.port}")
    with running(["bash", "-c", ours], environment) as lines:
        assert lines.next() == first
        change(server, token)
        for expected in others:
            pattern = ".*".join(map(re.escape, expected.split("…")))
            printed = lines.next() or ""
            assert re.fullmatch(pattern, printed), printed


@pytest.mark.parametrize("watch", ["watch", "watchBySocket"])
def test_the_example_receives_changes(
    watch: str, server: ServerProcess, token: str, tmp_path: Path
) -> None:
    (tmp_path / "example.mjs").write_text("\n".join(EXAMPLES))
    (tmp_path / "main.mjs").write_text(
        f"import {{ {watch} }} from './example.mjs'\n"
        "const [url, token] = process.argv.slice(2)\n"
        "const tell = ({ type, object }) => console.log(type, object)\n"
        f"const opened = await {watch}(url, tell, {{ Authorization: `Bearer ${{token}}` }})\n"
        "opened.onopen = () => console.log('listening')\n"
    )
    url = f"{server.base_url}{CONTAINER}"
    node: list[str | Path] = [
        NODE,
        "--experimental-eventsource",
        "--no-warnings",
        tmp_path / "main.mjs",
    ]
    with running([*node, url, token], dict(os.environ)) as lines:
        assert lines.next() == "listening"
        change(server, token)
        assert [lines.next(), lines.next()] == [f"Add {url}milk.txt", f"Remove {url}milk.txt"]


def test_the_page_has_commands_and_examples_to_run() -> None:
    assert (len(COMMANDS), len(EXAMPLES)) == (3, 2)
