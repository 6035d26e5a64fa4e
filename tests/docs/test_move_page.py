"""The commands of the page on moving from another server work, with the paths of the test."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.support.processes import REPOSITORY
from tests.support.server import ServerProcess, run_command, running_server

PAGE = (REPOSITORY / "docs/operate/move-from-another-server.md").read_text(encoding="utf-8")
RECORDED = REPOSITORY / "tests/servers/node/recorded/server"


def commands() -> list[str]:
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def test_the_commands_work_one_after_another(tmp_path: Path) -> None:
    """With the pods of a server that are recorded; tests/clients/moving has the others."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/a.jpg").write_bytes(b"\xff\xd8\xff")
    start, *lines = [line.strip() for line in commands()]
    options = shlex.split(start)
    assert options[:4] == ["podstead", "start", "--idp", "--base-url"]
    with running_server(ServerProcess(tmp_path / "podstead", ("--idp",))) as server:
        ran = []
        for documented in lines:
            # tests/features/importers/test_importing_files.py has that.
            if "https://cloud.example" in documented:
                continue
            line = documented.replace("import css /srv/css/data", f"import nss {RECORDED}")
            line = line.replace("/srv/photos", f"{tmp_path}/photos")
            line = line.replace("/var/lib/podstead", f"{tmp_path}/podstead")
            ended = run_command(*shlex.split(line)[1:])
            assert ended.returncode == 0, ended.stderr
            ran.append(line)
        assert len(ran) == 3
        assert server.get("/alice/profile/card").status == 200
        assert server.get("/alice/photos/a.jpg").status == 401


def test_the_page_names_every_kind_of_server() -> None:
    listed = run_command("import", "--help").stdout
    kinds = re.findall(r"^  (\w+) ", listed.partition("Commands:")[2], re.MULTILINE)
    assert sorted(kinds) == ["css", "folder", "jss", "nss", "webdav"]
    assert all(f"podstead import {kind}" in PAGE for kind in kinds)
