"""The Debian packages that some tests need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def is_installed(package: str) -> bool:
    """Whether the command of a Debian package is there."""
    return shutil.which(_commands()[package], path=_search_path()) is not None


def _commands() -> dict[str, str]:
    """The command by which each Debian package shows that it is there."""
    return {package: command for package, command, _purpose in _system_packages()}


def _system_packages() -> Iterator[tuple[str, str, str]]:
    table = (REPOSITORY / "scripts/system-packages.txt").read_text()
    for line in table.splitlines():
        if line and not line.startswith("#"):
            package, command, purpose = line.split()
            yield package, command, purpose


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
