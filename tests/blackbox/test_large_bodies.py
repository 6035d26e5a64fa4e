"""Large bodies stream through: identical bytes, bounded memory, and clients may stop anywhere."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator

import pytest

from tests.blackbox.limited_server import Owner
from tests.support.client import create_pod
from tests.support.engine_choice import CHOICE
from tests.support.features import NO_HISTORY_OPTIONS
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until
from tests.support.wire import Wire
from tests.support.workers import (
    descriptor_count,
    forget_peak_memory,
    only_worker,
    peak_memory_bytes,
)

MIB = 1024 * 1024
PART_BYTES = 8 * MIB
SIZE_BYTES = 50 * MIB

BYTES = {"Content-Type": "application/octet-stream"}


def max_growth_bytes() -> int:
    """What a worker may take for one body of SIZE_BYTES; a few pieces are in memory at once, and
    with S3 two parts that are being stored."""
    return SIZE_BYTES // 3 + (2 * PART_BYTES if CHOICE.with_s3 else 0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("large") / "root"
    with running_server(ServerProcess(root, NO_HISTORY_OPTIONS)) as server:
        yield server
    shutil.rmtree(root)  # else the last runs of the tests would keep gigabytes


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(50).randbytes(SIZE_BYTES)


@pytest.fixture
def wire(server: ServerProcess) -> Iterator[Wire]:
    with Wire(server) as wire:
        yield wire


@pytest.fixture(scope="module")
def stored(server: ServerProcess, content: bytes) -> str:
    """The path of a public resource with the content, which no test changes."""
    pod = create_pod(server)
    target = f"{pod.root}public/stored.bin"
    with pod.owner() as client:
        assert client.put(target, content, "application/octet-stream").status == 201
    return target


@pytest.fixture
def changeable(owner: Owner, content: bytes) -> str:
    """The path of a resource with the content, for one test."""
    target = f"{owner.root}changeable.bin"
    assert owner.client.put(target, content, "application/octet-stream").status == 201
    return target


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_a_large_upload_takes_little_memory(owner: Owner, content: bytes, chunked: bool) -> None:
    target = f"{owner.root}large.bin"
    worker = only_worker(owner.server)
    request = owner.compose("PUT", target, BYTES, content)
    if chunked:
        headers = {**BYTES, "Transfer-Encoding": "chunked"}
        request = owner.compose("PUT", target, headers) + in_chunks(content)
    forget_peak_memory(worker)
    before = peak_memory_bytes(worker)
    assert owner.exchange(request, "PUT").status == 201
    assert peak_memory_bytes(worker) - before < max_growth_bytes()
    assert digest(owner.client.get(target).body) == digest(content)


def in_chunks(content: bytes) -> bytes:
    pieces = (content[start : start + MIB] for start in range(0, len(content), MIB))
    framed = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"".join(framed) + b"0\r\n\r\n"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_large_download_takes_little_memory(owner: Owner, stored: str, content: bytes) -> None:
    worker = only_worker(owner.server)
    forget_peak_memory(worker)
    before = peak_memory_bytes(worker)
    answer = owner.client.get(stored)
    assert int(answer.headers["content-length"]) == SIZE_BYTES
    assert digest(answer.body) == digest(content)
    assert peak_memory_bytes(worker) - before < max_growth_bytes()


@pytest.mark.parametrize("range_", [None, "bytes=1-"], ids=["the whole", "a range"])
def test_a_client_that_does_not_read_fills_no_memory(
    owner: Owner, wire: Wire, stored: str, content: bytes, range_: str | None
) -> None:
    """The server waits for the client, and serves others meanwhile."""
    worker = only_worker(owner.server)
    forget_peak_memory(worker)
    before = peak_memory_bytes(worker)
    wire.send(owner.compose("GET", stored, {} if range_ is None else {"Range": range_}))
    assert wire.receive_bytes(9) == b"HTTP/1.1 "
    for _ in range(50):  # what it does for others it does after it has begun to wait
        assert owner.client.head(stored).status == 200
    assert peak_memory_bytes(worker) - before < max_growth_bytes()
    rest = wire.receive_bytes(SIZE_BYTES).partition(b"\r\n\r\n")[2]
    rest += wire.receive_bytes(SIZE_BYTES - len(rest) - (0 if range_ is None else 1))
    assert digest(rest) == digest(content if range_ is None else content[1:])


@pytest.mark.parametrize(
    ("range_", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=0-1048575", 0, MIB - 1),
        ("bytes=7777777-33333333", 7_777_777, 33_333_333),
        ("bytes=-1", SIZE_BYTES - 1, SIZE_BYTES - 1),
        ("bytes=-3000000", SIZE_BYTES - 3_000_000, SIZE_BYTES - 1),
        (f"bytes={SIZE_BYTES - 5}-{SIZE_BYTES * 9}", SIZE_BYTES - 5, SIZE_BYTES - 1),
    ],
)
def test_a_range_of_a_large_body_is_those_bytes(
    owner: Owner, stored: str, content: bytes, range_: str, first: int, last: int
) -> None:
    """P-27."""
    answer = owner.client.get(stored, Range=range_)
    assert answer.status == 206
    assert answer.headers["content-range"] == f"bytes {first}-{last}/{SIZE_BYTES}"
    assert int(answer.headers["content-length"]) == last - first + 1
    assert answer.body == content[first : last + 1]


def test_a_range_behind_the_end_is_not_satisfiable(owner: Owner, stored: str) -> None:
    """P-27."""
    answer = owner.client.get(stored, Range=f"bytes={SIZE_BYTES}-")
    assert answer.status == 416
    assert answer.headers["content-range"] == f"bytes */{SIZE_BYTES}"


def test_a_broken_off_download_can_be_continued(
    owner: Owner, changeable: str, content: bytes
) -> None:
    """P-27: with If-Range, so that pieces of two states are never joined."""
    with Wire(owner.server) as wire:
        wire.send(owner.compose("GET", changeable))
        head, _, received = wire.receive_bytes(10 * MIB).partition(b"\r\n\r\n")
        wire.reset()
    etag = owner.client.head(changeable).headers["etag"]
    assert f"etag: {etag}".encode() in head
    rest = {"Range": f"bytes={len(received)}-", "If-Range": etag}
    answer = owner.client.request("GET", changeable, headers=rest)
    assert answer.status == 206
    assert digest(received + answer.body) == digest(content)
    owner.client.put(changeable, "another state")
    replaced = owner.client.request("GET", changeable, headers=rest)
    assert (replaced.status, replaced.text) == (200, "another state")


@pytest.mark.parametrize("range_", [None, "bytes=1-"], ids=["the whole", "a range"])
def test_clients_that_leave_in_a_download_disturb_nobody(
    owner: Owner, stored: str, range_: str | None
) -> None:
    """No trouble is logged, and what was opened for them is closed."""
    worker = only_worker(owner.server)
    headers = {} if range_ is None else {"Range": range_}
    owner.client.get(stored, Range="bytes=0-0")  # whatever stays open for good is open now
    before = descriptor_count(worker)
    for number in range(20):
        with Wire(owner.server) as wire:
            wire.send(owner.compose("GET", stored, headers))
            wire.receive_bytes(1 + number * 10_000)
            if number % 2:
                wire.reset()
        assert owner.client.head(stored).status == 200
    wait_until(lambda: descriptor_count(worker) <= before, "all descriptors closed")


def test_a_body_that_is_replaced_while_it_is_sent_arrives_whole(
    owner: Owner, wire: Wire, changeable: str, content: bytes
) -> None:
    """A reader keeps the state that it began with."""
    wire.send(owner.compose("GET", changeable, {"Range": "bytes=1-"}))
    start = wire.receive_bytes(MIB).partition(b"\r\n\r\n")[2]
    for number in range(3):
        assert owner.client.put(changeable, f"state {number}").status == 204
    assert owner.client.delete(changeable).status == 204
    rest = wire.receive_bytes(SIZE_BYTES - 1 - len(start))
    assert digest(start + rest) == digest(content[1:])
    assert owner.client.get(changeable).status == 404


@pytest.mark.parametrize("fields", [{}, {"Range": "bytes=0-"}], ids=["whole", "range"])
def test_a_download_goes_on_although_the_content_is_replaced_and_its_file_removed(
    owner: Owner, wire: Wire, content: bytes, changeable: str, fields: dict[str, str]
) -> None:
    before = owner.blobs()

    def is_removed() -> bool:
        """Whether of all that was replaced only the newest body is left."""
        now = owner.blobs()
        return len(now - before) == 1 and not before <= now

    wire.send(owner.compose("GET", changeable, fields))
    begun = wire.receive_bytes(MIB)  # of so much that the server has to go on reading
    for number in range(3):
        replaced = owner.client.put(changeable, b"%d" % number * MIB, "application/octet-stream")
        assert replaced.status == 204
    if not fields and not CHOICE.with_s3 and not CHOICE.on_postgresql:
        # The HTTP server has the file open itself, so it does not need its name.
        wait_until(is_removed, "the removal of what was replaced")
    header, _, body = begun.partition(b"\r\n\r\n")
    assert header.startswith((b"HTTP/1.1 200", b"HTTP/1.1 206"))
    body += wire.receive_bytes(SIZE_BYTES - len(body))
    assert hashlib.sha256(body).digest() == hashlib.sha256(content).digest()
    if not CHOICE.with_s3:
        wait_until(is_removed, "the removal after the reader")
