"""No header that anybody can send makes a parser crash, or the server answer with a 5xx."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podstead.app.adapters.keys import ensure_token_key
from podstead.app.services import build_application
from podstead.authn.credentials import UnverifiedBearer, read_credential
from podstead.config import Settings
from podstead.core.errors import BadRequest, HeadersTooLarge, NotAuthenticated
from podstead.core.media_types import MediaType, parse_media_type
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from podstead.web.asgi import HeaderFields
from podstead.web.cors import cors_headers
from tests.support.asgi import Answer, Client
from tests.support.nostr import NostrKey, packed

values = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=40)
"""What may stand in a field on the wire, decoded byte by byte."""

tokens = st.text("!#$%&'*+-.^_`|~09azAZ", min_size=1, max_size=8)


# --- parsers -----------------------------------------------------------------------------------


@given(st.lists(values.map(str.encode), max_size=3))
@example([b"Bearer a, Nostr b"])
@example([b"Bearer " + b"a" * 20_000])
def test_authorization_is_a_credential_or_refused(sent: list[bytes]) -> None:
    """A-3, A-6."""
    try:
        credential = read_credential(sent)
    except (BadRequest, HeadersTooLarge, NotAuthenticated):
        assert sent
        return
    assert (credential is None) is (not sent)


@given(st.sampled_from(["Bearer", "bearer", "BEARER", "bEaReR"]), st.integers(1, 5), tokens)
def test_a_bearer_token_is_read_whole(scheme: str, blanks: int, token: str) -> None:
    """RFC 6750 section 2.1, A-3."""
    token = "".join(filter(lambda c: c.isalnum() or c in "-._~+", token)) or "x"
    credential = read_credential([f"{scheme}{' ' * blanks}{token}".encode()])
    assert credential == UnverifiedBearer(token)


@given(st.from_regex(r"[A-Za-z]{1,9}", fullmatch=True), tokens)
def test_no_other_scheme_is_a_credential(scheme: str, credential: str) -> None:
    if scheme.lower() in {"bearer", "nostr"}:
        return
    with pytest.raises(NotAuthenticated):
        read_credential([f"{scheme} {credential}".encode()])


@given(values | st.text('a/b;=" \\,', max_size=30))
def test_a_content_type_is_a_media_type_or_refused(sent: str) -> None:
    try:
        media_type = parse_media_type(sent)
    except BadRequest:
        return
    assert parse_media_type(str(media_type)) == media_type


parameters = st.lists(
    st.tuples(
        tokens.map(str.lower),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=10),
    ),
    max_size=3,
)


@given(tokens, tokens, parameters)
def test_a_media_type_is_read_as_it_was_written(
    type_: str, subtype: str, given_parameters: list[tuple[str, str]]
) -> None:
    """RFC 9110 section 8.3.1."""
    written = MediaType(f"{type_}/{subtype}".lower(), tuple(given_parameters))
    assert parse_media_type(str(written)) == written


@given(st.lists(st.tuples(st.sampled_from(["accept", "link", "if-match", "x"]), values)))
def test_fields_of_one_name_are_joined_in_order(sent: list[tuple[str, str]]) -> None:
    """RFC 9110 section 5.3."""
    fields = HeaderFields((name.encode(), value.encode("latin-1")) for name, value in sent)
    for name in ("accept", "link", "if-match", "x", "other"):
        expected = [value for other, value in sent if other == name]
        assert fields.get(name.encode()) == (", ".join(expected) if expected else None)


@given(st.none() | values.map(str.encode), st.none() | values.map(str.encode), st.booleans())
def test_cors_repeats_exactly_the_requested_values(
    origin: bytes | None, requested: bytes | None, preflight: bool
) -> None:
    """P-39, P-41."""
    headers = dict(cors_headers(origin, requested, preflight=preflight))
    assert headers.get(b"access-control-allow-origin") == origin
    if origin is not None and requested:
        assert headers[b"access-control-allow-headers"] == requested


# --- the whole server --------------------------------------------------------------------------

TURTLE = "text/turtle"
INTERESTING = {
    "Accept": ["*/*", "text/turtle;q=", "text/*;q=0, */*", ",,;", "application/ld+json"],
    "Accept-Encoding": ["gzip", "*;q=0"],
    "Access-Control-Request-Headers": ["X-A, x-b", ""],
    "Authorization": ["Bearer x.y", "Basic YTpi", "Nostr e30=", "Basic bm9zdHI6ZTMwPQ==", ""],
    "Content-Type": [TURTLE, "text/n3", "application/sparql-update", "text/plain", "x", "a/b;c"],
    "Content-Length": ["0", "5", "-1", "1e3", "99999999999999999999"],
    "Expect": ["100-continue"],
    "Host": ["localhost:3000", "localhost", "[::1]:3000"],
    "If-Match": ["*", '"x"', 'W/"x"', "x", '"'],
    "If-None-Match": ["*", '"x", "y"', "x"],
    "If-Modified-Since": ["Sun, 06 Nov 1994 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "0"],
    "If-Unmodified-Since": ["Sun, 06 Nov 2094 08:49:37 GMT", "x"],
    "If-Range": ['"x"', "Sun, 06 Nov 1994 08:49:37 GMT"],
    "Link": ['<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"', "<", '<x>; rel="'],
    "Origin": ["https://app.example", "null", "x"],
    "Range": ["bytes=0-1", "bytes=-0", "bytes=5-1", "bytes=0-1,3-", "x=1-2"],
    "Slug": ["name", "%2e%2e", "a/b", "x.acl", "%00", "\xff", " "],
    "Transfer-Encoding": ["chunked"],
    "X-Forwarded-For": ["1.2.3.4", ","],
    "X-Forwarded-Host": ["evil.example"],
}
TARGETS = [
    "/", "/.pods", "/idp/", "/alice", "/alice/", "/alice/.acl", "/alice/.meta", "/alice/doc",
    "/alice/doc.acl", "/alice/doc.meta", "/alice/doc/", "/alice/missing", "/alice/missing/",
    "/alice/c/", "/alice/.well-known/solid", "/nobody/", "/alice/doc?x=y",
]  # fmt: skip
BODIES = [None, b"", b"<#a> <#b> <#c>.", b"INSERT DATA { <#a> <#b> 1 }", b"\xff{", b"{}"]

single = st.sampled_from(sorted(INTERESTING)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(INTERESTING[name]) | values)
)
Asked = tuple[str, str, Sequence[tuple[str, str]], bytes | None]
asked = st.tuples(
    st.sampled_from(["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE", "X"]),
    st.sampled_from(TARGETS) | values.map(lambda text: f"/alice/{text}"),
    st.lists(single, max_size=6),
    st.sampled_from(BODIES),
)


class Running:
    """A server in an event loop of its own, for tests that are no coroutines."""

    def __init__(self, root: Path) -> None:
        settings = Settings(root=root, base_url="http://localhost:3000", pod_creations_per_hour=0,
                            invalid_credentials_per_minute=0)  # fmt: skip
        ensure_token_key(KeyFiles(prepare_root(root).keys))
        self._application = build_application(settings)
        self._loop = asyncio.Runner()
        self._loop.run(self._live(self._application.lifespan.start))
        self.public = Client(self._application, host="localhost:3000")
        made = self._loop.run(self.public.post("/.pods", '{"name": "alice"}', "application/json"))
        self.alice = self.public.with_token(made.json()["token"])

    def ask(self, client: Client, request: Asked) -> Answer:
        method, target, headers, body = request
        return self._loop.run(client.request(method, target, headers=headers, body=body))

    def close(self) -> None:
        self._loop.run(self._live(self._application.lifespan.stop))
        self._loop.close()

    @staticmethod
    async def _live(step: Callable[[], Awaitable[None]]) -> None:
        await step()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("headers") / "root")
    yield running
    running.close()


@given(request=asked, by_owner=st.booleans())
def test_no_request_is_answered_with_trouble(
    running: Running, request: Asked, by_owner: bool
) -> None:
    """Never a 5xx for bad input; and every answer is one that can be sent."""
    answer = running.ask(running.alice if by_owner else running.public, request)
    assert 200 <= answer.status < 500 or (answer.status == 501 and request[0] == "X")
    for name, value in answer.headers:
        assert name == name.lower()
        assert not set("\r\n\0") & set(name + value)
    length = answer.header("content-length")
    if length is not None and request[0] != "HEAD":
        assert int(length) == len(answer.body)
    if request[0] == "HEAD" or answer.status in (204, 304):
        assert answer.body == b""
    assert "Traceback" not in answer.body.decode("latin-1")


# --- signed requests ---------------------------------------------------------------------------

KEY = NostrKey.of(21)
rubbish = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)
names = st.sampled_from(["id", "pubkey", "created_at", "kind", "tags", "content", "sig", "other"])
tags = st.lists(
    st.lists(st.sampled_from(["u", "method", "payload", "GET", "*"]) | rubbish, max_size=3),
    max_size=4,
)


@pytest.mark.feature("nostr")
@given(
    changes=st.dictionaries(names, rubbish | tags, min_size=1, max_size=2),
    signed=st.booleans(),
    cut=st.integers(0, 3),
    as_password=st.booleans(),
)
def test_whatever_an_event_says_it_opens_or_is_refused(
    running: Running, changes: dict[str, object], signed: bool, cut: int, as_password: bool
) -> None:
    """Also one that its key has signed."""
    event = KEY.event("GET", "http://localhost:3000/alice/", int(time.time()))
    right = {**event, **changes} == event
    event |= changes
    if signed:
        event |= KEY.signed(event)
    text = packed(event)[: -cut or None]
    if as_password:
        text = base64.b64encode(f"nostr:{text}".encode()).decode()
    value = f"{'Basic' if as_password else 'Nostr'} {text}"
    answer = running.ask(running.public, ("GET", "/alice/", [("Authorization", value)], None))
    assert answer.status in {200, 400, 401, 431}
    understood = {"content", "other", *(("id", "sig") if signed else ())}
    if answer.status == 200:
        assert right or changes.keys() <= understood, "a member that counts was another"
