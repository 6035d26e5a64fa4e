"""Which foreign documents are read, and how long they are trusted (A-111, A-189, R-11, W-14)."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.outbound.documents import RemoteDocuments
from podstead.outbound.errors import (
    BadStatus,
    FetchFailed,
    Refusal,
    Refused,
    TooLarge,
    Unreachable,
    WrongType,
)
from podstead.outbound.foreign_documents import FetchedDocument, Purpose
from podstead.outbound.transport import read_body
from podstead.outbound.urls import parse_origin
from tests.support.peer import Deployment, Gate, Peer, answer, redirect

JSON_LD = "application/ld+json"
GROUP, CONTEXT = Purpose.GROUP, Purpose.CONTEXT


def documents(
    deployment: Deployment, *context_peers: Peer, cache_bytes: int = 16 * 1024 * 1024
) -> RemoteDocuments:
    """A loopback deployment whose operator listed the peers as context origins."""
    return RemoteDocuments(
        deployment.fetcher(),
        deployment.clock,
        context_origins=frozenset(parse_origin(peer.url("")) for peer in context_peers),
        cache_bytes=cache_bytes,
    )


@pytest.mark.parametrize("media_type", ["text/turtle", JSON_LD, "application/n-triples"])
async def test_a_group_document_comes_with_its_type_and_final_url(
    deployment: Deployment, peer: Peer, other_peer: Peer, media_type: str
) -> None:
    """W-14: redirects as for profiles (A-189); the final URL is the base."""
    peer.replies["/group"] = redirect(other_peer.url("/moved"))
    other_peer.replies["/moved"] = answer(content_type=f"{media_type}; charset=utf-8")
    assert await documents(deployment).fetch(peer.url("/group#it"), GROUP) == FetchedDocument(
        content=b"<#a> <#b> <#c> .", media_type=media_type, final_url=other_peer.url("/moved")
    )


@pytest.mark.parametrize("media_type", [JSON_LD, "application/json"])
async def test_a_context_comes_from_a_listed_origin(
    deployment: Deployment, peer: Peer, media_type: str
) -> None:
    """R-11."""
    peer.replies["/v1"] = answer(content_type=media_type, body=b"{}")
    context = await documents(deployment, peer).fetch(peer.url("/v1"), CONTEXT)
    assert context == FetchedDocument(b"{}", media_type, peer.url("/v1"))


async def test_a_context_of_an_unlisted_origin_is_not_fetched(
    deployment: Deployment, peer: Peer, other_peer: Peer
) -> None:
    """R-11: only origins listed by the operator, redirects included; by default there are none."""
    peer.replies["/v1"] = redirect(other_peer.url("/v1"))
    listed = documents(deployment, peer)
    for remote, url in (
        (documents(deployment), peer.url("/v1")),
        (listed, other_peer.url("/v1")),
        (listed, peer.url("/v1")),
    ):
        with pytest.raises(Refused) as caught:
            await remote.fetch(url, CONTEXT)
        assert caught.value.refusal is Refusal.ORIGIN_NOT_LISTED
    assert (peer.connections, other_peer.connections) == (1, 0)


@pytest.mark.parametrize("purpose", [GROUP, CONTEXT])
async def test_another_type_of_document_is_refused(
    deployment: Deployment, peer: Peer, purpose: Purpose
) -> None:
    """A-189, content-type checked."""
    peer.replies["/"] = answer(content_type="text/html")
    with pytest.raises(WrongType):
        await documents(deployment, peer).fetch(peer.url(), purpose)


@pytest.mark.parametrize(("purpose", "limit"), [(GROUP, 1_048_576), (CONTEXT, 262_144)])
async def test_the_size_is_limited(
    deployment: Deployment, peer: Peer, purpose: Purpose, limit: int
) -> None:
    """A-111: 1 MiB as for profiles, 256 KiB for contexts; the limit itself fits."""
    peer.replies["/fits"] = answer(content_type=JSON_LD, body=b" " * limit)
    peer.replies["/over"] = answer(content_type=JSON_LD, body=b" " * (limit + 1))
    remote = documents(deployment, peer)
    assert len((await remote.fetch(peer.url("/fits"), purpose)).content) == limit
    with pytest.raises(TooLarge):
        await remote.fetch(peer.url("/over"), purpose)


@pytest.mark.parametrize(
    ("purpose", "cache_control", "lifetime_s"),
    [
        (GROUP, "X-None: x", 60),
        (GROUP, "Cache-Control: no-store", 10),
        (GROUP, "Cache-Control: max-age=5", 10),
        (GROUP, "Cache-Control: max-age=120", 120),
        (GROUP, "Cache-Control: max-age=301", 300),
        (CONTEXT, "X-None: x", 3600),
        (CONTEXT, "Cache-Control: no-store", 300),
        (CONTEXT, "Cache-Control: max-age=7200", 7200),
        (CONTEXT, "Cache-Control: max-age=31536000", 86_400),
    ],
)
async def test_a_document_is_used_again_for_its_max_age_between_two_bounds(
    deployment: Deployment, peer: Peer, purpose: Purpose, cache_control: str, lifetime_s: int
) -> None:
    """W-14, cache of minutes; floor, default and ceiling of each kind, to the millisecond."""
    peer.replies["/"] = answer("200 OK", cache_control, content_type=JSON_LD)
    remote = documents(deployment, peer)
    await remote.fetch(peer.url("/#a"), purpose)
    deployment.clock.advance(lifetime_s - 0.001)
    await remote.fetch(peer.url("/#b"), purpose)
    assert len(peer.requests) == 1
    deployment.clock.advance(0.001)
    await remote.fetch(peer.url("/"), purpose)
    assert len(peer.requests) == 2


@pytest.mark.parametrize("purpose", [GROUP, CONTEXT])
async def test_a_document_gone_bad_is_not_served_from_memory(
    deployment: Deployment, peer: Peer, purpose: Purpose
) -> None:
    """W-14: a failure is an error, so that nobody counts as a member by an outdated document."""
    peer.replies["/"] = answer(content_type=JSON_LD)
    remote = documents(deployment, peer)
    await remote.fetch(peer.url(), purpose)
    peer.replies["/"] = answer("410 Gone")
    deployment.clock.advance(86_400)
    with pytest.raises(BadStatus):
        await remote.fetch(peer.url(), purpose)


async def test_the_two_kinds_do_not_share_what_they_keep(
    deployment: Deployment, peer: Peer
) -> None:
    """A document accepted as a group's was not checked as a context."""
    peer.replies["/"] = answer(content_type=JSON_LD)
    remote = documents(deployment)
    await remote.fetch(peer.url(), GROUP)
    with pytest.raises(FetchFailed):
        await remote.fetch(peer.url(), CONTEXT)


async def test_documents_kept_in_memory_are_bounded(deployment: Deployment, peer: Peer) -> None:
    """The least recently used document makes room."""
    for name in "abc":
        peer.replies[f"/{name}"] = answer(body=b" " * 30_000)
    remote = documents(deployment, cache_bytes=80_000)
    for name in ("a", "b", "a", "c", "a"):
        await remote.fetch(peer.url(f"/{name}"), GROUP)
    assert [request.path for request in peer.requests] == ["/a", "/b", "/c"]
    await remote.fetch(peer.url("/b"), GROUP)
    assert len(peer.requests) == 4


async def test_many_readers_of_a_document_cause_one_fetch(
    deployment: Deployment, peer: Peer
) -> None:
    """A-111, single-flight."""
    gate = Gate()
    peer.replies["/"] = gate.reply
    remote = documents(deployment)
    readers = [asyncio.create_task(remote.fetch(peer.url(), GROUP)) for _ in range(20)]
    await gate.arrivals(1)
    gate.opened.set()
    await asyncio.gather(*readers)
    assert len(peer.requests) == 1


# --- How a foreign body is read (A-189) --------------------------------------------------------


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
