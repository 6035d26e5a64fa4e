"""The commands of the page on checking and compacting work, with the paths of the test."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from podstead.storage.root import prepare_root
from tests.support.processes import REPOSITORY
from tests.support.server import run_command

PAGE = (REPOSITORY / "docs/operate/check-and-compact.md").read_text(encoding="utf-8")


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_commands_work_one_after_another(tmp_path: Path) -> None:
    """On a root without damage: every check exits with code 0."""
    prepare_root(tmp_path / "lib/podstead")
    (nightly,) = examples("crontab")
    lines = [line for block in examples("sh") for line in block.splitlines()]
    assert len(lines) == 3
    for line in (*lines, nightly.split(maxsplit=5)[5]):
        command = line.replace("/var/lib", f"{tmp_path}/lib")
        ended = run_command(*shlex.split(command)[1:])
        assert ended.returncode == 0, (line, ended.stderr)
    assert not (tmp_path / "lib/podstead/set-aside").exists()
