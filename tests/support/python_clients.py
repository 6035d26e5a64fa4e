"""The Python clients of ``tests/clients/python``, in an environment of their own.

They are pinned by version and hash in the ``requirements.txt`` there, and installed once for each
state of that file, by ``make test`` or by the first test that needs them.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "clients/python"
REQUIREMENTS = FOLDER / "requirements.txt"
PYTHON = FOLDER / ".venv/bin/python"
INSTALL_DEADLINE_S = 600

_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
_AS_PINNED = ("--require-hashes", "--no-deps", "--only-binary", ":all:")


def install_clients() -> None:
    """Install the clients unless they are there; one process at a time.

    Raises CalledProcessError when pip fails, with what it said on standard error.
    """
    environment = FOLDER / ".venv"
    stamp = environment / ".installed"
    with REQUIREMENTS.open("rb") as requirements:
        fcntl.flock(requirements, fcntl.LOCK_EX)
        wanted = hashlib.sha256(requirements.read()).hexdigest()
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        print(f"Installing the Python clients of {FOLDER} …", flush=True)  # noqa: T201
        _run(sys.executable, "-m", "venv", "--clear", environment)
        _run(PYTHON, *_PIP, *_AS_PINNED, "--requirement", REQUIREMENTS)
        stamp.write_text(wanted)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_DEADLINE_S)


if __name__ == "__main__":
    install_clients()
