"""The Memento client of those who wrote RFC 7089 finds the version of a time."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from email.utils import formatdate
from typing import Any

import pytest

from tests.clients.client_home import Home
from tests.support.python_clients import FOLDER, PYTHON, install_clients

pytestmark = [pytest.mark.feature("history"), pytest.mark.embedded]

DEADLINE_S = 60
FIRST_S, SECOND_S = 1_000_000_000, 1_100_000_000
"""When the first two versions were written, in Unix seconds."""


def run(url: str, token: str, *times_s: int) -> list[dict[str, Any]]:
    """What the client finds of each of the times."""
    times = json.dumps([formatdate(each, usegmt=True) for each in times_s])
    said = subprocess.run(
        [PYTHON, FOLDER / "memento_reader.py", url, token, times],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    found: list[dict[str, Any]] = json.loads(said.stdout)
    return found


def date_back(home: Home, path: str) -> None:
    """Let the former versions have been written at the times above: the server has no other clock
    than the machine."""
    with closing(sqlite3.connect(home.pod.server.root / "podstead.db")) as database, database:
        order = "SELECT rowid FROM former_states WHERE path = ? ORDER BY modified_ms, ended_ms"
        rows = [rowid for (rowid,) in database.execute(order, (path,))]
        assert len(rows) == 2
        for rowid, time_s in zip(rows, (FIRST_S, SECOND_S), strict=True):
            change = "UPDATE former_states SET modified_ms = ? WHERE rowid = ?"
            database.execute(change, (time_s * 1000, rowid))


def test_memento_client_finds_the_version_of_each_time(home: Home) -> None:
    install_clients()
    home.put("a.txt", "one", "text/plain")
    home.put("a.txt", "two", "text/plain")
    url = home.put("a.txt", "three", "text/plain")
    path = f"{home.path}a.txt"
    date_back(home, path)
    present = home.owner.head(path).headers["last-modified"]
    times_s = (FIRST_S - 5, FIRST_S, SECOND_S - 1, SECOND_S + 1, 4_000_000_000)
    found = run(url, home.agent.token, *times_s)
    assert [each["content"] for each in found] == ["one", "one", "one", "two", "three"]
    first, second = (formatdate(each, usegmt=True) for each in (FIRST_S, SECOND_S))
    assert [each["time"] for each in found] == [first, first, first, second, present]
    base = home.pod.server.base_url
    for each in found:
        assert each["original"] == each["original of version"] == url
        assert each["timegate"] == f"{base}/.history/timegate{path}"
        assert each["is memento"] is True
