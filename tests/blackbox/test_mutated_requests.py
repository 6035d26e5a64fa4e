"""Invariant: the server responds properly to any input, or closes the connection, and never fails.

No answer is a 5xx but 501 for a method and 505 for a version that are not known, nothing is logged,
and what nobody mentioned is still there. Real requests are bent in two ways: byte by byte, so that
even their framing breaks, and by values that ought to be refused one layer further in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.blackbox.limited_server import OPTIONS
from tests.support.client import Pod, create_pod
from tests.support.server import ServerProcess, server_fixture
from tests.support.wire import Wire, compose

FINE = {501, 505}
EXAMPLES = settings(max_examples=300, suppress_health_check=list(HealthCheck))

TURTLE = '@prefix a: <#>.\n<> a:b [ a:c ( 1 2.5 \'x\'@en ) ]; a:d """long"""^^a:e .\n'
JSON_LD = (
    '{"@context": {"@vocab": "#"}, "@id": "", "@type": "T", "list": {"@list": [1, {"@id": "x"}]}}'
)
N_TRIPLES = '<http://a.example/> <http://a.example/p> "x\\u00e9"@en .\n'
"""Bodies of every format, with most of their grammar."""


server = server_fixture(OPTIONS)


@pytest.fixture(autouse=True)
def bystander_is_untouched(server: ServerProcess, unmoved: None) -> Iterator[None]:
    """A pod that nothing was aimed at is as it was."""
    pod = create_pod(server)
    with pod.owner() as client:
        kept = client.put(f"{pod.root}kept", "kept")
        before = client.members(pod.root)
    yield
    with pod.owner() as client:
        assert client.get(f"{pod.root}kept").headers["etag"] == kept.headers["etag"]
        assert client.members(pod.root) == before


def furnished_pod(server: ServerProcess) -> Pod:
    """A pod for one example, so that none depends on those before."""
    pod = create_pod(server)
    with pod.owner() as client:
        client.put(f"{pod.root}a.txt", "hello")
        client.put(f"{pod.root}a.ttl", TURTLE, "text/turtle")
        client.put(f"{pod.root}b/c", JSON_LD, "application/ld+json")
    return pod


def composed(
    pod: Pod, method: str, name: str, headers: dict[str, str] | None = None, body: str | None = None
) -> bytes:
    """A request of the owner."""
    fields = {"Authorization": f"Bearer {pod.token}", **(headers or {})}
    content = None if body is None else body.encode("utf-8", "surrogatepass")
    host = f"localhost:{pod.server.port}"
    return compose(method, pod.root + name, fields, content, host=host)


def check(statuses: Sequence[int]) -> None:
    assert {status for status in statuses if status >= 500} <= FINE


# --- Bytes ------------------------------------------------------------------------------------


REAL_REQUESTS: list[tuple[str, str, dict[str, str], str | None]] = [
    ("GET", "", {"Accept": "application/ld+json;q=0.9, text/turtle;q=0.1"}, None),
    ("GET", "a.txt", {"Range": "bytes=1-2", "If-Range": '"x"'}, None),
    ("HEAD", "a.txt", {"If-None-Match": 'W/"a", "b"'}, None),
    ("OPTIONS", "a.txt", {"Origin": "https://a.example"}, None),
    ("PUT", "a.txt", {"Content-Type": "text/plain", "If-Match": "*"}, "hello"),
    ("PUT", "a.ttl", {"Content-Type": "text/turtle; charset=utf-8"}, TURTLE),
    ("PUT", "new/c/", {"Content-Type": "application/ld+json"}, JSON_LD),
    ("POST", "", {"Content-Type": "text/plain", "Slug": "caf%C3%A9"}, "hello"),
    ("DELETE", "a.txt", {"If-Unmodified-Since": "Sat, 21 Nov 2026 06:00:00 GMT"}, None),
    ("PUT", "a.txt", {"Content-Type": "a/b", "Transfer-Encoding": "chunked"}, None),
]
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"


def real_request(pod: Pod, kind: int) -> bytes:
    request = composed(pod, *REAL_REQUESTS[kind])
    return request + CHUNKS if b"chunked" in request else request


PIECES = [
    *(b"\r\n", b"\n", b"\x00", b" ", b":", b"%", b"%00", b"%2F", b"/..", b"//", b"?", b"#", b","),
    *(b'"', b"\\", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"-1", b"99999999999999999999", b"*"),
    *(b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9.9", b"chunked", b"Host: x\r\n", b"Content-Length: 3\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n"),
    *(b"Upgrade: websocket\r\nConnection: upgrade\r\n", b"Upgrade: h2c\r\n", b"a" * 5000),
]


@dataclass(frozen=True)
class Cut:
    """Replaces what is between two places (in thousandths of the length) by a piece."""

    start: int
    length_bytes: int
    piece: bytes

    def apply(self, request: bytes) -> bytes:
        at = self.start * len(request) // 1000
        return request[:at] + self.piece + request[at + self.length_bytes :]


cuts = st.builds(
    Cut,
    st.integers(0, 1000),
    st.one_of(st.integers(0, 3), st.integers(0, 200)),
    st.one_of(st.sampled_from(PIECES), st.binary(max_size=4)),
)


@EXAMPLES
@given(kind=st.integers(0, len(REAL_REQUESTS) - 1), cuts=st.lists(cuts, min_size=1, max_size=4))
def test_requests_with_broken_bytes(server: ServerProcess, kind: int, cuts: list[Cut]) -> None:
    request = real_request(furnished_pod(server), kind)
    for cut in cuts:
        request = cut.apply(request)
    with Wire(server) as wire:
        wire.send_what_is_taken(request)
        wire.end_sending()
        check(wire.receive_statuses())


# --- Values -----------------------------------------------------------------------------------

printable = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f")
)
fields = st.one_of(
    printable,
    st.sampled_from(
        [
            *("*", '"', '"a', "W/", 'W/"a', '"a",,"b"', ",", ";", "a/b;c", "a/b;q=", "text/*;q=x"),
            *("a/b;q=0.1234", "*/a", "text/turtle; q=0", "bytes=-", "bytes=5-1", "bytes=1-2,4-"),
            *("bytes=" + "9" * 40 + "-", "bytes=a-b", "bytes=--1", "<>", "<a>; rel", '<a>; rel="'),
            *("</a>;rel=type,", "0", "Sat, 99 Nov 2026 06:00:00 GMT", "Sun, 06 Nov 0000 0:0:0"),
            *(
                "Mon, 01 Jan 99999 00:00:00 GMT",
                "Sunday, 06-Nov-94 08:49:37 GMT",
                "null",
                "http://",
            ),
            *("http://[", "https://a.example:99999", "%", "%ff", "..", ".acl", "a/b", "é", "\xa0"),
        ]
    ),
)
headers = st.dictionaries(
    st.sampled_from(
        [
            *("Accept", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"),
            *("If-Range", "Range", "Slug", "Link", "Origin", "Content-Type", "Content-Encoding"),
            *("Access-Control-Request-Headers", "Access-Control-Request-Method", "Accept-Encoding"),
            *(
                "Authorization",
                "Cookie",
                "DPoP",
                "X-Forwarded-For",
                "X-Forwarded-Host",
                "Forwarded",
            ),
        ]
    ),
    fields,
    max_size=4,
)
types = st.sampled_from(
    [
        *("text/turtle", "application/ld+json", "application/n-triples", "application/json"),
        *("text/n3", "application/trig", "application/rdf+xml", "text/plain", "application/x-a"),
    ]
)
names = st.sampled_from(
    [
        *(
            "",
            "a.ttl",
            "a.ttl.acl",
            ".acl",
            ".meta",
            "a.ttl.meta",
            "a.ttl.acl.acl",
            "a.ttl.meta.acl",
        ),
        *(
            "b/",
            "b/.acl",
            "b/.meta",
            "b/c",
            "profile/card",
            "settings/",
            "public/x",
            "a.ttl/x",
            ".x",
        ),
    ]
)


@st.composite
def bent(draw: st.DrawFn, documents: tuple[str, ...]) -> str:
    """A document with a few places replaced, repeated or left out."""
    text = draw(st.sampled_from(documents))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 12))
        piece = draw(
            st.one_of(
                st.just(""),
                st.just(text[start:end] * 5),
                st.sampled_from(
                    [*"<>\"'[](){}.,;:@\\#?_&%", "\x00", "\ud800", "\udcff", "\\uD800"]
                ),
                st.sampled_from(
                    ["[" * 50, "(" * 50, '{"@graph":' * 50, "<http://a b>", "_:", "a:"]
                ),
                st.text(max_size=5),
            )
        )
        text = text[:start] + piece + text[end:]
    return text


ACL = """@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#o> a acl:Authorization; acl:agent <{owner}>; acl:accessTo <./>; acl:default <./>;
  acl:mode acl:Read, acl:Write, acl:Control.
<#g> a acl:Authorization; acl:agentGroup <http://127.0.0.1:1/g#g>, <g.ttl#g>; acl:accessTo <a.ttl>;
  acl:origin <https://a.example>, "x"; acl:mode acl:Append.
"""
bodies = st.one_of(
    bent((TURTLE, JSON_LD, N_TRIPLES, ACL)),
    st.binary(max_size=50).map(lambda b: b.decode("latin-1")),
)


@dataclass(frozen=True)
class Strange:
    """A request that is well framed."""

    method: str
    name: str
    content_type: str
    headers: dict[str, str]
    body: str | None

    def composed(self, pod: Pod) -> bytes:
        fields = {"Connection": "close", **self.headers}
        if self.method in {"PUT", "POST", "PATCH"}:
            fields.setdefault("Content-Type", self.content_type)
        body = None if self.body is None else self.body.replace("{owner}", pod.web_id)
        return composed(pod, self.method, self.name, fields, body)


strange_requests = st.builds(
    Strange,
    st.sampled_from(["GET", "HEAD", "OPTIONS", "PUT", "PUT", "PUT", "POST", "DELETE", "PATCH"]),
    names,
    types,
    headers,
    st.one_of(st.none(), bodies),
)


@EXAMPLES
@given(requests=st.lists(strange_requests, min_size=1, max_size=5))
def test_requests_with_strange_values(server: ServerProcess, requests: list[Strange]) -> None:
    pod = furnished_pod(server)
    for request in requests:
        with Wire(server) as wire:
            wire.send_what_is_taken(request.composed(pod))
            statuses = wire.receive_statuses()
            assert len(statuses) == 1
            check(statuses)
