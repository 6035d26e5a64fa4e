"""The Debian packages that some tests need.

``python -m tests.support.system_packages ARGS`` installs those that the tests need which pytest
selects with these arguments, and which are missing.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def is_installed(package: str) -> bool:
    """Whether the command of a Debian package is there."""
    return shutil.which(_commands()[package], path=_search_path()) is not None


def needed_by(item: pytest.Item) -> Iterator[str]:
    """The packages that a test is marked with."""
    for marker in item.iter_markers("needs"):
        yield from map(str, marker.args)


def install_missing(arguments: list[str]) -> int:
    """Install what the selected tests need; the exit code."""
    selected = _Selected()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(["--collect-only", "--quiet", *arguments], plugins=[selected])
    missing = sorted(each for each in selected.packages if not is_installed(each))
    if not missing:
        return 0
    command = [str(REPOSITORY / "scripts/install-packages"), "test", *missing]
    return subprocess.run(command, check=False).returncode


class _Selected:
    """A plugin of pytest that notes the packages which the selected tests need."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.packages = {package for item in session.items for package in needed_by(item)}


def _commands() -> dict[str, str]:
    """The command by which each Debian package shows that it is there."""
    return {package: command for package, command, _purpose in _system_packages()}


def _system_packages() -> Iterator[tuple[str, str, str]]:
    table = (REPOSITORY / "scripts/system-packages.txt").read_text()
    for line in table.splitlines():
        if line and not line.startswith("#"):
            package, command, purpose, _why = line.split(maxsplit=3)
            yield package, command, purpose


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


if __name__ == "__main__":
    sys.exit(install_missing(sys.argv[1:]))
