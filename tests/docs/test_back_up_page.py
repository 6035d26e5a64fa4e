"""The commands and units of the page on backups work, with the paths of the test."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from podstead.storage.root import prepare_root
from tests.support.processes import REPOSITORY
from tests.support.server import run_command

PAGE = (REPOSITORY / "docs/operate/back-up.md").read_text(encoding="utf-8")
PROGRAM = "/opt/podstead/bin/podstead"
SERVICE = " --every"
"""A command with this option does not end."""


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(line: str, place: Path) -> None:
    """Run a line that begins with the program."""
    (place / "backups").mkdir(exist_ok=True)  # where a disk is mounted
    line = line.replace("/backups", f"{place}/backups").replace("/var/lib", f"{place}/lib")
    ended = run_command(*shlex.split(line)[1:])
    assert ended.returncode == 0, ended.stderr


def test_the_commands_work_one_after_another(tmp_path: Path) -> None:
    prepare_root(tmp_path / "lib/podstead")
    (tmp_path / "backups").mkdir()
    run("podstead backup /backups/monday --root /var/lib/podstead", tmp_path)
    lines = [line for block in examples("sh") for line in block.splitlines()]
    assert len(lines) == 7
    for line in lines:
        if SERVICE not in line:  # tests/serving/test_backup.py has that
            run(line, tmp_path)
    assert (tmp_path / "lib/podstead-restored/podstead.db").exists()


def test_the_line_for_cron_works(tmp_path: Path) -> None:
    prepare_root(tmp_path / "lib/podstead")
    (line,) = examples("crontab")
    run(line.split(maxsplit=5)[5], tmp_path)
    last = json.loads((tmp_path / "lib/podstead/last-backup.json").read_text())
    assert Path(last["place"]).parent == tmp_path / "backups/podstead"
    assert {"finished", "finished_s", "duration_s", "copied_bytes", "linked_bytes"} <= set(last)


@pytest.mark.needs("systemd")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    service, timer = examples("ini")
    program = tmp_path / "podstead"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "podstead-backup.service").write_text(service.replace(PROGRAM, str(program)))
    (tmp_path / "podstead-backup.timer").write_text(timer)
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, tmp_path.glob("podstead-backup.*"))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "podstead-backup" not in ended.stderr
