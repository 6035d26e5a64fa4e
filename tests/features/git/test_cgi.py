"""What http-backend gets (RFC 3875 section 4.1), and how its responses are read (6.3)."""

from __future__ import annotations

import pytest

from podstead.core.errors import BadRequest, ServerTrouble, UnsupportedMediaType
from podstead.core.identifiers import ResourcePath
from podstead.features.git.configuration import SETTINGS, environment
from podstead.features.git.protocol import GitRequest, Head, Service, Transfer, read_head, variables
from podstead.features.git.repositories import first_branch

FETCH = GitRequest(ResourcePath("/a/"), Service.UPLOAD_PACK, advertises=True)
PUSH = GitRequest(ResourcePath("/a/"), Service.RECEIVE_PACK, advertises=False)
PUSHED = "application/x-git-receive-pack-request"


def test_a_request_becomes_variables() -> None:
    pushed = Transfer(PUSHED, protocol="version=2", size_bytes=7)
    said = variables(
        PUSH, pushed, directory="/root/git/1.git", agent="did:nostr:1", client_address="192.0.2.1"
    )
    assert said == {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REQUEST_METHOD": "POST",
        "QUERY_STRING": "",
        "GIT_PROJECT_ROOT": "/root/git",
        "PATH_INFO": "/1.git/git-receive-pack",
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": "version=2",
        "REMOTE_USER": "did:nostr:1",
        "REMOTE_ADDR": "192.0.2.1",
        "CONTENT_TYPE": PUSHED,
        "CONTENT_LENGTH": "7",
    }


def test_compressed_content_comes_inflated_and_without_its_length() -> None:
    said = variables(
        PUSH,
        Transfer(PUSHED, content_coding="gzip", size_bytes=7),
        directory="/g/1.git",
        agent=None,
        client_address="::1",
    )
    assert not said.keys() & {"CONTENT_LENGTH", "HTTP_CONTENT_ENCODING"}


def test_unknown_values_are_omitted() -> None:
    """Without a length, content is read to its end."""
    said = variables(PUSH, Transfer(PUSHED), directory="/g/1.git", agent=None, client_address="::1")
    absent = ("CONTENT_LENGTH", "HTTP_CONTENT_ENCODING", "GIT_PROTOCOL", "REMOTE_USER")
    assert not said.keys() & set(absent)


def test_a_question_has_a_query_and_no_content() -> None:
    said = variables(
        FETCH,
        Transfer("a/b", content_coding="gzip", size_bytes=4),
        directory="/g/1.git",
        agent=None,
        client_address="::1",
    )
    assert said["REQUEST_METHOD"] == "GET"
    assert said["QUERY_STRING"] == "service=git-upload-pack"
    assert said["PATH_INFO"] == "/1.git/info/refs"
    assert not said.keys() & {"CONTENT_TYPE", "CONTENT_LENGTH", "HTTP_CONTENT_ENCODING"}


@pytest.mark.parametrize(
    "transfer",
    [
        Transfer(PUSHED),
        Transfer(f"{PUSHED}; charset=utf-8"),
        Transfer(PUSHED, content_coding="X-GZIP"),
        Transfer(PUSHED, protocol="version=2"),
        Transfer(PUSHED, protocol="version=1:other:more=0.1"),
    ],
)
def test_credentials_as_sent_by_git_are_accepted(transfer: Transfer) -> None:
    transfer.check(PUSH)


@pytest.mark.parametrize(
    ("transfer", "error"),
    [
        (Transfer(None), UnsupportedMediaType),
        (Transfer("application/x-git-upload-pack-request"), UnsupportedMediaType),
        (Transfer(PUSHED, content_coding="br"), UnsupportedMediaType),
        (Transfer(PUSHED, content_coding="gzip, gzip"), UnsupportedMediaType),
        (Transfer(PUSHED, protocol=""), BadRequest),
        (Transfer(PUSHED, protocol="version=2\n"), BadRequest),
        (Transfer(PUSHED, protocol="version=2, version=1"), BadRequest),
        (Transfer(PUSHED, protocol=":"), BadRequest),
        (Transfer(PUSHED, protocol="v" * 101), BadRequest),
    ],
)
def test_anything_else_is_not(transfer: Transfer, error: type[Exception]) -> None:
    with pytest.raises(error):
        transfer.check(PUSH)


def test_an_answer_is_200_unless_it_says_otherwise() -> None:
    head = b"Expires: Fri, 01 Jan 1980 00:00:00 GMT\r\nContent-Type: a/b\r\nX-Other: 1"
    fields = (("expires", "Fri, 01 Jan 1980 00:00:00 GMT"), ("content-type", "a/b"))
    assert read_head(head) == Head(200, fields)
    assert read_head(b"Status: 404 Not Found\r\nPragma: no-cache") == Head(
        404, (("pragma", "no-cache"),)
    )


@pytest.mark.parametrize(
    "head",
    [
        b"Status: 99 X",
        b"Status: 101 X",
        b"Status: 200",
        b"Status: abc",
        b"no field",
        b"Content-Type:a/b",
        b"Content-Type: a\x00b",
        b"Set-Cookie : a=b",
        b"Content-Type: a/b\r\n continued",
        b"fatal: \xff",
    ],
)
def test_what_git_would_not_say_is_trouble(head: bytes) -> None:
    with pytest.raises(ServerTrouble):
        read_head(head)


def test_git_sees_our_settings_and_no_others() -> None:
    said = environment("/bin", repository="/g/1.git", changes={"core.fsync": "none"})
    count = int(said["GIT_CONFIG_COUNT"])
    pairs = {
        said[f"GIT_CONFIG_KEY_{index}"]: said[f"GIT_CONFIG_VALUE_{index}"] for index in range(count)
    }
    assert f"GIT_CONFIG_KEY_{count}" not in said
    assert pairs == {**SETTINGS, "safe.directory": "/g/1.git", "core.fsync": "none"}
    assert (said["GIT_CONFIG_NOSYSTEM"], said["GIT_CONFIG_GLOBAL"]) == ("1", "/dev/null")


@pytest.mark.parametrize(
    ("branches", "first"),
    [
        (["refs/heads/b", "refs/heads/a"], "refs/heads/a"),
        (["refs/heads/a", "refs/heads/master"], "refs/heads/master"),
        (["refs/heads/a", "refs/heads/master", "refs/heads/main"], "refs/heads/main"),
    ],
)
def test_clones_begin_with_the_customary_branch(branches: list[str], first: str) -> None:
    assert first_branch(branches) == first
