"""Which client packages there are, and where they come from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

CLIENTS = Path(__file__).resolve().parent
PAGE = CLIENTS.parent.parent / "docs/reference/clients.md"
PACKAGES: dict[str, str] = json.loads((CLIENTS / "package.json").read_text())["dependencies"]
LOCK: dict[str, Any] = json.loads((CLIENTS / "package-lock.json").read_text())


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_of_clients_has_each_package_at_its_version(package: str) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", PACKAGES[package]), "an exact version"
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    [row] = [row for row in rows if f"`{package}`" in row]
    assert PACKAGES[package] in row


def test_every_package_is_locked_by_its_content_and_to_no_registry() -> None:
    locked = {path: entry for path, entry in LOCK["packages"].items() if path}
    assert LOCK["packages"][""]["dependencies"] == PACKAGES
    assert all("integrity" in entry or entry.get("inBundle") for entry in locked.values())
    assert not any("resolved" in entry for entry in locked.values())
