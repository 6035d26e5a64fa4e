"""What does a run require, and how is it installed?

The peers come from npm into `bench/.cache`, which git ignores; the load generator and nginx come
from the system's packages. Existing installations are left alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

CACHE: Final = Path(__file__).with_name(".cache")
# Debian installs daemons such as nginx outside of an ordinary account's search path.
SYSTEM_FOLDERS: Final = "/usr/local/sbin:/usr/sbin:/sbin"


class Missing(Exception):
    """Something needed is not there and could not be installed; says what to do."""


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Give a new folder, which is removed at the end."""
    # Beside the checkout and not in the temporary folder, which may be in memory: writes are
    # to reach a disk.
    CACHE.mkdir(exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=CACHE))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def system_command(name: str, package: str | None = None) -> Path:
    """Return the path of a command, installing its system package as root.

    The package has the name of the command unless another is given.

    Raises:
        Missing: it is not there, and this is not root, or there is no apt-get.
    """
    package = package or name
    found = _which(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _run(["apt-get", "update", "-qq"])
        _run(["apt-get", "install", "--yes", "-qq", "--no-install-recommends", package])
        found = _which(name)
    if found is None:
        raise Missing(f"{name} is needed: install it, for example `apt-get install {package}`")
    return found


def npm_package(name: str, version: str) -> Path:
    """Return the folder of an npm package at exactly this version, installing it if absent.

    Raises:
        Missing: there is no npm, or it failed.
    """
    place = CACHE / f"{name.replace('/', '-').lstrip('@')}-{version}"
    folder = place / "node_modules" / name
    if _version(folder) != version:
        if shutil.which("npm") is None:
            raise Missing("npm (Node.js 18 or newer) is needed for the peers: install it")
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        _run(["npm", "install", "--no-audit", "--no-fund", f"{name}@{version}"], place)
    return folder


def _version(folder: Path) -> str | None:
    try:
        described = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return str(described["version"])


def _which(name: str) -> Path | None:
    found = shutil.which(name) or shutil.which(name, path=SYSTEM_FOLDERS)
    return Path(found) if found else None


def _run(command: list[str], place: Path | None = None) -> None:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")
