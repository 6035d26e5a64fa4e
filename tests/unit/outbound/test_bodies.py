"""How a foreign body is read (A-189)."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.outbound.errors import TooLarge, Unreachable, WrongType
from podstead.outbound.transport import read_body

pytestmark = pytest.mark.anyio


async def _chunks(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def read(
    body: bytes, *, coding: str = "", wire: int = 1000, content: int = 1000, chunk: int = 7
) -> bytes:
    """Read the body in small chunks."""
    return await read_body(
        _chunks(body, chunk),
        content_coding=coding,
        max_wire_bytes=wire,
        max_content_bytes=content,
    )


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", " GZIP "])
@given(body=st.binary(max_size=300), chunk=st.integers(1, 50))
async def test_gzip_is_undone_however_it_is_cut(coding: str, body: bytes, chunk: int) -> None:
    """RFC 9110 section 8.4.1.3; gzip by the standard library."""
    assert await read(gzip.compress(body), coding=coding, chunk=chunk) == body


@pytest.mark.parametrize("coding", ["", "identity", "Identity"])
@given(body=st.binary(max_size=300))
async def test_an_uncoded_body_is_taken_as_it_is(coding: str, body: bytes) -> None:
    """Nothing is sniffed."""
    assert await read(body, coding=coding) == body


async def test_the_size_as_sent_is_limited() -> None:
    """A-189: at the limit and one past it."""
    assert await read(b"x" * 100, wire=100) == b"x" * 100
    with pytest.raises(TooLarge):
        await read(b"x" * 101, wire=100)


@pytest.mark.parametrize("coding", ["", "gzip"])
async def test_the_size_once_decompressed_is_limited(coding: str) -> None:
    """A-189, cap after decompression: at the limit and one past it."""
    encode = gzip.compress if coding else bytes
    assert await read(encode(b"x" * 100), coding=coding, content=100) == b"x" * 100
    with pytest.raises(TooLarge):
        await read(encode(b"x" * 101), coding=coding, content=100)


async def test_a_gzip_bomb_is_stopped_at_the_first_byte_too_many() -> None:
    """A-189: what follows the limit is never read, let alone inflated."""
    bomb = gzip.compress(bytes(10_000_000))
    read_bytes = 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal read_bytes
        async for chunk in _chunks(bomb, 64):
            read_bytes += len(chunk)
            yield chunk

    with pytest.raises(TooLarge):
        await read_body(
            counted(), content_coding="gzip", max_wire_bytes=100_000, max_content_bytes=50_000
        )
    assert read_bytes < 1000


async def test_a_gzip_bomb_in_one_chunk_is_not_inflated_whole() -> None:
    """A-189: the limit holds for memory, not only for the result."""
    bomb = gzip.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            await read(bomb, coding="gzip", wire=100_000, content=50_000, chunk=100_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


WHOLE = gzip.compress(b"hello")
DAMAGED = {
    "empty": b"",
    "foreign": b"not gzip at all",
    "truncated": WHOLE[:-1],
    "with a byte after it": WHOLE + b"x",
    "with a second member": WHOLE + gzip.compress(b"again"),
    "with a wrong checksum": WHOLE[:-8] + bytes(8),
    "zlib": zlib.compress(b"hello"),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("chunk", [1, 1000])
async def test_a_damaged_gzip_body_is_refused(damage: str, chunk: int) -> None:
    """A part is never taken for a shorter document."""
    with pytest.raises(Unreachable):
        await read(DAMAGED[damage], coding="gzip", chunk=chunk)


@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "compress", "gzip, gzip", "gzip;q=1"])
async def test_a_coding_that_was_not_requested_is_refused(coding: str) -> None:
    """RFC 9110 section 12.5.3: only gzip is offered."""
    with pytest.raises(WrongType):
        await read(b"x", coding=coding)
