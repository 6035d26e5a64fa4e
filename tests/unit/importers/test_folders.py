"""A folder that somebody else has written is never left, whatever is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podstead.importers.folders import MAX_LEVELS, EntryKind, Folder, Unreadable, readable_path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "secret.txt").write_bytes(b"secret")
    return secret


@pytest.fixture
def folder(tmp_path: Path, outside: Path) -> Path:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner/a.txt").write_bytes(b"a")
    (root / "link").symlink_to(outside)
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "inner/up").symlink_to("..")
    os.mkfifo(root / "pipe")
    return root


def test_each_entry_says_what_it_is(folder: Path) -> None:
    kinds = {entry.name: entry.kind for entry in Folder(folder).entries()}
    assert kinds == {
        "inner": EntryKind.FOLDER,
        "link": EntryKind.LINK,
        "link.txt": EntryKind.LINK,
        "pipe": EntryKind.OTHER,
    }


@pytest.mark.parametrize(
    "parts",
    [
        ("link.txt",),
        ("link", "secret.txt"),
        ("inner", "up", "inner", "a.txt"),
        ("..", "outside", "secret.txt"),
        ("inner", "..", "..", "outside", "secret.txt"),
        ("inner/../../outside/secret.txt",),
        ("/etc/passwd",),
        ("inner", "", "a.txt"),
        ("inner", ".", "a.txt"),
        ("pipe",),
        ("inner",),
        ("nothing",),
        ("a\0b",),
    ],
)
async def test_nothing_is_read_through_links_dots_and_pipes(
    folder: Path, parts: tuple[str, ...]
) -> None:
    found = Folder(folder)
    assert not found.has_file(parts)
    with pytest.raises(Unreadable):
        found.read(parts)
    with pytest.raises(Unreadable):
        async for _ in found.pieces(parts):
            pass


@pytest.mark.parametrize("parts", [("link",), ("..",), ("inner", "up"), ("inner/..",)])
def test_no_folder_is_listed_through_links_and_dots(folder: Path, parts: tuple[str, ...]) -> None:
    found = Folder(folder)
    assert not found.has_folder(parts)
    with pytest.raises(Unreadable):
        found.entries(parts)


async def test_a_file_that_becomes_a_link_meanwhile_is_not_followed(
    folder: Path, outside: Path
) -> None:
    found = Folder(folder)
    [entry] = [each for each in found.entries(("inner",)) if each.name == "a.txt"]
    (folder / "inner/a.txt").unlink()
    (folder / "inner/a.txt").symlink_to(outside / "secret.txt")
    with pytest.raises(Unreadable):
        found.read(entry.parts)
    (folder / "inner").rename(folder / "gone")
    (folder / "inner").symlink_to(outside)
    with pytest.raises(Unreadable):
        found.read(("inner", "secret.txt"))


async def test_files_are_read_in_pieces_and_records_up_to_a_limit(folder: Path) -> None:
    content = os.urandom(700_000)
    (folder / "large").write_bytes(content)
    found = Folder(folder)
    assert b"".join([piece async for piece in found.pieces(("large",))]) == content
    assert found.beginning(("large",), 10) == content[:10]
    with pytest.raises(Unreadable):
        found.read(("large",), max_bytes=699_999)


def test_names_that_are_not_text_are_said_to_be_so(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))).write_bytes(b"")
    [entry] = Folder(tmp_path).entries()
    assert not entry.is_text
    assert readable_path(entry.parts) == "caf\\xe9"


def test_what_is_too_deep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        Folder(tmp_path).entries(("a",) * (MAX_LEVELS + 1))
