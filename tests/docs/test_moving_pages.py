"""The commands of the pages on moving pods and base URLs work, with the paths of the test."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from podstead.app.adapters.keys import ensure_token_key
from podstead.cli import main
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteFacts
from tests.support.processes import REPOSITORY

HOW_TO = REPOSITORY / "docs/operate"


def lines_of(page: str) -> list[str]:
    text = (HOW_TO / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines()]


def run(line: str, place: Path) -> str:
    """Run a line that begins with the program."""
    line = line.replace("/srv/", f"{place}/").replace("/var/lib", f"{place}/lib")
    typed = "a long password\n" if " account create " in line else ""
    ended = CliRunner().invoke(main, shlex.split(line)[1:], input=typed)
    assert ended.exit_code == 0, (line, ended.output)
    return ended.stdout


def root(place: Path) -> Path:
    """A data root that a server was started on."""
    layout = prepare_root(place / "lib/podstead")
    ensure_token_key(KeyFiles(layout.keys))
    SqliteFacts(layout.database).write_fact("base-url", "http://localhost:3000")
    return layout.root


def test_the_commands_for_pods_work_one_after_another(tmp_path: Path) -> None:
    where = f"--root {root(tmp_path)}"
    run(f"podstead pod create alice {where}", tmp_path)
    lines = lines_of("move-a-pod.md")
    assert len(lines) == 12
    for line in lines:
        run(line, tmp_path)
    assert run(f"podstead pod list {where}", tmp_path).split()[7:8] == ["alice"]


def test_the_commands_for_the_base_url_work_one_after_another(tmp_path: Path) -> None:
    where = f"--root {root(tmp_path)}"
    run(f"podstead pod create alice {where}", tmp_path)
    for line in lines_of("change-the-base-url.md"):
        run(line, tmp_path)
    assert "https://pods.example/alice/#me" in run(f"podstead pod list {where}", tmp_path)
