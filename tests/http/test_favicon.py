"""``GET /favicon.ico``: what browsers ask every server for, and what its pages let them load."""

from __future__ import annotations

import struct

import pytest

from tests.support.application import Server

PNG = b"\x89PNG\r\n\x1a\n"


async def test_browsers_get_an_icon(server: Server) -> None:
    answer = await server.public.get("/favicon.ico")
    assert (answer.status, answer.header("content-type")) == (200, "image/x-icon")
    assert "max-age" in (answer.header("cache-control") or "")
    reserved, kind, count = struct.unpack_from("<HHH", answer.body)
    assert (reserved, kind) == (0, 1)
    sizes, end = [], 0
    for index in range(count):
        width, _height, size_bytes, offset = struct.unpack_from(
            "<BBxxxxxxII", answer.body, 6 + 16 * index
        )
        image = answer.body[offset : offset + size_bytes]
        assert image.startswith(PNG)
        assert struct.unpack_from(">II", image, 16) == (width, width)
        sizes.append(width)
        end = offset + size_bytes
    assert sizes == [16, 32, 48]
    assert end == len(answer.body)


async def test_the_icon_is_not_sent_twice(server: Server) -> None:
    tag = (await server.public.get("/favicon.ico")).header("etag") or ""
    again = await server.public.request("GET", "/favicon.ico", headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")


async def test_nobody_replaces_the_icon(server: Server) -> None:
    answer = await server.alice.put("/favicon.ico", b"x", "image/x-icon")
    assert answer.status == 405


@pytest.mark.parametrize("path", ["/", "/nothing/here"])
async def test_pages_let_the_browser_load_the_icon(server: Server, path: str) -> None:
    page = await server.public.get(path, accept="text/html", sec_fetch_mode="cors")
    assert "img-src 'self'" in (page.header("content-security-policy") or "")
