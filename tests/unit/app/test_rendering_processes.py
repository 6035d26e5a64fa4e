"""The renderer's process: what it makes, and what cannot hurt the server."""

from __future__ import annotations

import asyncio
import io
import struct
import sys
import zlib

import pytest
from PIL import Image

from podstead.app.adapters.rendering_processes import RenderingProcesses
from podstead.core.errors import StorageError
from podstead.previews.pictures import THUMBNAIL_PIXELS


def picture(width: int, height: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    written = io.BytesIO()
    Image.new(mode, (width, height), 128).save(written, kind)
    return written.getvalue()


async def thumbnail(content: bytes) -> bytes | None:
    return await RenderingProcesses().render("thumbnail", {}, content, requester="x")


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
    assert await processes.render("highlight", {"language": "python"}, b"x", requester="x") is None
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
        assert await processes.render("highlight", arguments, content, requester="x") is not None
        held -= 1

    await asyncio.gather(*(render() for _ in range(3)))
    assert most == 1


async def test_trouble_with_reading_is_no_missing_thumbnail() -> None:
    async def content() -> bytes:
        raise StorageError("The body cannot be read")

    processes = RenderingProcesses(max_processes=1)
    for _ in range(2):  # the place is given back
        with pytest.raises(StorageError):
            await processes.render("thumbnail", {}, content, requester="x")


async def test_markdown_and_source_come_back_as_html() -> None:
    processes = RenderingProcesses()
    html = await processes.render(
        "markdown",
        {"base_url": "https://pod.example", "document": "/a/b.md"},
        "# Überschrift\n<b>".encode(),
        requester="x",
    )
    assert html == "<h2>Überschrift</h2>\n<p>&lt;b&gt;</p>\n".encode()
    html = await processes.render("highlight", {"language": "json"}, b"[1]", requester="x")
    assert html is not None
    assert b"hl-mi" in html
