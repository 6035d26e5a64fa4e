"""Text is sent as gzip where it is accepted, with tags of its own, and tells no other site."""

from __future__ import annotations

import gzip

import pytest

from tests.support.application import Server, Start
from tests.support.asgi import Answer, Client

TURTLE = "".join(
    f"<#{number}> <http://example.org/label> 'number {number}'.\n" for number in range(100)
)
PATH = "/alice/private/numbers.ttl"
GZIP = {"Accept_Encoding": "gzip"}


@pytest.fixture
async def alice(server: Server) -> Client:
    """Alice, who has a document."""
    assert (await server.alice.put(PATH, TURTLE, "text/turtle")).status == 201
    return server.alice


def is_compressed(answer: Answer) -> bool:
    """Whether the answer is gzip; either way, it says so, and varies."""
    assert "Accept-Encoding" in (answer.header("vary") or "")
    coding = answer.header("content-encoding")
    assert coding in {None, "gzip"}
    assert answer.header("content-length") == str(len(answer.body))
    assert answer.body.startswith(b"\x1f\x8b") == (coding == "gzip")
    return coding == "gzip"


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("br, gzip;q=0.5", True),
        ("*", True),
        ("br;q=1.0, *;q=0.1", True),
        ("identity", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("*, gzip;q=0", False),
        ("", False),
        (",;,=", False),
        ("gzip," * 1000, False),
    ],
)
async def test_gzip_is_sent_to_those_who_accept_it(
    alice: Client, accepted: str, expected: bool
) -> None:
    """RFC 9110 section 12.5.3."""
    answer = await alice.get(PATH, Accept_Encoding=accepted)
    assert is_compressed(answer) == expected
    assert (gzip.decompress(answer.body) if expected else answer.body).decode() == TURTLE


async def test_each_coding_has_its_own_strong_tag(alice: Client) -> None:
    """RFC 9110 section 8.8.3.3."""
    plain, small = await alice.get(PATH), await alice.get(PATH, **GZIP)
    assert plain.header("etag") != small.header("etag")
    assert small.header("etag") == (await alice.get(PATH, **GZIP)).header("etag")
    assert (await alice.get(PATH, **GZIP)).body == small.body
    assert not (small.header("etag") or "").startswith("W/")
    assert (small.header("accept-ranges"), plain.header("accept-ranges")) == ("none", "bytes")


async def test_a_client_that_has_it_compressed_is_told_so(alice: Client) -> None:
    """RFC 9110 section 15.4.5; a cache may have stored it for somebody who accepts gzip."""
    plain, small = await alice.get(PATH), await alice.get(PATH, **GZIP)
    plain_tag, small_tag = plain.header("etag") or "", small.header("etag") or ""
    for held, named in [
        (small_tag, small_tag),
        (plain_tag, plain_tag),
        (f"{plain_tag}, {small_tag}", plain_tag),
    ]:
        answer = await alice.get(PATH, If_None_Match=held, **GZIP)
        assert (answer.status, answer.header("etag")) == (304, named)
        assert "Accept-Encoding" in (answer.header("vary") or "")
    answer = await alice.get(PATH, If_None_Match=small_tag)
    assert (answer.status, answer.body.decode()) == (200, TURTLE)


async def test_the_tag_of_a_compressed_document_is_a_condition_of_a_write(alice: Client) -> None:
    tag = (await alice.get(PATH, **GZIP)).header("etag") or ""
    assert (await alice.put(PATH, "<> a <#new>.", "text/turtle", If_Match=tag)).status == 204
    assert (await alice.put(PATH, "<> a <#old>.", "text/turtle", If_Match=tag)).status == 412


async def test_ranges_are_those_of_the_plain_document(alice: Client) -> None:
    small_tag = (await alice.get(PATH, **GZIP)).header("etag") or ""
    answer = await alice.get(PATH, Range="bytes=0-9", **GZIP)
    assert (answer.status, answer.body.decode()) == (206, TURTLE[:10])
    assert answer.header("content-encoding") is None
    answer = await alice.get(PATH, Range="bytes=0-9", If_Range=small_tag, **GZIP)
    assert answer.status == 200
    assert is_compressed(answer)


async def test_head_describes_the_plain_document(alice: Client) -> None:
    plain, head = await alice.get(PATH), await alice.head(PATH, **GZIP)
    for name in ("etag", "content-length", "content-encoding", "vary"):
        assert head.header(name) == plain.header(name)


async def test_conversions_and_listings_are_compressed(alice: Client) -> None:
    answer = await alice.get(PATH, Accept="application/ld+json", **GZIP)
    assert is_compressed(answer)
    for number in range(10):
        await alice.put(f"/alice/private/many/{number}", "text", "text/plain")
    assert is_compressed(await alice.get("/alice/private/many/", **GZIP))


@pytest.mark.parametrize(
    ("content", "media_type"),
    [("short", "text/plain"), ("x" * 5000, "image/jpeg"), ("x" * 5000, "application/zip")],
)
async def test_what_gains_nothing_is_sent_as_it_is(
    server: Server, content: str, media_type: str
) -> None:
    await server.alice.put("/alice/private/it", content, media_type)
    answer = await server.alice.get("/alice/private/it", **GZIP)
    assert answer.header("content-encoding") is None
    assert answer.text == content


async def test_a_range_of_nothing_compressible_changes_no_write(alice: Client) -> None:
    answer = await alice.put(PATH, TURTLE, "text/turtle", **GZIP)
    assert (answer.status, answer.header("content-encoding")) == (204, None)


@pytest.mark.parametrize(
    ("cookie", "site", "expected"),
    [
        (True, "same-origin", True),
        (True, "none", True),
        (True, "cross-site", False),
        (True, "same-site", False),
        (True, None, False),
        (False, "cross-site", True),
    ],
)
async def test_no_other_site_makes_a_browser_ask_for_a_compressed_page_with_its_cookie(
    start: Start, cookie: bool, site: str | None, expected: bool
) -> None:
    """BREACH: the length of a compressed page tells what in it is alike."""
    server = await start(base_url="https://pods.example")
    headers = {"Accept-Encoding": "gzip", "Accept": "text/html"}
    headers |= {"Cookie": "__Host-x=1"} if cookie else {}
    headers |= {} if site is None else {"Sec-Fetch-Site": site}
    answer = await server.public.request("GET", "/.pages/sign-in", headers=headers)
    assert answer.status == 200
    assert is_compressed(answer) == expected


async def test_pages_are_compressed_where_everybody_on_the_way_can_read_them(
    server: Server,
) -> None:
    headers = {"Accept-Encoding": "gzip", "Cookie": "x=1"}
    assert is_compressed(await server.public.request("GET", "/.pages/sign-in", headers=headers))


async def test_the_files_of_the_pages_are_compressed(server: Server) -> None:
    page = await server.public.get("/.pages/sign-in")
    address = page.text.split('href="/.pages/assets/')[1].split('"')[0]
    plain = await server.public.get(f"/.pages/assets/{address}")
    small = await server.public.get(f"/.pages/assets/{address}", **GZIP)
    assert is_compressed(small)
    assert not is_compressed(plain)
    assert gzip.decompress(small.body) == plain.body
