"""What the renderer's process makes, and what cannot hurt the server; thumbnails in files."""

from __future__ import annotations

import asyncio
import io
import os
import struct
import sys
import zlib
from pathlib import Path

import pytest
from grimp import build_graph
from PIL import Image

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.features.previews.pictures import THUMBNAIL_PIXELS
from podstead.features.previews.processes import RenderingProcesses, ThumbnailFiles
from podstead.storage.records import Version
from tests.support.clock import FakeClock

# --- The renderer's process: what it makes, and what cannot hurt the server --------------------


def test_no_other_process_loads_what_decodes_content() -> None:
    graph = build_graph("podstead", cache_dir=None)
    here = "podstead.features.previews."
    decoders = {here + each for each in ("markdown", "pictures", "source")}
    users = {
        each for name in decoders for each in graph.find_modules_that_directly_import(name)
    } - decoders
    assert users == {here + "rendering"}
    assert not graph.find_modules_that_directly_import(here + "rendering")


def picture(width: int, height: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    written = io.BytesIO()
    Image.new(mode, (width, height), 128).save(written, kind)
    return written.getvalue()


async def thumbnail(content: bytes) -> bytes | None:
    return await RenderingProcesses().carry_out("thumbnail", {}, content, requester="x")


def png_that_claims(width: int, height: int) -> bytes:
    """A picture of a few kilobytes that would take gigabytes when it is decoded."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1_000_000), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"])
async def test_a_picture_becomes_a_small_one(kind: str) -> None:
    made = await thumbnail(picture(1600, 800, kind))
    assert made is not None
    with Image.open(io.BytesIO(made)) as small:
        assert small.format == "WEBP"
        assert small.size == (THUMBNAIL_PIXELS, THUMBNAIL_PIXELS // 2)


async def test_a_thumbnail_stands_upright_and_tells_no_place() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    exif[0x010E] = "a secret"
    written = io.BytesIO()
    Image.new("RGB", (400, 200)).save(written, "JPEG", exif=exif)
    made = await thumbnail(written.getvalue())
    assert made is not None
    assert b"secret" not in made
    with Image.open(io.BytesIO(made)) as small:
        assert small.height > small.width
        assert not small.getexif()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a picture",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        picture(100, 100)[:-40],
        png_that_claims(100_000, 100_000),
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
    ],
)
async def test_no_picture_can_do_more_than_have_no_thumbnail(content: bytes) -> None:
    assert await thumbnail(content) is None


async def test_a_renderer_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = RenderingProcesses(time_limit_s=0)
    assert (
        await processes.carry_out("highlight", {"language": "python"}, b"x", requester="x") is None
    )
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert await thumbnail(b"") is None


async def test_content_that_waits_for_a_process_takes_no_memory() -> None:
    processes = RenderingProcesses(max_processes=1)
    held = most = 0

    async def content() -> bytes:
        nonlocal held, most
        held += 1
        most = max(most, held)
        return b"x"

    async def render() -> None:
        nonlocal held
        arguments = {"language": "json"}
        assert await processes.carry_out("highlight", arguments, content, requester="x") is not None
        held -= 1

    await asyncio.gather(*(render() for _ in range(3)))
    assert most == 1


async def test_trouble_with_reading_is_no_missing_thumbnail() -> None:
    async def content() -> bytes:
        raise StorageError("The body cannot be read")

    processes = RenderingProcesses(max_processes=1)
    for _ in range(2):  # the place is given back
        with pytest.raises(StorageError):
            await processes.carry_out("thumbnail", {}, content, requester="x")


async def test_markdown_and_source_come_back_as_html() -> None:
    processes = RenderingProcesses()
    html = await processes.carry_out(
        "markdown",
        {"base_url": "https://pod.example", "document": "/a/b.md"},
        "# Überschrift\n<b>".encode(),
        requester="x",
    )
    assert html == "<h2>Überschrift</h2>\n<p>&lt;b&gt;</p>\n".encode()
    html = await processes.carry_out("highlight", {"language": "json"}, b"[1]", requester="x")
    assert html is not None
    assert b"hl-mi" in html


# --- thumbnail_files ---------------------------------------------------------------------------


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
