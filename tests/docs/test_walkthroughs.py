"""The README's first screen and the tutorials work as written.

Their console blocks are run in one shell: each ``$ `` line (with the lines that continue it) is a
command, what follows is its output, in which ``…`` stands for anything. Only the port, the data
root and the number of the process to kill are ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import re
import secrets
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DEADLINE_S = 60
START = "make start"
DOCUMENTED_PORT = re.compile(r":3000\b")
DOCUMENTED_PROCESS = "12345"


@dataclass(frozen=True)
class Step:
    """One command and the output that the document shows."""

    command: str
    output: str


def steps_of(document: Path) -> list[Step]:
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [
        step
        for block in blocks
        for step in map(step_of, re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    ]


def step_of(text: str) -> Step:
    """The command goes on while a line ends in a backslash or a quote is open."""
    lines = text.splitlines()
    count = 1
    while lines[count - 1].endswith("\\") or "\n".join(lines[:count]).count("'") % 2:
        count += 1
    return Step("\n".join(lines[:count]), "\n".join(lines[count:]))


class Shell:
    """A shell that keeps its variables and folder between commands."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "-o", "pipefail"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment,
        )

    def run(self, command: str) -> str:
        """The command's standard output; it must succeed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        end = f"end-{secrets.token_hex(8)}"
        self._process.stdin.write(f"{command}\nprintf '\\n%s %s\\n' {end} $?\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(end):
                assert line == f"{end} 0\n", f"{command}: {''.join(lines)}"
                break
            lines.append(line)
        return "".join(lines).strip("\n")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(DEADLINE_S)
        self._process.stdout.close()


@dataclass
class Server:
    """``make start``, with what it prints."""

    environment: dict[str, str]
    pid: int = 0
    _make: subprocess.Popen[str] | None = None
    _lines: queue.Queue[str | None] = field(default_factory=queue.Queue)

    def start(self, command: str) -> str:
        """The lines that are printed up to the link to the first account, or to the number of the
        process without accounts."""
        self.wait()
        self._lines = queue.Queue()
        self._make = subprocess.Popen(
            ["make", "--no-print-directory", "-C", str(REPOSITORY), *shlex.split(command)[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )
        self._reader = threading.Thread(target=self._read, args=(self._make,))
        self._reader.start()
        last = "  process" if "--no-idp" in command else "  http"
        lines: list[str] = []
        while not lines or not lines[-1].startswith(last):
            line = self._lines.get(timeout=DEADLINE_S)
            assert line is not None, f"the server did not start: {lines}"
            lines.append(line)
            if line.startswith("  process"):
                self.pid = int(line.split()[1])
        return "\n".join(lines)

    def stop(self) -> None:
        if self._make is not None and self._make.poll() is None and self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
        self.wait()

    def wait(self) -> None:
        """Wait until the server, which was told to end, has ended."""
        if self._make is not None:
            self._make.wait(DEADLINE_S)
            self._reader.join(DEADLINE_S)

    def _read(self, make: subprocess.Popen[str]) -> None:
        assert make.stdout is not None
        with make.stdout as output:
            for line in output:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


@pytest.fixture(scope="module")
def _installed() -> None:
    """What `make start` would set up first is there, set up by one test process at a time."""
    with (REPOSITORY / "Makefile").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(
            ["make", "-C", str(REPOSITORY), ".venv/.installed-run"],
            check=True,
            capture_output=True,
        )


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A bare environment; the variables do what the document leaves to the defaults."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PODSTEAD_PORT": str(secrets.choice(range(20_000, 32_000))),
        "PODSTEAD_ROOT": str(tmp_path / "data"),
        "PODSTEAD_ADMIN_LISTEN": "off",
    }


@pytest.fixture
def server(_installed: None, environment: dict[str, str]) -> Iterator[Server]:
    server = Server(environment)
    yield server
    server.stop()


@pytest.fixture
def shell(tmp_path: Path, environment: dict[str, str]) -> Iterator[Shell]:
    shell = Shell(tmp_path, environment)
    yield shell
    shell.close()


@pytest.mark.needs("curl")
@pytest.mark.parametrize(
    "document", ["README.md", "docs/use/first-pod.md", "docs/build/sign-in.md"]
)
def test_the_document_works_as_written(
    document: str, server: Server, shell: Shell, environment: dict[str, str]
) -> None:
    steps = steps_of(REPOSITORY / document)
    assert steps[0].command.startswith(START)
    port = f":{environment['PODSTEAD_PORT']}"
    for step in steps:
        command = DOCUMENTED_PORT.sub(port, step.command)
        expected = DOCUMENTED_PORT.sub(port, step.output)
        if command.startswith(START):
            shown = server.start(command)
        else:
            shown = shell.run(command.replace(DOCUMENTED_PROCESS, str(server.pid)))
        pattern = ".*".join(map(re.escape, expected.split("…")))
        assert re.fullmatch(pattern, shown, re.DOTALL), (step.command, shown)


def test_the_readme_contains_the_required_parts() -> None:
    commands = [step.command for step in steps_of(REPOSITORY / "README.md")]
    assert commands.count(START) == 2
    assert any(command.startswith("kill -KILL") for command in commands)
    assert any("text/turtle" in command for command in commands)


@pytest.mark.needs("git")
@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((), "--idp --git"),
        (("ARGS=--port 4000",), "--idp --git --port 4000"),
        (("ARGS=--config here.toml",), "--config here.toml"),
        (("PODSTEAD_CONFIG=here.toml",), ""),
    ],
)
def test_make_start_offers_what_is_safe_on_this_machine(
    arguments: tuple[str, ...], options: str
) -> None:
    """A file with settings decides itself."""
    command = ["make", "--dry-run", "--no-print-directory", "start", *arguments]
    shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1].split() == [
        ".venv/bin/podstead",
        "start",
        *options.split(),
    ]
