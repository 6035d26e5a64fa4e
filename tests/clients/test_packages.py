"""Which packages of clients there are, and where they come from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

CLIENTS = Path(__file__).resolve().parent
PAGE = CLIENTS.parent.parent / "docs/build/clients.md"
FOLDERS = {
    "clients": CLIENTS,
    "applications": CLIENTS / "applications",
    "traversal": CLIENTS / "traversal",
    "community server": CLIENTS.parent / "servers/community",
    "javascript server": CLIENTS.parent / "servers/javascript",
}
PYTHON_CLIENTS = CLIENTS / "python"
PACKAGES: dict[str, dict[str, str]] = {
    name: json.loads((folder / "package.json").read_text())["dependencies"]
    for name, folder in FOLDERS.items()
}
PYTHON_PACKAGES = [
    *("solid-oidc-client", "SolidClientCredentials", "webdav4"),
    *("roc-validator", "rocrate", "memento-client"),
]
EVERY = [(package, version) for each in PACKAGES.values() for package, version in each.items()]


@pytest.mark.parametrize(("package", "version"), EVERY)
def test_the_page_of_clients_has_each_package_at_its_version(package: str, version: str) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", version), "an exact version"
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert any(f"`{package}`" in row and version in row for row in rows)


@pytest.mark.parametrize("package", PYTHON_PACKAGES)
def test_the_page_of_clients_has_each_python_package_at_its_version(package: str) -> None:
    asked_for = (PYTHON_CLIENTS / "requirements.in").read_text()
    [version] = re.findall(rf"^{package}==(.+)$", asked_for, re.MULTILINE)
    locked = (PYTHON_CLIENTS / "requirements.txt").read_text()
    assert f"\n{package.lower()}=={version} " in locked
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert any(f"`{package}`" in row and version in row for row in rows)


def test_every_python_package_is_locked_by_its_content_and_to_no_registry() -> None:
    pinned = (PYTHON_CLIENTS / "requirements.txt").read_text()
    requirements = re.split(r"^(?=[\w-]+==)", pinned, flags=re.MULTILINE)[1:]
    assert requirements
    assert all("--hash=sha256:" in each for each in requirements)
    assert "://" not in pinned


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_package_is_locked_by_its_content_and_to_no_registry(folder: str) -> None:
    lock: dict[str, Any] = json.loads((FOLDERS[folder] / "package-lock.json").read_text())
    locked = {path: entry for path, entry in lock["packages"].items() if path}
    assert lock["packages"][""]["dependencies"] == PACKAGES[folder]
    assert all("integrity" in entry or entry.get("inBundle") for entry in locked.values())
    assert not any("resolved" in entry for entry in locked.values())
