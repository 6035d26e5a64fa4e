"""The units that ``podstead service install`` writes: systemd understands them, and they work.

No service manager runs where tests do, so what it would do is done here: start the command of the
unit with an almost empty environment, in the root directory, and stop it by SIGTERM.
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

from podstead.app.operator.service_units import ServicePlan, next_steps, write_units
from podstead.config import Settings
from tests.support.listeners import CERTIFICATE, KEY, client_tls
from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S, ServerProcess, run_command

HOW_TO = REPOSITORY / "docs/operate/run-a-server.md"
ENVIRONMENT = {"PATH": os.defpath}


def example() -> str:
    """The settings that the how-to shows."""
    found = re.search(
        r"^```toml\n(.*?)^```$", HOW_TO.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1]


def configuration(folder: Path, **changes: str) -> Path:
    """The settings of the how-to, on this machine, and on a port that the system chooses."""
    text = example()
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


def installed(folder: Path, config: Path, *options: str) -> Path:
    """The folder with the units that the command writes."""
    units = folder / "units"
    done = run_command(
        *("service", "install", "--config", str(config), "--into", str(units)),
        *("--backups", str(folder / "backups"), *options),
    )
    assert done.returncode == 0, done.stderr
    return units


def read_unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser


def command_of(unit: configparser.ConfigParser) -> Sequence[str]:
    """The words that systemd would start."""
    return [word.replace("%%", "%") for word in shlex.split(unit["Service"]["ExecStart"])]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return configuration(tmp_path)


@pytest.fixture
def units(tmp_path: Path, config: Path) -> Path:
    return installed(tmp_path, config, "--system")


# --- what systemd says ------------------------------------------------------------------------


@pytest.mark.needs("systemd")
@pytest.mark.parametrize("kind", ["--system", "--user"])
def test_systemd_finds_nothing_wrong_with_the_units(
    tmp_path: Path, config: Path, kind: str
) -> None:
    written = sorted(path for path in installed(tmp_path, config, kind).glob("*.[st]*"))
    assert [path.name for path in written] == [
        "podstead-backup.service",
        "podstead-backup.timer",
        "podstead.service",
    ]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, written)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "podstead" in line]
    assert (done.returncode, said) == (0, []), done.stderr


@pytest.mark.needs("systemd")
@pytest.mark.parametrize(("name", "most"), [("podstead", 2.0), ("podstead-backup", 1.0)])
def test_a_unit_gives_the_service_little(units: Path, name: str, most: float) -> None:
    """On systemd's scale from 0 (safe) to 10."""
    done = subprocess.run(
        [
            *("systemd-analyze", "security", "--offline=yes", "--no-pager"),
            *(f"--threshold={most * 10:.0f}", str(units / f"{name}.service")),
        ],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("port", "capability"), [(443, "CAP_NET_BIND_SERVICE"), (3000, "")])
def test_the_service_is_not_root_and_may_listen_where_the_settings_say(
    tmp_path: Path, port: int, capability: str
) -> None:
    settings = Settings(root=tmp_path / "root", port=port)
    write_units(ServicePlan(settings, tmp_path / "podstead.toml", is_system=True), into=tmp_path)
    service = read_unit(tmp_path / "podstead.service")["Service"]
    assert service["User"] == "podstead"
    assert service["AmbientCapabilities"] == service["CapabilityBoundingSet"] == capability
    assert "u podstead " in (tmp_path / "podstead.conf").read_text()


def test_paths_may_contain_anything(tmp_path: Path) -> None:
    folder = tmp_path / "my \"pods\" 100% 'here'"
    settings = Settings(root=folder / "root")
    plan = ServicePlan(settings, folder / "podstead.toml", is_system=False, backups=folder)
    write_units(plan, into=tmp_path / "units")
    command = command_of(read_unit(tmp_path / "units/podstead-backup.service"))
    assert command[1:3] == ["backup", str(folder)]
    assert command[-1] == str(folder / "podstead.toml")


def test_what_was_written_is_removed_again(units: Path) -> None:
    other = units / "other.service"
    other.write_text("[Unit]\n")
    done = run_command("service", "uninstall", "--system", "--into", str(units))
    assert done.returncode == 0
    assert list(units.iterdir()) == [other]


def test_the_next_steps_are_commands(tmp_path: Path) -> None:
    plan = ServicePlan(Settings(root=tmp_path), tmp_path, is_system=True, backups=tmp_path / "b")
    programs = [shlex.split(step)[0] for step in next_steps(plan)]
    assert programs == ["systemd-sysusers", "install", "install", *["systemctl"] * 3]


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path, config: Path) -> None:
    (tmp_path / "units").write_text("a file")
    done = run_command(
        *("service", "install", "--user", "--config", str(config)),
        *("--into", str(tmp_path / "units")),
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: Cannot write {tmp_path}/units")


# --- what the units start ---------------------------------------------------------------------


_CONFINE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(65, 1, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
CONFINED = (
    sys.executable,
    "-c",
    _CONFINE,
)
"""Runs a command as ``MemoryDenyWriteExecute=`` does, by the kernel's own means: PR_SET_MDWE and
PR_MDWE_REFUSE_EXEC_GAIN of prctl(2). Kernels before 6.3 ignore it."""


@pytest.mark.parametrize(
    "webid_tls", ["", pytest.param("webid-tls = true\n", marks=pytest.mark.feature("webid_tls"))]
)
def test_what_the_unit_starts_serves_and_stops_in_time(
    tmp_path: Path, config: Path, webid_tls: str
) -> None:
    """With the little that systemd gives to a service."""
    config.write_text(webid_tls + config.read_text())
    unit = read_unit(installed(tmp_path, config, "--system") / "podstead.service")
    is_denied = unit["Service"].get("MemoryDenyWriteExecute") == "yes"
    assert is_denied == (webid_tls == "")
    process = subprocess.Popen(
        [*(CONFINED if is_denied else ()), *command_of(unit)],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        listening = next(line for line in lines if "listening" in line)
        port = re.search(r"port (\d+)", listening)
        assert port is not None
        server = ServerProcess(tmp_path / "root", port=int(port[1]), tls=client_tls())
        assert server.get("/", {"Host": "localhost"}).status == 200
        backup = read_unit(tmp_path / "units/podstead-backup.service")
        subprocess.run(command_of(backup), check=True, cwd="/", env=ENVIRONMENT, timeout=DEADLINE_S)
        assert len(list((tmp_path / "backups").glob("*/manifest.json"))) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(float(unit["Service"]["TimeoutStopSec"])) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_start_that_cannot_succeed_is_not_repeated(units: Path, config: Path) -> None:
    unit = read_unit(units / "podstead.service")
    config.write_text(config.read_text().replace("https://localhost", "nonsense"))
    ended = subprocess.run(
        command_of(unit),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        cwd="/",
        env=ENVIRONMENT,
    )
    assert ended.returncode == int(unit["Service"]["RestartPreventExitStatus"]), ended.stderr
    assert unit["Service"]["Restart"] == "on-failure"


def test_the_program_is_the_installed_one(units: Path) -> None:
    command = command_of(read_unit(units / "podstead.service"))
    assert Path(command[0]) == Path(sys.executable).with_name("podstead")
