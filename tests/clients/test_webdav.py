"""A WebDAV client and curl copy and move: what RFC 4918 defines is what they get."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

import pytest

from tests.clients.client_home import Home
from tests.support.curl import curl
from tests.support.python_clients import FOLDER, PYTHON, install_clients

DEADLINE_S = 60


@pytest.fixture(autouse=True)
def _clients() -> None:
    install_clients()


def run(home: Home, *commands: tuple[str, str, str, Mapping[str, object]]) -> list[str | None]:
    """Run webdav4 in the container; the errors that it raised."""
    said = subprocess.run(
        [PYTHON, FOLDER / "webdav_client.py", home.url, home.agent.token, json.dumps(commands)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    results: list[str | None] = json.loads(said.stdout)
    return results


def test_webdav4_copies_and_moves(home: Home) -> None:
    home.put("a%20b.txt", "a", "text/plain")
    home.put("folder/inner/x.txt", "x", "text/plain")
    assert (
        run(
            home,
            ("copy", "a b.txt", "copy é.txt", {}),
            ("move", "a b.txt", "moved.txt", {}),
            ("copy", "folder/", "second/", {}),
            ("move", "folder/", "third/", {}),
            ("copy", "third/", "empty/", {"depth": 0}),
        )
        == [None] * 5
    )
    assert home.get("copy%20%C3%A9.txt").text == "a"
    assert home.get("moved.txt").text == "a"
    assert home.get("a%20b.txt").status == 404
    assert home.get("folder/").status == 404
    for name in ("second", "third"):
        assert home.get(f"{name}/inner/x.txt").text == "x"
    assert home.get("empty/").status == 200
    assert home.get("empty/inner/").status == 404


def test_webdav4_is_told_why_it_cannot(home: Home) -> None:
    home.put("a", "a", "text/plain")
    home.put("b", "b", "text/plain")
    home.put("folder/x", "x", "text/plain")
    assert run(
        home,
        ("move", "a", "b", {}),
        ("move", "a", "a", {"overwrite": True}),
        ("move", "none", "c", {}),
        ("move", "a", "none/c", {}),
        ("move", "folder/", "folder/inside/", {}),
        ("move", "a", "b", {"overwrite": True}),
    ) == [
        "ResourceAlreadyExists",
        "ForbiddenOperation",
        "ResourceNotFound",
        "ResourceConflict",
        "ForbiddenOperation",
        None,
    ]
    assert home.get("b").text == "a"
    assert home.get("folder/x").text == "x"


def test_curl_moves_a_folder(home: Home) -> None:
    """As the reference shows it."""
    home.put("2025/a", "a", "text/plain")
    home.put("archive/x", "x", "text/plain")
    arguments = (
        *("--request", "MOVE", "--header", f"Authorization: Bearer {home.agent.token}"),
        *("--header", f"Destination: {home.url}archive/2025/", "--header", "Overwrite: F"),
        f"{home.url}2025/",
    )
    assert curl(*arguments).status == 201
    assert home.get("archive/2025/a").text == "a"
    again = curl(*arguments)
    assert again.status == 404
    home.put("2025/b", "b", "text/plain")
    assert curl(*arguments).status == 412
