"""Fetching from peers on loopback, kind and unkind (A-111, A-189)."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from podstead.outbound.errors import (
    BadStatus,
    FetchFailed,
    TooLarge,
    TooSlow,
    Unreachable,
    WrongType,
)
from podstead.outbound.fetch import freshness_s
from podstead.outbound.foreign_documents import FetchedDocument
from tests.support.peer import (
    FOLLOWING,
    HASTY,
    HASTY_TO_CONNECT,
    PATIENT,
    Deployment,
    Gate,
    Peer,
    Reply,
    StalledResolver,
    answer,
    endless,
    raw,
    redirect,
    stalled,
)

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\n"


async def test_a_document_is_fetched_whole(deployment: Deployment, peer: Peer) -> None:
    """The media type is compared and reported without parameters and case."""
    peer.replies["/group"] = answer(
        "200 OK",
        "Cache-Control: max-age=90",
        content_type='Text/Turtle; charset="UTF-8"',
        body=b"<#a> <#b> <#c> .",
    )
    assert await deployment.fetcher().fetch(peer.url("/group#members"), PATIENT) == FetchedDocument(
        final_url=peer.url("/group"),
        media_type="text/turtle",
        content=b"<#a> <#b> <#c> .",
        max_age_s=90,
    )


async def test_a_compressed_document_is_decompressed(deployment: Deployment, peer: Peer) -> None:
    """RFC 9110 section 8.4."""
    peer.replies["/"] = answer(
        "200 OK", "Content-Encoding: gzip", body=gzip.compress(b"<#a> <#b> <#c> .")
    )
    document = await deployment.fetcher().fetch(peer.url(), PATIENT)
    assert document.content == b"<#a> <#b> <#c> ."


async def test_the_request_names_us_and_nothing_else(
    deployment: Deployment, peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A-187: own User-Agent; no credentials, cookies, referrer or anything of the environment."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login someone password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    peer.replies["/"] = answer("200 OK", "Set-Cookie: session=1", "Cache-Control: no-store")
    fetcher = deployment.fetcher()
    await fetcher.fetch(peer.url(), PATIENT)
    await fetcher.fetch(peer.url(), PATIENT)
    expected = {
        "host": f"localhost:{peer.port}",
        "accept": "text/turtle",
        "accept-encoding": "gzip",
        "user-agent": "Podstead",
        "connection": "close",
    }
    assert [request.headers for request in peer.requests] == [expected, expected]


async def test_the_raw_path_and_query_are_sent_as_written(
    deployment: Deployment, peer: Peer
) -> None:
    """A-187: nothing decodes and encodes a path again on the way."""
    path = "/a%2Fb/%7Eme/./x?q=%20+&r=%e9"
    peer.replies[path] = answer()
    await deployment.fetcher().fetch(peer.url(path), PATIENT)
    assert [request.path for request in peer.requests] == [path]


async def test_no_proxy_of_the_environment_is_used(
    deployment: Deployment, peer: Peer, other_peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-187: no proxy env."""
    for name in (
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.setenv(name, f"http://127.0.0.1:{other_peer.port}")
    peer.replies["/"] = answer()
    await deployment.fetcher().fetch(peer.url(), PATIENT)
    assert (peer.connections, other_peer.connections) == (1, 0)


# Answers that are not the document


@pytest.mark.parametrize(
    "status", ["204 No Content", "206 Partial", "404 Gone", "500 Oh", "503 No"]
)
async def test_any_other_status_than_200_is_not_a_document(
    deployment: Deployment, peer: Peer, status: str
) -> None:
    """A-111: trouble, told apart by status; never an empty document."""
    peer.replies["/"] = answer(status, body=b"")
    with pytest.raises(BadStatus) as caught:
        await deployment.fetcher().fetch(peer.url(), PATIENT)
    assert caught.value.status == int(status[:3])


@pytest.mark.parametrize("content_type", ["text/html", "", "text/turtlex", "application/json", ";"])
async def test_a_media_type_that_was_not_requested_is_refused(
    deployment: Deployment, peer: Peer, content_type: str
) -> None:
    """A-189, content-type checked."""
    peer.replies["/"] = answer(content_type=content_type)
    with pytest.raises(WrongType):
        await deployment.fetcher().fetch(peer.url(), PATIENT)


async def test_a_missing_media_type_is_refused(deployment: Deployment, peer: Peer) -> None:
    """A-189: nothing is sniffed."""
    peer.replies["/"] = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n<>")
    with pytest.raises(WrongType):
        await deployment.fetcher().fetch(peer.url(), PATIENT)


@pytest.mark.parametrize(
    "reply",
    [
        raw(b""),
        raw(b"nonsense\r\n\r\n"),
        raw(b"HTTP/1.1 200"),
        raw(HEAD + b"Content-Length: 100\r\n\r\n<#a>"),
        raw(HEAD + b"Content-Length: x\r\n\r\n<#a>"),
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\n<#a>\r\n"),
        raw(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n<#a>"),
        endless(HEAD + b"X: ", b"x" * 4096),
        endless(HEAD, b"X-Filler: x\r\n"),
    ],
)
async def test_an_answer_that_is_not_sound_http_is_not_a_document(
    deployment: Deployment, peer: Peer, reply: Reply
) -> None:
    """A-111: truncated, garbled or endless heads; a part is never taken for the whole."""
    peer.replies["/"] = reply
    with pytest.raises(Unreachable):
        await deployment.fetcher().fetch(peer.url(), PATIENT)


async def test_a_port_where_nobody_listens_is_unreachable(
    deployment: Deployment, other_peer: Peer
) -> None:
    """A-111."""
    url = other_peer.url()
    await other_peer.stop()
    with pytest.raises(Unreachable):
        await deployment.fetcher().fetch(url, PATIENT)


async def test_a_name_that_does_not_resolve_is_unreachable(deployment: Deployment) -> None:
    """DNS errors are not swallowed."""
    with pytest.raises(Unreachable):
        await deployment.fetcher().fetch("https://unknown.example/", PATIENT)


# Sizes


@pytest.mark.parametrize(
    "reply",
    [
        answer(body=b"x" * 4097),
        raw(HEAD + b"\r\n" + b"x" * 4097),
        stalled(HEAD + b"Content-Length: 1000000000\r\n\r\n"),
        endless(HEAD + b"Content-Length: 1000000000\r\n\r\n", b"x" * 1000),
        endless(HEAD + b"\r\n", b"x" * 1000),
        endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"3e8\r\n" + b"x" * 1000 + b"\r\n"),
        answer("200 OK", "Content-Encoding: gzip", body=gzip.compress(b"x" * 8193)),
        answer("200 OK", "Content-Encoding: gzip", body=gzip.compress(bytes(3_000_000))),
    ],
)
async def test_a_document_over_the_size_is_given_up(
    deployment: Deployment, peer: Peer, reply: Reply
) -> None:
    """A-111, A-189: announced, counted, endless, or inflated."""
    peer.replies["/"] = reply
    with pytest.raises(TooLarge):
        await deployment.fetcher().fetch(peer.url(), PATIENT)


async def test_a_document_of_exactly_the_size_is_taken(deployment: Deployment, peer: Peer) -> None:
    """A-111: at the limit."""
    peer.replies["/"] = answer(body=b"x" * 4096)
    assert len((await deployment.fetcher().fetch(peer.url(), PATIENT)).content) == 4096


# Times


@pytest.mark.parametrize(
    "reply",
    [
        stalled(),
        stalled(b"HTTP/1.1 200 OK\r\nContent-"),
        stalled(HEAD + b"Content-Length: 100\r\n\r\n<#a>"),
        stalled(HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\n<#a>\r\n"),
    ],
)
async def test_an_answer_that_does_not_end_in_time_is_given_up(
    deployment: Deployment, peer: Peer, reply: Reply
) -> None:
    """A-111, total 5 s: before, in and after the head."""
    peer.replies["/"] = reply
    with pytest.raises(TooSlow):
        await deployment.fetcher().fetch(peer.url(), HASTY)


async def test_a_tls_handshake_that_does_not_end_in_time_is_given_up(
    deployment: Deployment,
) -> None:
    """A-111, connect 3 s: the peer accepts and says nothing."""
    silent = Peer()
    await silent.start()
    try:
        with pytest.raises(TooSlow):
            await deployment.fetcher().fetch(f"https://127.0.0.1:{silent.port}/", HASTY_TO_CONNECT)
    finally:
        await silent.stop()


async def test_a_look_up_that_does_not_end_in_time_is_given_up(deployment: Deployment) -> None:
    """A-111: name servers are peers too."""
    with pytest.raises(TooSlow):
        await deployment.fetcher(names=StalledResolver()).fetch(
            "https://slow.example/", HASTY_TO_CONNECT
        )


async def test_redirects_share_one_time_limit(deployment: Deployment, peer: Peer) -> None:
    """A-111: a chain of hops is not given the time of each."""
    peer.replies["/"] = redirect("/slow")
    peer.replies["/slow"] = stalled()
    with pytest.raises(TooSlow):
        await deployment.fetcher().fetch(peer.url(), replace(FOLLOWING, total_timeout_s=0.05))


# Sentences and headers


@pytest.mark.parametrize("failure", FetchFailed.__subclasses__())
def test_public_sentences_are_fixed_and_distinct(failure: type[FetchFailed]) -> None:
    """A-186: fixed phrases, no library messages."""
    sentences = [other.sentence for other in FetchFailed.__subclasses__()]
    assert sentences.count(failure.sentence) == 1


async def test_a_failure_reveals_nothing_about_the_network(
    deployment: Deployment, peer: Peer
) -> None:
    """A-186: neither address nor port nor the library's text."""
    peer.replies["/"] = raw(b"")
    with pytest.raises(Unreachable) as caught:
        await deployment.fetcher().fetch(peer.url(), PATIENT)
    assert str(caught.value) == "The remote server could not be reached"
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("cache_control", "age", "expected_s"),
    [
        (None, None, None),
        ("", None, None),
        ("public", None, None),
        ("max-age=60", None, 60),
        ("Public, Max-Age=60", None, 60),
        ('max-age="60"', None, 60),
        ("max-age=60", "15", 45),
        ("max-age=60", "61", 0),
        ("max-age=60", "soon", 60),
        ("max-age=0", None, 0),
        ("no-store", None, 0),
        ("max-age=60, no-cache", None, 0),
        ('max-age=60, no-cache="x"', None, 0),
        ("max-age=-1", None, None),
        ("max-age=1.5", None, None),
        ("max-age", None, None),
        ("max-age=99999999999", None, 99_999_999_999),
        ("max-age=" + "9" * 5000, None, None),
        ("s-maxage=60", None, None),
    ],
)
def test_freshness_is_read_from_cache_control(
    cache_control: str | None, age: str | None, expected_s: int | None
) -> None:
    """RFC 9111 sections 4.2.1, 4.2.3 and 5.2.2; we are a private cache."""
    assert freshness_s(cache_control, age) == expected_s


async def test_closing_ends_the_fetches_under_way(deployment: Deployment, peer: Peer) -> None:
    """A server that stops does not wait for foreign ones."""
    gate = Gate()
    peer.replies["/"] = gate.reply
    fetcher = deployment.fetcher()
    waiting = asyncio.create_task(fetcher.fetch(peer.url(), PATIENT))
    await gate.arrivals(1)
    await fetcher.close()
    with pytest.raises(Unreachable):
        await waiting
