"""Where the sockets behind the TLS listener are."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from podstead.app.process.tls import front
from podstead.app.process.tls.front import private_folder


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that stands for the one in memory; the usual one is ``tmp_path``."""
    folder = tmp_path / "m"
    folder.mkdir()
    monkeypatch.setattr(front, "_MEMORY", str(folder))
    monkeypatch.setattr(front, "_MAX_BYTES", 200)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("TMPDIR", raising=False)
    return folder


def test_names_of_sockets_are_in_memory(memory: Path) -> None:
    """On a disk, each new connection would take a tenth of a millisecond longer."""
    with private_folder("webid-tls") as folder:
        assert folder.parent == memory
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(memory.iterdir()) == []


def test_the_operator_can_choose_another_place(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with private_folder("webid-tls") as folder:
        assert folder.parent == tmp_path
    assert list(memory.iterdir()) == []


def test_without_room_in_memory_the_usual_place_is_used(memory: Path, tmp_path: Path) -> None:
    memory.rmdir()
    with private_folder("webid-tls") as folder:
        assert folder.parent == tmp_path
