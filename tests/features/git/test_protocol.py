"""Which requests are git's: exactly those of the smart protocol, and no others."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import BadRequest, BodyTooLarge, ServerTrouble, UnsupportedMediaType
from podstead.core.identifiers import ResourcePath
from podstead.features.git.configuration import SETTINGS, environment
from podstead.features.git.protocol import (
    MAX_COMMAND_BYTES,
    GitRequest,
    Head,
    Service,
    Transfer,
    decompressed,
    git_request,
    limit_commands,
    read_head,
    variables,
)
from podstead.features.git.repositories import first_branch
from tests.support.git import packet

UPLOAD, RECEIVE = Service.UPLOAD_PACK, Service.RECEIVE_PACK


@pytest.mark.parametrize(
    ("method", "path", "query", "service", "container"),
    [
        ("GET", "/a/info/refs", "service=git-upload-pack", UPLOAD, "/a/"),
        ("GET", "/a/b.git/info/refs", "service=git-receive-pack", RECEIVE, "/a/b.git/"),
        ("GET", "/a/info/info/refs", "service=git-upload-pack", UPLOAD, "/a/info/"),
        ("POST", "/a/git-upload-pack", "", UPLOAD, "/a/"),
        ("POST", "/a/b/git-receive-pack", "", RECEIVE, "/a/b/"),
        ("POST", "/a/git-receive-pack/git-upload-pack", "", UPLOAD, "/a/git-receive-pack/"),
    ],
)
def test_the_requests_of_the_smart_protocol(
    method: str, path: str, query: str, service: Service, container: str
) -> None:
    asked = git_request(method, ResourcePath(path), query.encode())
    advertises = method == "GET"
    assert asked == GitRequest(ResourcePath(container), service, advertises=advertises)
    assert f"{asked.container}{asked.path_in_repository}" == path
    assert asked.query == query
    assert asked.is_push is (service is RECEIVE)


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("HEAD", "/a/info/refs", "service=git-upload-pack"),
        ("POST", "/a/info/refs", "service=git-upload-pack"),
        ("PUT", "/a/git-upload-pack", ""),
        ("GET", "/a/git-upload-pack", ""),
        ("GET", "/a/git-upload-pack", "service=git-upload-pack"),
        ("GET", "/a/info/refs", ""),
        ("GET", "/a/info/refs", "service=git-upload-archive"),
        ("GET", "/a/info/refs", "service=git-upload-pack&a=b"),
        ("GET", "/a/info/refs", "service=git%2Dupload-pack"),
        ("GET", "/a/info/refs/", "service=git-upload-pack"),
        ("GET", "/a/xinfo/refs", "service=git-upload-pack"),
        ("GET", "/a/info%2Frefs", "service=git-upload-pack"),
        ("GET", "/a/HEAD", ""),
        ("GET", "/a/objects/info/packs", ""),
        ("GET", "/info/refs", "service=git-upload-pack"),
        ("POST", "/git-upload-pack", ""),
        ("POST", "/a/xgit-upload-pack", ""),
        ("POST", "/a/git-upload-pack/", ""),
        ("POST", "/a/git-upload-pack", "x"),
        ("POST", "/a/", ""),
    ],
)
def test_everything_else_is_about_resources(method: str, path: str, query: str) -> None:
    assert git_request(method, ResourcePath(path), query.encode()) is None


# --- cgi ---------------------------------------------------------------------------------------
#
# What http-backend gets (RFC 3875 section 4.1), and how its responses are read (6.3).


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


# --- content -----------------------------------------------------------------------------------
#
# Content on its way to git; gzip by the standard library, packets as in gitprotocol-common.


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
