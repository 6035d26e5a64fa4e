"""How the applications get into the browser: a site on this machine with the files of a package."""

from __future__ import annotations

import mimetypes
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Route

from tests.support.node import APPLICATIONS, NODE, install_packages
from tests.support.websites import Website

PACKAGES = APPLICATIONS / "node_modules"
PAGES = APPLICATIONS / "pages"
BUNDLE_DEADLINE_S = 60
_THIS_MACHINE = {"127.0.0.1", "localhost"}


def publish_folder(website: Website, path: str, folder: Path) -> None:
    """Serve the files of a package's folder under ``path``, without its source maps."""
    install_packages(APPLICATIONS)
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix != ".map":
            kind, _ = mimetypes.guess_type(file.name)
            name = file.relative_to(folder).as_posix()
            website.publish(path + name, file.read_bytes(), kind or "application/octet-stream")


def bundled(script: Path) -> bytes:
    """A script of ours with the packages that it imports, as a module for browsers."""
    install_packages(APPLICATIONS)
    command: list[str | Path] = [NODE, PACKAGES / "esbuild/bin/esbuild", script]
    command += ["--bundle", "--format=esm", "--jsx=automatic", "--log-level=error"]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, timeout=BUNDLE_DEADLINE_S
    ).stdout


def no_other_host(context: BrowserContext) -> None:
    """Keep the pages of a browser from asking for icons and fonts somewhere else."""

    def refuse(route: Route) -> None:
        route.abort()

    context.route(lambda url: urlsplit(url).hostname not in _THIS_MACHINE, refuse)
