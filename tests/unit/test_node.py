"""The clients' packages are installed once for each state of the lock file, and never by halves."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import node

NPM = """
const fs = require("node:fs");
fs.rmSync("node_modules", { recursive: true, force: true });
fs.appendFileSync("runs", process.argv.slice(2).join(" ") + "\\n");
if (fs.existsSync("broken")) process.exit(1);
fs.mkdirSync("node_modules");
"""
"""Like npm's ci, it begins by removing what is there."""


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of clients, and in the place of npm something that only writes down its runs."""
    (tmp_path / "package-lock.json").write_text("{}")
    (tmp_path / "npm.cjs").write_text(NPM)
    monkeypatch.setattr(node, "_NPM", tmp_path / "npm.cjs")
    return tmp_path


def runs(clients: Path) -> int:
    return len((clients / "runs").read_text().splitlines())


def test_what_is_installed_is_not_installed_again(clients: Path) -> None:
    node.install_packages(clients)
    node.install_packages(clients)
    assert (clients / "runs").read_text() == "ci --loglevel error\n"


def test_concurrent_callers_wait_for_the_first(clients: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(node.install_packages, clients) for _ in range(4)]:
            done.result()
    assert runs(clients) == 1


def test_another_lock_file_is_installed(clients: Path) -> None:
    node.install_packages(clients)
    (clients / "package-lock.json").write_text('{"lockfileVersion": 3}')
    node.install_packages(clients)
    assert runs(clients) == 2


def test_what_failed_is_tried_again(clients: Path) -> None:
    (clients / "broken").touch()
    with pytest.raises(subprocess.CalledProcessError):
        node.install_packages(clients)
    (clients / "broken").unlink()
    node.install_packages(clients)
    node.install_packages(clients)
    assert runs(clients) == 2
