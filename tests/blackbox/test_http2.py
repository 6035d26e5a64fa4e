"""HTTP/2 without TLS, by prior knowledge: the same resources by another framing (P-1, P-7)."""

from __future__ import annotations

import gzip
import subprocess

import pytest

from tests.blackbox.limited_server import LARGE_BYTES, MAX_BODY_BYTES, Owner
from tests.support.curl import CurlAnswer, curl, curl_command, sending
from tests.support.server import DEADLINE_S

pytestmark = pytest.mark.needs("curl")

TEXT = sending("text/plain")
TURTLE = sending("text/turtle")


def over_http2(
    owner: Owner, target: str, *options: str, sent: bytes | None = None, credential: bool = True
) -> CurlAnswer:
    answer = curl(*arguments(owner, target, *options, credential=credential), sent=sent)
    assert answer.http_version == "2"
    return answer


def arguments(owner: Owner, target: str, *options: str, credential: bool = True) -> list[str]:
    who = ["--header", f"Authorization: Bearer {owner.pod.token}"] if credential else []
    url = owner.server.base_url + target
    return ["--http2-prior-knowledge", "--path-as-is", *who, *options, url]


def test_what_is_put_can_be_got_by_either_version(owner: Owner) -> None:
    target = f"{owner.root}a%2Fb.txt"
    put = over_http2(owner, target, "--request", "PUT", *TEXT, "--data-binary", "hello")
    assert put.status == 201
    assert over_http2(owner, target).body == b"hello"
    assert owner.client.get(target).text == "hello"
    assert over_http2(owner, target, "--head").status == 200
    assert over_http2(owner, target, "--request", "DELETE").status == 204
    assert over_http2(owner, target).status == 404


def test_curl_gets_the_same_content_compressed(owner: Owner) -> None:
    target, content = f"{owner.root}text.txt", "a line of text\n" * 1000
    over_http2(owner, target, "--request", "PUT", *TEXT, "--data-binary", content)
    assert over_http2(owner, target, "--compressed").body.decode() == content
    raw = over_http2(owner, target, "--header", "Accept-Encoding: gzip").body
    assert gzip.decompress(raw).decode() == content
    assert len(raw) < len(content) / 10


@pytest.mark.parametrize("size_bytes", [0, 1, 65_535, LARGE_BYTES, MAX_BODY_BYTES])
def test_an_upload_needs_no_length(owner: Owner, size_bytes: int) -> None:
    """P-7: a body of unknown length just ends."""
    target = f"{owner.root}streamed.bin"
    body = b"x" * size_bytes
    assert over_http2(owner, target, *TEXT, "--upload-file", "-", sent=body).status == 201
    assert over_http2(owner, target).body == body


@pytest.mark.parametrize("name", ["document.ttl", "container/"])
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_write_needs_no_body(owner: Owner, name: str, method: str) -> None:
    """P-7."""
    target = owner.root if method == "POST" else owner.root + name
    assert over_http2(owner, target, "--request", method, *TURTLE).status == 201


def test_a_container_needs_no_type_without_a_body(owner: Owner) -> None:
    """C-9: whether there is a body shows only when its end has come."""
    assert over_http2(owner, f"{owner.root}empty/", "--request", "PUT").status == 201
    body = ("--upload-file", "-", "--header", "Content-Type:")
    assert over_http2(owner, f"{owner.root}full/", *body, sent=b"<> a <#X>.").status == 400
    assert owner.client.get(f"{owner.root}full/").status == 404


def test_a_body_over_the_limit_is_refused(owner: Owner) -> None:
    """P-54: with a length, and without one."""
    target = f"{owner.root}overfull"
    body = b"x" * (MAX_BODY_BYTES + 1)
    streamed = over_http2(owner, target, *TEXT, "--upload-file", "-", sent=body)
    announced = over_http2(
        *(owner, target, "--request", "PUT", *TEXT, "--data-binary", "@-"), sent=body
    )
    assert (streamed.status, announced.status) == (413, 413)
    assert owner.client.get(target).status == 404
    owner.wait_until_no_draft_is_left()


def test_agents_without_write_access_get_an_error(owner: Owner) -> None:
    target = f"{owner.root}private/new"
    body = ("--request", "PUT", *TEXT, "--data-binary", "x")
    assert over_http2(owner, target, *body, credential=False).status == 401


def test_an_upload_that_is_cut_off_leaves_nothing(owner: Owner) -> None:
    """P-54."""
    target = f"{owner.root}cut.bin"
    command = [*curl_command(), *arguments(owner, target, *TEXT, "--upload-file", "-")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as upload:
        assert upload.stdin is not None
        upload.stdin.write(b"x" * LARGE_BYTES)
        upload.stdin.flush()
        owner.wait_until_a_draft_is_there()
        upload.kill()
        upload.wait(DEADLINE_S)
    owner.wait_until_no_draft_is_left()
    assert owner.client.get(target).status == 404
    assert target not in owner.client.members(owner.root)


@pytest.mark.parametrize(
    ("rest", "status"),
    [("../", 400), ("%2e%2e/", 400), ("a//b", 400), ("a%00", 400), ("a%2F", 404)],
)
def test_targets_are_judged_as_they_were_sent(owner: Owner, rest: str, status: int) -> None:
    """P-50."""
    assert over_http2(owner, owner.root + rest).status == status


def test_the_server_as_a_whole_tells_its_methods(owner: Owner) -> None:
    """RFC 9110 section 9.3.7, RFC 9113 section 8.3.1."""
    answer = over_http2(owner, "", "--request", "OPTIONS", "--request-target", "*")
    assert answer.status == 204


def test_another_host_is_misdirected(owner: Owner) -> None:
    """A-11."""
    assert over_http2(owner, owner.root, "--header", "Host: pods.example").status == 421
