"""Files that are replaced in one step, and locks that do not wait."""

import os
import stat
from pathlib import Path

import pytest

from podstead.storage.files import replace_private, try_lock


def test_a_file_is_replaced_once_its_content_is_on_disk_and_its_name_then_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "certificate.pem"
    file.write_bytes(b"old")
    synced: list[tuple[bool, bytes]] = []

    def noting(sync: object) -> object:
        def note(descriptor: int) -> None:
            is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            synced.append((is_directory, file.read_bytes()))
            sync(descriptor)  # type: ignore[operator]

        return note

    monkeypatch.setattr(os, "fdatasync", noting(os.fdatasync))
    monkeypatch.setattr(os, "fsync", noting(os.fsync))
    replace_private(file, b"new")
    assert synced == [(False, b"old"), (True, b"new")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_replacement_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "certificate.pem"
    file.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError):  # noqa: PT011 - of any kind
        replace_private(file, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["certificate.pem"]
    assert file.read_bytes() == b"old"


def test_a_lock_is_shared_or_of_one_alone(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with file.open("wb") as one, file.open("rb") as other, file.open("rb") as third:
        assert try_lock(one.fileno(), shared=True)
        assert try_lock(other.fileno(), shared=True)
        assert not try_lock(third.fileno())
        one.close()
        other.close()
        assert try_lock(third.fileno())
