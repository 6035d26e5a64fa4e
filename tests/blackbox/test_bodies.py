"""A body is stored completely or not at all, however it is transferred (P-7, P-54)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.blackbox.limited_server import LARGE_BYTES, MAX_BODY_BYTES, MAX_RDF_BYTES, Owner
from tests.support.server import ServerProcess
from tests.support.wire import Wire, WireAnswer, compose

TEXT = {"Content-Type": "text/plain"}
CHUNKED = {**TEXT, "Transfer-Encoding": "chunked"}
TURTLE = {"Content-Type": "text/turtle"}
Nothing = Callable[[str], None]


@pytest.fixture
def wire(server: ServerProcess) -> Iterator[Wire]:
    with Wire(server) as wire:
        yield wire


def chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def refused_or_closed(wire: Wire, status: int) -> None:
    """The request comes to nothing, and the connection with it."""
    answer = wire.receive_or_end()
    assert answer is None or answer.status == status
    wire.receive_end()


# --- Bodies that are cut off ------------------------------------------------------------------


@pytest.mark.parametrize("sent_bytes", [0, 1, 999, LARGE_BYTES])
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_body_shorter_than_its_content_length_leaves_nothing(
    owner: Owner, wire: Wire, leaves_nothing: Nothing, method: str, sent_bytes: int
) -> None:
    target = owner.root if method == "POST" else f"{owner.root}cut.txt"
    wire.send(owner.compose(method, target, TEXT, content_length=sent_bytes + 1))
    wire.send(b"x" * sent_bytes)
    wire.end_sending()
    refused_or_closed(wire, 400)
    leaves_nothing(f"{owner.root}cut.txt")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"5\r\nhel",
        chunks(b"hello"),
        chunks(b"hello", b"x" * LARGE_BYTES),
        chunks(b"hello") + b"0\r\n",
    ],
    ids=["nothing", "in a chunk", "after a chunk", "after a large chunk", "in the last chunk"],
)
def test_chunks_without_their_end_leave_nothing(
    owner: Owner, wire: Wire, leaves_nothing: Nothing, sent: bytes
) -> None:
    wire.send(owner.compose("PUT", f"{owner.root}cut.txt", CHUNKED), sent)
    wire.end_sending()
    refused_or_closed(wire, 400)
    leaves_nothing(f"{owner.root}cut.txt")


@pytest.mark.parametrize("sent", [b"x\r\n", b"-1\r\n", b"5\r\nhello0\r\n\r\n", b"f" * 17 + b"\r\n"])
def test_malformed_chunks_leave_nothing(
    owner: Owner, wire: Wire, leaves_nothing: Nothing, sent: bytes
) -> None:
    wire.send(owner.compose("PUT", f"{owner.root}bad.txt", CHUNKED))
    wire.send_what_is_taken(chunks(b"fine") + sent)
    refused_or_closed(wire, 400)
    leaves_nothing(f"{owner.root}bad.txt")


@pytest.mark.parametrize("sent_bytes", [10, LARGE_BYTES])
def test_a_replacement_that_is_cut_off_changes_nothing(
    owner: Owner, wire: Wire, sent_bytes: int
) -> None:
    target = f"{owner.root}kept.txt"
    etag = owner.client.put(target, "kept").headers["etag"]
    wire.send(owner.compose("PUT", target, TEXT, content_length=sent_bytes + 1))
    wire.send(b"x" * sent_bytes)
    wire.end_sending()
    refused_or_closed(wire, 400)
    kept = owner.client.get(target)
    assert (kept.text, kept.headers["etag"]) == ("kept", etag)


def test_a_client_that_vanishes_in_its_upload_leaves_nothing(
    owner: Owner, leaves_nothing: Nothing
) -> None:
    with Wire(owner.server) as wire:
        target = f"{owner.root}gone.bin"
        wire.send(owner.compose("PUT", target, TEXT, content_length=MAX_BODY_BYTES))
        wire.send(b"x" * LARGE_BYTES)
        owner.wait_until_a_draft_is_there()
        wire.reset()
    owner.wait_until_no_draft_is_left()
    leaves_nothing(f"{owner.root}gone.bin")


# --- Bodies that stop arriving ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "sent_bytes"), [(TEXT, 0), (TEXT, 10), (TEXT, LARGE_BYTES), (TURTLE, 10)]
)
def test_a_body_that_stops_arriving_is_given_up(
    owner: Owner,
    wire: Wire,
    leaves_nothing: Nothing,
    headers: dict[str, str],
    sent_bytes: int,
) -> None:
    wire.send(owner.compose("PUT", f"{owner.root}slow", headers, content_length=sent_bytes + 1))
    wire.send(b" " * sent_bytes)
    refused_or_closed(wire, 408)
    leaves_nothing(f"{owner.root}slow")


def test_chunks_that_stop_arriving_are_given_up(
    owner: Owner, wire: Wire, leaves_nothing: Nothing
) -> None:
    wire.send(owner.compose("PUT", f"{owner.root}slow", CHUNKED), chunks(b"hello"))
    refused_or_closed(wire, 408)
    leaves_nothing(f"{owner.root}slow")


def test_a_body_may_come_slowly_as_long_as_it_comes(owner: Owner, wire: Wire) -> None:
    """Byte by byte: what counts is the pause, not the whole time."""
    target = f"{owner.root}steady.txt"
    request = owner.compose("PUT", target, TEXT, b"steady")
    wire.send(*(request[index : index + 1] for index in range(len(request))))
    assert wire.receive("PUT").status == 201
    assert owner.client.get(target).text == "steady"


@pytest.mark.parametrize("headers", [TEXT, TURTLE])
def test_a_body_that_drips_is_given_up_and_its_connection_closed(
    owner: Owner, wire: Wire, leaves_nothing: Nothing, headers: dict[str, str]
) -> None:
    """No pause is as long as a body may stop; together they are."""
    wire.send(owner.compose("PUT", f"{owner.root}drip", headers, content_length=20_000))
    wire.drip(b" ", every_s=0.2)
    answer = wire.receive("PUT")
    assert answer.status == 408
    assert b"100 bytes per second" in answer.body
    wire.drip(b" ", every_s=0.2)
    wire.receive_end()
    leaves_nothing(f"{owner.root}drip")


# --- Bodies that are too large ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "limit_bytes"), [(TEXT, MAX_BODY_BYTES), (TURTLE, MAX_RDF_BYTES)]
)
@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_a_body_up_to_the_limit_is_stored(
    owner: Owner, headers: dict[str, str], limit_bytes: int, chunked: bool
) -> None:
    target = f"{owner.root}full"
    answer = owner.exchange(sized(owner, target, headers, limit_bytes, chunked=chunked))
    assert answer.status == 201
    assert owner.client.get(target).body == b" " * limit_bytes


@pytest.mark.parametrize(
    ("headers", "limit_bytes"), [(TEXT, MAX_BODY_BYTES), (TURTLE, MAX_RDF_BYTES)]
)
@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_a_body_over_the_limit_is_refused_and_leaves_nothing(
    owner: Owner,
    leaves_nothing: Nothing,
    headers: dict[str, str],
    limit_bytes: int,
    chunked: bool,
) -> None:
    target = f"{owner.root}overfull"
    answer = owner.exchange(sized(owner, target, headers, limit_bytes + 1, chunked=chunked))
    assert answer.status == 413
    assert str(limit_bytes).encode() in answer.body
    leaves_nothing(target)


def sized(
    owner: Owner, target: str, headers: dict[str, str], size_bytes: int, *, chunked: bool
) -> bytes:
    """A PUT of so many spaces, which are a Turtle document too."""
    if not chunked:
        return owner.compose("PUT", target, headers, b" " * size_bytes)
    fields = {**headers, "Transfer-Encoding": "chunked"}
    halves = (b" " * (size_bytes // 2), b" " * (size_bytes - size_bytes // 2))
    return owner.compose("PUT", target, fields) + chunks(*halves) + b"0\r\n\r\n"


def test_a_body_that_announces_too_much_is_refused_before_it_is_sent(
    owner: Owner, wire: Wire, leaves_nothing: Nothing
) -> None:
    target = f"{owner.root}announced"
    wire.send(owner.compose("PUT", target, TEXT, content_length=10**15))
    assert wire.receive().status == 413
    leaves_nothing(target)


def test_the_api_takes_small_bodies_only(owner: Owner) -> None:
    headers = {"Content-Type": "application/json"}
    body = b'{"name": "small"}'
    padding = b" " * (64 * 1024 - len(body))
    assert (
        owner.exchange(owner.compose("POST", "/.pods", headers, body + padding + b" ")).status
        == 413
    )
    assert owner.exchange(owner.compose("POST", "/.pods", headers, body + padding)).status == 201


# --- Bodies that wait to be asked for ---------------------------------------------------------


def test_a_client_gets_100_continue_if_its_body_may_be_sent(owner: Owner, wire: Wire) -> None:
    target = f"{owner.root}asked.txt"
    wire.send(owner.compose("PUT", target, {**TEXT, "Expect": "100-continue"}, content_length=5))
    assert wire.receive().status == 100
    wire.send(b"hello")
    assert wire.receive().status == 201
    assert owner.client.get(target).text == "hello"


@pytest.mark.parametrize(
    ("authorization", "headers", "content_length", "status"),
    [
        (None, TEXT, 5, 401),
        ("Bearer wrong", TEXT, 5, 401),
        ("owner", {}, 5, 400),
        ("owner", {**TEXT, "If-Match": '"other"'}, 5, 412),
        ("owner", TEXT, MAX_BODY_BYTES + 1, 413),
    ],
    ids=["nobody", "bad credential", "no type", "condition fails", "too large"],
)
def test_a_client_gets_no_100_continue_if_its_body_would_be_refused(
    owner: Owner,
    wire: Wire,
    leaves_nothing: Nothing,
    authorization: str | None,
    headers: dict[str, str],
    content_length: int,
    status: int,
) -> None:
    """P-54: `Expect: 100-continue` is answered after authorization."""
    fields = {**headers, "Expect": "100-continue"}
    if authorization is not None:
        credential = f"Bearer {owner.pod.token}" if authorization == "owner" else authorization
        fields["Authorization"] = credential
    target = f"{owner.root}unasked"
    wire.send(compose("PUT", target, fields, host=owner.host, content_length=content_length))
    answer = wire.receive()
    assert answer.status == status
    # The client may send the body now or never, so no further request can be told from it.
    wire.receive_end()
    leaves_nothing(target)


# --- No body at all ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["document.ttl", "container/"])
@pytest.mark.parametrize("headers", [{}, {"Content-Length": "0"}], ids=["no length", "length 0"])
def test_a_put_needs_no_body(owner: Owner, name: str, headers: dict[str, str]) -> None:
    """P-7: never 411."""
    target = f"{owner.root}{name}"
    assert owner.exchange(owner.compose("PUT", target, {**TURTLE, **headers})).status == 201
    assert owner.client.get(target).status == 200


def test_a_post_needs_no_body(owner: Owner) -> None:
    """P-7."""
    answer = owner.exchange(owner.compose("POST", owner.root, TURTLE))
    assert answer.status == 201
    assert owner.client.get(path_of(answer)).body == b""


def path_of(answer: WireAnswer) -> str:
    return "/" + answer.headers["location"].partition("://")[2].partition("/")[2]


# --- Answers that come before the body --------------------------------------------------------


@pytest.mark.parametrize("size_bytes", [10, LARGE_BYTES])
def test_an_early_answer_does_not_cost_the_connection(
    owner: Owner, wire: Wire, size_bytes: int
) -> None:
    """A client that is still sending when it is refused can read why, and go on."""
    target = f"{owner.root}early"
    wire.send(compose("PUT", target, TEXT, host=owner.host, content_length=size_bytes))
    answer = wire.receive()
    assert (answer.status, answer.closes) == (401, False)
    wire.send(b"x" * size_bytes, owner.compose("GET", target))
    assert wire.receive().status == 404


def test_a_refused_body_is_never_taken_for_a_request(
    owner: Owner, wire: Wire, leaves_nothing: Nothing
) -> None:
    """Else whoever may choose a body could make requests in another's name."""
    smuggled = owner.compose("PUT", f"{owner.root}smuggled", TEXT, b"x")
    wire.send(compose("PUT", f"{owner.root}outer", TEXT, smuggled, host=owner.host))
    wire.send_what_is_taken(owner.compose("GET", f"{owner.root}after"))
    answers = [wire.receive()]
    if not answers[0].closes:
        answers.append(wire.receive())
    assert [answer.status for answer in answers] == [401, 404][: len(answers)]
    leaves_nothing(f"{owner.root}smuggled")


def test_the_body_of_a_get_is_left_out_of_account(owner: Owner, wire: Wire) -> None:
    wire.send(owner.compose("GET", owner.root, body=b"DELETE / HTTP/1.1\r\n\r\n"))
    wire.send(owner.compose("GET", f"{owner.root}missing"))
    assert [wire.receive().status, wire.receive().status] == [200, 404]
