"""systemd understands the units of the page about upgrades, together with the service that
``podstead service install`` writes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S, run_command

PAGE = REPOSITORY / "docs/operate/upgrade-a-server.md"


@pytest.mark.needs("systemd")
def test_systemd_finds_nothing_wrong_with_the_socket(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    socket_unit, addition = re.findall(r"^```ini\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    configuration = tmp_path / "podstead.toml"
    configuration.write_text(f'root = "{tmp_path}/root"\n')
    units = tmp_path / "units"
    written = run_command(
        "service", "install", "--config", str(configuration), "--into", str(units)
    )
    assert written.returncode == 0, written.stderr
    (service,) = units.rglob("podstead.service")
    (service.parent / "podstead.socket").write_text(socket_unit)
    edited = service.parent / "podstead.service.d"
    edited.mkdir()
    (edited / "override.conf").write_text(addition)
    found = subprocess.run(
        [
            "systemd-analyze",
            "verify",
            "--man=no",
            "--recursive-errors=no",
            str(service.parent / "podstead.socket"),
            str(service),
        ],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    ours = [line for line in found.stderr.splitlines() if "podstead" in line]
    assert (ours, found.returncode) == ([], 0)
