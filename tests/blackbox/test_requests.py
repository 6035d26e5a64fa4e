"""The request line and header fields arrive exactly as sent, or the request is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from podstead.app.process.serve import MAX_HEADER_BYTES
from podstead.core.identifiers import MAX_TARGET_BYTES
from tests.blackbox.limited_server import Owner
from tests.support.server import ServerProcess
from tests.support.wire import Wire, compose

TEXT = {"Content-Type": "text/plain"}
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"


@pytest.fixture
def wire(server: ServerProcess) -> Iterator[Wire]:
    with Wire(server) as wire:
        yield wire


# --- Targets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("with_query", [False, True])
@pytest.mark.parametrize(("excess_bytes", "status"), [(0, 404), (1, 414)])
def test_targets_up_to_the_limit_are_taken(
    owner: Owner, excess_bytes: int, status: int, with_query: bool
) -> None:
    start = owner.root + ("a?" if with_query else "")
    target = start + "a" * (MAX_TARGET_BYTES - len(start) + excess_bytes)
    assert owner.exchange(owner.compose("GET", target)).status == status


def test_a_target_beyond_all_limits_is_refused(owner: Owner) -> None:
    answer = owner.exchange(owner.compose("GET", owner.root + "a" * 100_000))
    assert answer.status in {414, 431}


@pytest.mark.parametrize(
    ("sent", "canonical"),
    [
        ("a%2Fb", "a%2Fb"),
        ("a%2fb", "a%2Fb"),
        ("a%5Cb", "a%5Cb"),
        ("a\\b", "a%5Cb"),
        ("%61", "a"),
        ("caf%c3%a9", "caf%C3%A9"),
        ("%2Ehidden", ".hidden"),
        ("a%3Fb%23c", "a%3Fb%23c"),
        ("100%25", "100%25"),
        ("%252F", "%252F"),
        ("a+b", "a+b"),
        ("...", "..."),
    ],
)
def test_escapes_arrive_raw_and_are_made_canonical(owner: Owner, sent: str, canonical: str) -> None:
    """P-50: one name has one spelling, and an escaped slash is no slash."""
    created = owner.exchange(owner.compose("PUT", f"{owner.root}x/{sent}", TEXT, b"content"))
    assert created.status == 201
    path = f"{owner.root}x/{canonical}"
    assert created.headers["location"] == owner.server.base_url + path
    assert owner.client.members(f"{owner.root}x/") == {path}
    for spelling in (f"{owner.root}x/{sent}", path):
        assert owner.exchange(owner.compose("GET", spelling)).body == b"content"


@pytest.mark.parametrize(
    "rest",
    [
        *("./a", "../a", "a/.", "a/..", "a/./b", "a/../b", "../../../etc/passwd"),
        *("%2e/a", "%2E%2e/a", ".%2e/a", "%2e%2e%2fa/..", "a/%2E"),
        *("/a", "a//b", "a//"),
        *("a%00b", "a%0Ab", "%7F", "%C2%85"),
        *("a%", "a%2", "a%zz", "%u0061"),
        *("%ff", "%c3", "%ed%a0%80", "%c0%af"),
    ],
)
def test_targets_that_name_no_resource_are_refused(owner: Owner, rest: str) -> None:
    """P-50: dot segments, empty segments, control characters, bad escapes, bad UTF-8."""
    before = owner.client.members(owner.root)
    for method in ("PUT", "GET", "DELETE"):
        body = b"x" if method == "PUT" else None
        answer = owner.exchange(owner.compose(method, owner.root + rest, TEXT, body))
        assert answer.status == 400
    assert owner.client.members(owner.root) == before


@pytest.mark.parametrize("byte", [*b'<>"{}|^` ', 0x00, 0x09, 0x7F, 0x80, 0xC3, 0xFF])
def test_bytes_that_no_target_may_hold_are_refused(owner: Owner, byte: int) -> None:
    """RFC 3986; what a lenient reader may take for an escaped byte is stored as one."""
    target = owner.root.encode() + b"a" + bytes([byte]) + b"b"
    answer = owner.exchange(owner.compose("PUT", target, TEXT, b"x"))
    if answer.status == 201:
        assert answer.headers["location"].endswith(f"/a%{byte:02X}b")
    else:
        assert answer.status == 400


def test_query_and_fragment_are_not_part_of_the_name(owner: Owner) -> None:
    """P-51."""
    owner.exchange(owner.compose("PUT", f"{owner.root}a?b=c/d", TEXT, b"content"))
    assert owner.root + "a" in owner.client.members(owner.root)
    for target in ("a", "a?", "a?x", "a#f", "a?x#f"):
        assert owner.exchange(owner.compose("GET", owner.root + target)).body == b"content"


def test_a_target_may_be_an_absolute_url(owner: Owner) -> None:
    """RFC 9112 section 3.2.2."""
    owner.client.put(f"{owner.root}a%2Fb", "content")
    for scheme in ("http", "HTTP"):
        url = f"{scheme}://{owner.host}{owner.root}a%2Fb?query"
        assert owner.exchange(owner.compose("GET", url)).body == b"content"


@pytest.mark.parametrize("target", ["a", "*", "localhost:80", "?a", "http:", "http:/a", "http:///"])
def test_a_target_of_no_known_form_is_refused(owner: Owner, target: str) -> None:
    assert owner.exchange(owner.compose("GET", target)).status == 400


def test_the_server_as_a_whole_tells_its_methods(owner: Owner) -> None:
    """RFC 9110 section 9.3.7."""
    answer = owner.exchange(owner.compose("OPTIONS", "*"))
    assert (answer.status, answer.body) == (204, b"")
    methods = {"OPTIONS", "HEAD", "GET", "PUT", "PATCH", "POST", "DELETE", "COPY", "MOVE"}
    assert set(answer.headers["allow"].split(", ")) - {"QUERY"} == methods


# --- Host -------------------------------------------------------------------------------------


def test_the_host_must_be_given_once(owner: Owner) -> None:
    """RFC 9112 section 3.2."""
    for hosts in ([], [""], [owner.host, owner.host], [owner.host, "pods.example"]):
        lines = "".join(f"Host: {host}\r\n" for host in hosts)
        request = f"GET {owner.root} HTTP/1.1\r\n{lines}\r\n".encode()
        assert owner.exchange(request).status == 400


@pytest.mark.parametrize(
    "host", ["pods.example", "localhost", "localhost:1", "localhost:{port}.pods.example", "[::1"]
)
def test_another_host_is_misdirected(owner: Owner, host: str) -> None:
    """A-11."""
    request = compose("GET", owner.root, host=host.format(port=owner.server.port))
    assert owner.exchange(request).status == 421


@pytest.mark.parametrize("host", ["LocalHost:{port}", "127.0.0.1:{port}", "[::1]:{port}"])
def test_this_machine_has_several_names(owner: Owner, host: str) -> None:
    """A-11, A-190."""
    request = compose("GET", owner.root, host=host.format(port=owner.server.port))
    assert owner.exchange(request).status == 200


# --- Fields -----------------------------------------------------------------------------------


def test_headers_that_are_too_large_are_refused(owner: Owner, wire: Wire) -> None:
    wire.send_what_is_taken(owner.compose("GET", owner.root, {"X-Large": "a" * MAX_HEADER_BYTES}))
    assert wire.receive().status == 431
    wire.receive_end()


def test_headers_that_are_too_many_are_refused(owner: Owner, wire: Wire) -> None:
    wire.send_what_is_taken(owner.compose("GET", owner.root, {f"X-{n}": "a" for n in range(200)}))
    assert wire.receive().status == 431
    wire.receive_end()


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Type: text/plain\r\nContent-Type: text/plain",
        "Content-Type: text/plain\r\ncontent-type: text/turtle",
        "Content-Type: text/plain\r\nContent-Length: 1\r\nContent-Length: 2",
        "Content-Type: text/plain\r\nContent-Length: 1, 1",
        "Content-Type: text/plain\r\nContent-Length: +1",
        "Content-Type: text/plain\r\nContent-Length: -1",
        "Content-Type: text/plain\r\nContent-Length: 0x1",
        "Content-Type: text/plain\r\nContent-Length: 1.0",
        "Content-Type: text/plain\r\nContent-Length:",
        "Content-Type: text/plain\r\nContent-Length: " + "9" * 30,
        "Content-Type: text/plain\r\nTransfer-Encoding: gzip",
        "Content-Type: text/plain\r\nTransfer-Encoding: chunked, gzip",
        "Content-Type: text/plain\r\nTransfer-Encoding: xchunked",
        "Content-Type: text/plain\r\nTransfer-Encoding: gzip, chunked",
        "Content-Type: text/plain\r\n folded\r\nContent-Length: 1",
        "Content-Type : text/plain\r\nContent-Length: 1",
        "Content-Type: text/plain\r\nContent-Length: 1\r\nBad Name: x",
        "Content-Type: text/plain\r\nContent-Length: 1\r\nno colon",
        "Content-Type: text/plain\r\nContent-Length: 1\r\nX: a\x00b",
        "Content-Type: text/plain\x00\r\nContent-Length: 1",
        "Content-Type: text\r\nContent-Length: 1",
        "Content-Type: \r\nContent-Length: 1",
        "Content-Type: text/plain; charset\r\nContent-Length: 1",
        "Content-Type: text/plain\r\nContent-Length: 1\r\nIf-Match: unquoted",
        "Content-Type: text/plain\r\nContent-Length: 1\r\nOrigin: a\r\nOrigin: b",
    ],
)
def test_fields_that_contradict_themselves_are_refused(
    owner: Owner, wire: Wire, lines: str
) -> None:
    """Nothing is stored by a request that two readers could read in two ways."""
    target = f"{owner.root}doubtful"
    head = f"PUT {target} HTTP/1.1\r\nHost: {owner.host}\r\nAuthorization: Bearer {owner.pod.token}"
    wire.send_what_is_taken(f"{head}\r\n{lines}\r\n\r\nx".encode("latin-1"))
    answer = wire.receive_or_end()
    assert answer is None or answer.status == 400
    assert owner.client.get(target).status == 404


@pytest.mark.parametrize(
    "lines",
    [
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: Chunked,chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ],
)
def test_a_body_is_not_put_into_chunks_twice(owner: Owner, wire: Wire, lines: str) -> None:
    """RFC 9112 section 6.1: a proxy in front may have read other borders than we would."""
    target = f"{owner.root}chunked-twice"
    head = f"PUT {target} HTTP/1.1\r\nHost: {owner.host}\r\nAuthorization: Bearer {owner.pod.token}"
    body = "5\r\nhello\r\n0\r\n\r\n"
    wire.send_what_is_taken(
        f"{head}\r\nContent-Type: text/plain\r\n{lines}\r\n\r\n{body}".encode("latin-1")
    )
    assert wire.receive().status == 400
    assert owner.client.get(target).status == 404


@pytest.mark.parametrize("excess_bytes", [-5, 0, 1000])
def test_where_lengths_and_chunks_differ_nothing_is_smuggled(
    owner: Owner, wire: Wire, excess_bytes: int
) -> None:
    """RFC 9112 section 6.1: refused, or read as chunks, and the connection closed either way."""
    smuggled = owner.compose("PUT", f"{owner.root}smuggled", TEXT, b"x")
    headers = {**TEXT, "Transfer-Encoding": "chunked"}
    length = len(CHUNKS) + len(smuggled) + excess_bytes
    wire.send(owner.compose("PUT", f"{owner.root}outer", headers, content_length=length))
    wire.send_what_is_taken(CHUNKS + smuggled)
    [answer] = wire.receive_all()
    assert answer.status in {201, 400}
    outer = owner.client.get(f"{owner.root}outer")
    assert outer.body == b"hello" if answer.status == 201 else outer.status == 404
    assert owner.client.get(f"{owner.root}smuggled").status == 404


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_older_ways_to_speak_are_understood_or_refused(
    owner: Owner, wire: Wire, version: str, ending: str
) -> None:
    lines = (f"GET {owner.root} HTTP/{version}", f"Host: {owner.host}", "Connection: close", "", "")
    wire.send(ending.join(lines).encode())
    line = wire.receive_bytes(12)
    assert line in {f"HTTP/{version} 200".encode(), b"HTTP/1.1 400"}


@pytest.mark.parametrize(
    "value",
    ["Bearer", "Bearer ", "Bearer \xff", "Bearer a.b", "Basic YTpi", "\xe9", ",", "Bearer a b"],
)
def test_a_credential_that_is_none_is_refused_on_public_resources_too(
    owner: Owner, value: str
) -> None:
    """A-5, P-3."""
    request = compose("GET", owner.root, {"Authorization": value}, host=owner.host)
    answer = owner.exchange(request)
    assert answer.status == 401
    assert answer.headers["www-authenticate"]


# --- Methods ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "statuses"),
    [
        ("TRACE", {405}),
        ("CONNECT", {400, 405}),
        ("get", {501}),
        ("Put", {501}),
        ("MKCOL", {501}),
        ("PROPFIND", {501}),
        ("X-ANY'THING", {501}),
        ("PRI", {400, 501}),
        ("GET\x00", {400}),
        ("G(T", {400}),
        ("", {400}),
    ],
)
def test_methods_that_are_not_ours_are_refused(
    owner: Owner, wire: Wire, method: str, statuses: set[int]
) -> None:
    """P-9: also those that only differ in case, since methods are case-sensitive."""
    target = f"{owner.root}target"
    wire.send_what_is_taken(owner.compose(method, target, TEXT, b"x"))
    answer = wire.receive()
    assert answer.status in statuses
    assert answer.status != 405 or "GET" in answer.headers["allow"]
    assert owner.client.get(target).status == 404


@pytest.mark.parametrize("name", ["", "a.txt", "a.ttl", "missing", "a.ttl.acl", "missing/"])
@pytest.mark.parametrize("credential", [True, False])
def test_head_is_get_without_the_body(
    owner: Owner, wire: Wire, name: str, credential: bool
) -> None:
    """P-15."""
    owner.client.put(f"{owner.root}a.txt", "x" * 100_000)
    owner.client.put(f"{owner.root}a.ttl", "<> a <#Thing>.", "text/turtle")
    host = owner.host
    headers: dict[str, str] = {"Origin": "https://app.example"}
    if credential:
        headers["Authorization"] = f"Bearer {owner.pod.token}"
    for method in ("HEAD", "GET"):  # on one connection: a body after HEAD would be taken for GET's
        wire.send(compose(method, owner.root + name, headers, host=host))
    head, get = wire.receive("HEAD"), wire.receive("GET")
    assert (head.status, lasting(head.headers)) == (get.status, lasting(get.headers))


def lasting(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers without the time, and without what HEAD may leave out (RFC 9110 section 9.3.2)."""
    left_out = {"date", "content-length", "transfer-encoding"}
    return {name: value for name, value in headers.items() if name not in left_out}


# --- Connections ------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_their_order(owner: Owner, wire: Wire) -> None:
    """RFC 9112 section 9.3.2."""
    target = f"{owner.root}piped"
    requests = [
        ("GET", None, 404),
        ("PUT", b"one", 201),
        ("GET", None, 200),
        ("PUT", b"two", 204),
        ("HEAD", None, 200),
        ("GET", None, 200),
        ("DELETE", None, 204),
        ("GET", None, 404),
    ]
    wire.send(b"".join(owner.compose(method, target, TEXT, body) for method, body, _ in requests))
    answers = [wire.receive(method) for method, _, _ in requests]
    assert [answer.status for answer in answers] == [status for _, _, status in requests]
    assert (answers[2].body, answers[5].body) == (b"one", b"two")


def test_a_connection_serves_agents_one_after_the_other(owner: Owner, wire: Wire) -> None:
    """What one request proved says nothing about the next."""
    target = f"{owner.root}private/"
    for _ in range(3):
        wire.send(owner.compose("GET", target), compose("GET", target, host=owner.host))
        assert [wire.receive().status, wire.receive().status] == [200, 401]


def test_a_connection_is_closed_when_the_client_requests_it(owner: Owner, wire: Wire) -> None:
    wire.send(owner.compose("GET", owner.root, {"Connection": "close"}))
    assert wire.receive().status == 200
    wire.receive_end()


@pytest.mark.parametrize(
    "data", [b"\x00" * 100, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"SSH-2.0-x\r\n", b"\r\n" * 10]
)
def test_anything_but_http_gets_an_error_or_nothing(owner: Owner, wire: Wire, data: bytes) -> None:
    wire.send_what_is_taken(data)
    wire.end_sending()
    assert {answer.status for answer in wire.receive_all()} <= {400}
