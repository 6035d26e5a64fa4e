"""Content on its way to git; gzip by the standard library, packets as in gitprotocol-common."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import BadRequest, BodyTooLarge
from podstead.features.git.protocol import MAX_COMMAND_BYTES, decompressed, limit_commands
from tests.support.git import packet

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024
FLUSH = b"0000"
WHOLE = gzip.compress(b"hello" * 100)


COMMAND = packet(b"0" * 40 + b" " + b"1" * 40 + b" refs/heads/a")


async def cut(content: bytes, chunk_bytes: int = 65536) -> AsyncIterator[bytes]:
    for at in range(0, len(content), chunk_bytes):
        yield content[at : at + chunk_bytes]


async def whole(content: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in content])


@given(
    body=st.binary(max_size=300) | st.builds(bytes, st.integers(0, 1_000_000)),
    chunk_bytes=st.integers(1, 100) | st.just(MIB),
)
async def test_gzip_is_inflated_however_it_is_cut(body: bytes, chunk_bytes: int) -> None:
    packed = cut(gzip.compress(body), chunk_bytes)
    assert await whole(decompressed(packed, limit_bytes=len(body))) == body


async def test_what_inflates_to_too_much_is_not_inflated_to_its_end() -> None:
    pieces = decompressed(cut(gzip.compress(bytes(50 * MIB)), MIB), limit_bytes=MIB)
    came_bytes = 0
    with pytest.raises(BodyTooLarge):  # noqa: PT012 - what came before it is measured
        async for piece in pieces:
            came_bytes += len(piece)
    assert came_bytes <= MIB


@pytest.mark.parametrize("chunk_bytes", [1, 1000])
@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"no gzip at all",
        WHOLE[:-1],
        WHOLE[:20],
        WHOLE + b"x",
        WHOLE + WHOLE,
        WHOLE[:-8] + bytes(8),
    ],
    ids=["nothing", "foreign", "cut", "cut early", "more", "two members", "another checksum"],
)
async def test_damaged_gzip_is_refused(damaged: bytes, chunk_bytes: int) -> None:
    with pytest.raises(BadRequest):
        await whole(decompressed(cut(damaged, chunk_bytes), limit_bytes=MIB))


@given(
    commands=st.lists(st.binary(max_size=50).map(packet), max_size=20).map(b"".join),
    rest=st.binary(max_size=100),
    chunk_bytes=st.integers(1, 200),
)
async def test_a_push_passes_as_it_is(commands: bytes, rest: bytes, chunk_bytes: int) -> None:
    content = commands + FLUSH + rest
    assert await whole(limit_commands(cut(content, chunk_bytes))) == content


@pytest.mark.parametrize("chunk_bytes", [65536, 1_000_003])
async def test_the_commands_of_a_push_are_few(chunk_bytes: int) -> None:
    most = MAX_COMMAND_BYTES // len(COMMAND)
    few = COMMAND * (most - 1) + FLUSH
    pack = bytes(MAX_COMMAND_BYTES)
    passed = await whole(limit_commands(cut(few + pack, chunk_bytes)))
    assert len(passed) == len(few + pack)
    with pytest.raises(BodyTooLarge):
        await whole(limit_commands(cut(COMMAND * (most + 1), chunk_bytes)))


@pytest.mark.parametrize(
    "hide",
    [
        pytest.param(lambda: COMMAND + packet(b"push-cert\0"), id="certificate"),
        pytest.param(lambda: b"0001", id="delimiter"),
        pytest.param(lambda: b"0004", id="empty"),
        pytest.param(lambda: packet(b"0000"), id="a flush within a packet"),
    ],
)
async def test_only_a_flush_ends_the_commands(hide: Callable[[], bytes]) -> None:
    with pytest.raises(BodyTooLarge):
        await whole(limit_commands(cut(hide() + COMMAND * (MAX_COMMAND_BYTES // 90))))
