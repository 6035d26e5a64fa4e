"""The systemd unit that the how-to prints works: systemd understands it, and what it runs serves.

The paths of the installation, of the settings and of the data are those of the test. No service
manager runs where tests do, so what it would do is done here: start the command of the unit with an
almost empty environment, in the root directory, and stop it by SIGTERM.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.listeners import CERTIFICATE, KEY, client_tls
from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S, ServerProcess

HOW_TO = REPOSITORY / "docs/how-to/run-a-server.md"
PROGRAM = "/opt/podstead/bin/podstead"
CONFIGURATION = "/etc/podstead.toml"
PRIVILEGED_PORTS = 1024


def _example(language: str) -> str:
    """The first example in a language."""
    text = HOW_TO.read_text(encoding="utf-8")
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(_example("ini"))
    return parser


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The command as an installation has it."""
    path = tmp_path / "podstead"
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m podstead.cli "$@"\n')
    path.chmod(0o755)
    return path


def _command(unit: configparser.ConfigParser, program: Path, configuration: Path) -> Sequence[str]:
    line = unit["Service"]["ExecStart"]
    assert shlex.split(line)[0] == PROGRAM
    assert CONFIGURATION in line
    replaced = line.replace(PROGRAM, str(program)).replace(CONFIGURATION, str(configuration))
    return shlex.split(replaced)


def _configuration(folder: Path, **changes: str) -> Path:
    """The file of the how-to, on this machine, and on a port that the system chooses."""
    text = _example("toml")
    settings = tomllib.loads(text)
    here = {"host": "127.0.0.1", "base-url": "https://localhost", "root": str(folder / "root")}
    here |= {"ssl-cert": str(CERTIFICATE), "ssl-key": str(KEY), **changes}
    assert set(here) <= set(settings) | set(changes)
    for name, value in here.items():
        text = text.replace(f'{name} = "{settings.get(name)}"', f'{name} = "{value}"')
    path = folder / "podstead.toml"
    text += '\nadmin-listen = "off"\n'
    path.write_text(text.replace(f"port = {settings['port']}", "port = 0"))
    return path


@pytest.mark.needs("systemd")
def test_systemd_finds_nothing_wrong_with_the_unit(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "podstead.service"
    path.write_text(_example("ini").replace(PROGRAM, str(program)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(path)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    said = [line for line in verified.stderr.splitlines() if "podstead" in line]
    assert (verified.returncode, said) == (0, []), verified.stderr


def test_the_service_may_listen_where_the_settings_say(unit: configparser.ConfigParser) -> None:
    """It does not run as root."""
    assert unit["Service"]["User"] not in {"", "root"}
    assert tomllib.loads(_example("toml"))["port"] < PRIVILEGED_PORTS
    assert unit["Service"]["AmbientCapabilities"].split() == ["CAP_NET_BIND_SERVICE"]


def test_what_the_unit_starts_serves_and_stops_in_time(
    unit: configparser.ConfigParser, program: Path, tmp_path: Path
) -> None:
    """With the little that systemd gives to a service."""
    command = _command(unit, program, _configuration(tmp_path))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd="/", env={"PATH": os.defpath}
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        listening = next(line for line in lines if "listening" in line)
        port = re.search(r"port (\d+)", listening)
        assert port is not None
        server = ServerProcess(tmp_path / "root", port=int(port[1]), tls=client_tls())
        assert server.get("/", {"Host": "localhost"}).status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(float(unit["Service"]["TimeoutStopSec"])) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_start_that_cannot_succeed_is_not_repeated(
    unit: configparser.ConfigParser, program: Path, tmp_path: Path
) -> None:
    configuration = _configuration(tmp_path, **{"base-url": "nonsense"})
    ended = subprocess.run(
        _command(unit, program, configuration),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        cwd="/",
        env={"PATH": os.defpath},
    )
    assert ended.returncode == int(unit["Service"]["RestartPreventExitStatus"]), ended.stderr
    assert unit["Service"]["Restart"] == "on-failure"
