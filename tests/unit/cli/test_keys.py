"""``podstead keys``: the operator sees the provider's keys and replaces them (A-44)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.system import SystemClock
from podstead.cli.commands import main
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    KeyFolder(KeyFiles(prepare_root(tmp_path).keys), SystemClock()).maintain()
    return tmp_path


def listed(root: Path) -> dict[str, list[str]]:
    """The states of the listed keys, by algorithm."""
    result = run("keys", "list", "--root", str(root))
    assert result.exit_code == 0, result.output
    head, *lines = result.output.splitlines()
    assert head.split("  ")[0] == "ID"
    states: dict[str, list[str]] = {}
    for line in lines:
        key_id, algorithm, made, signs_from, state = line.split()
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", key_id)
        assert made <= signs_from
        states.setdefault(algorithm, []).append(state)
    return states


def test_new_keys_are_published_a_day_before_they_sign(root: Path) -> None:
    assert listed(root) == {"ES256": ["signs"], "RS256": ["signs"]}
    result = run("keys", "rotate", "--root", str(root))
    assert result.exit_code == 0, result.output
    assert re.fullmatch(
        r"The new keys will be in use from \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\.\n", result.output
    )
    assert listed(root) == {"ES256": ["next", "signs"], "RS256": ["next", "signs"]}


def test_stolen_keys_are_replaced_at_once(root: Path) -> None:
    before = set(root.rglob("*.json"))
    result = run("keys", "rotate", "--compromised", "--root", str(root))
    assert (result.exit_code, result.output) == (0, "The new keys are in use.\n")
    assert listed(root) == {"ES256": ["signs"], "RS256": ["signs"]}
    assert before.isdisjoint(root.rglob("*.json"))


def test_a_root_without_a_provider_is_reported(tmp_path: Path) -> None:
    for command in (["list"], ["rotate"]):
        result = run("keys", *command, "--root", str(tmp_path))
        assert result.exit_code == 2
        assert "There are no keys of an identity provider" in result.output
    assert list(tmp_path.iterdir()) == []
