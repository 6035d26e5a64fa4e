from __future__ import annotations

import os
from pathlib import Path

from podstead.app.adapters.rendering_processes import ThumbnailFiles
from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Version
from tests.support.clock import FakeClock

PICTURE = ResourcePath("/alice/p.jpg")
VERSION = Version("0" * 16)


def thumbnails(folder: Path, *, max_bytes: int = 10_000_000) -> ThumbnailFiles:
    return ThumbnailFiles(folder / "thumbnails", clock=FakeClock(), max_bytes=max_bytes)


async def test_a_thumbnail_is_that_of_one_version(tmp_path: Path) -> None:
    kept = thumbnails(tmp_path)
    assert await kept.get(PICTURE, VERSION) is None
    await kept.put(PICTURE, VERSION, b"small")
    assert await thumbnails(tmp_path).get(PICTURE, VERSION) == b"small"
    assert await kept.get(PICTURE, Version("1" * 16)) is None
    assert await kept.get(ResourcePath("/alice/q.jpg"), VERSION) is None


async def test_that_a_picture_has_no_thumbnail_is_known_for_a_day(tmp_path: Path) -> None:
    kept = thumbnails(tmp_path)
    await kept.put(PICTURE, VERSION, b"")
    (file,) = (tmp_path / "thumbnails").iterdir()
    now_s = FakeClock().now_ms() / 1000
    os.utime(file, (now_s, now_s))
    assert await kept.get(PICTURE, VERSION) == b""
    os.utime(file, (now_s - 90_000, now_s - 90_000))
    assert await kept.get(PICTURE, VERSION) is None


async def test_the_files_do_not_tell_what_they_show(tmp_path: Path) -> None:
    await thumbnails(tmp_path).put(PICTURE, VERSION, b"x")
    assert not [file for file in (tmp_path / "thumbnails").iterdir() if "p.jpg" in file.name]


async def test_all_thumbnails_together_are_bounded(tmp_path: Path) -> None:
    for number in range(20):
        # Each has its first put, which sweeps.
        kept = thumbnails(tmp_path, max_bytes=5_000)
        await kept.put(ResourcePath(f"/alice/{number}"), VERSION, bytes(1_000))
    assert len(list((tmp_path / "thumbnails").iterdir())) <= 5


async def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "thumbnails").write_text("a file in the way")
    kept = thumbnails(tmp_path)
    await kept.put(PICTURE, VERSION, b"small")
    assert await kept.get(PICTURE, VERSION) is None
