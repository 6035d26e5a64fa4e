"""Large bodies stream through: identical bytes, bounded memory, and clients may stop anywhere."""

from __future__ import annotations

import asyncio
import hashlib
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.storage.engine_suite.engine import commit, put, write
from tests.support.client import Pod, create_pod
from tests.support.curl import curl_command
from tests.support.engine import bodies_in, new_store
from tests.support.engine_choice import CHOICE
from tests.support.limited_server import Owner
from tests.support.server import DEADLINE_S, ServerProcess, running_server
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
    with running_server(ServerProcess(root=root)) as server:
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


# --- large containers --------------------------------------------------------------------------
#
# A long listing on a real connection: clients that do not read it or disconnect cost little. The
# kernel's buffers hold some MiB of each connection; what the listing is beyond them, the server
# must not have made.


MEMBERS = 10_000
READERS = 12
NAMES = [f"member-{number:05d}.ttl" for number in range(MEMBERS)]
N_TRIPLES = {"Accept": "application/n-triples"}


@pytest.fixture
def container(owner: Owner) -> str:
    """A container of many members in the owner's pod, put there beside the running server."""
    path = f"{owner.root}large/"
    asyncio.run(_fill(owner.server, path))
    return path


async def _fill(server: ServerProcess, path: str) -> None:
    store = new_store(server.root)
    await store.open()
    await commit(store, write(put(path)))
    for first in range(0, MEMBERS, 2500):
        names = NAMES[first : first + 2500]
        await commit(store, write(*(put(path + name, b"x") for name in names)))
    await store.close()


def test_clients_that_do_not_read_a_listing_fill_no_memory(owner: Owner, container: str) -> None:
    """C-29: pieces are made as they are taken, and others are served meanwhile."""
    expected = {container + name for name in NAMES}
    assert owner.client.members(container) == expected
    size_bytes = len(owner.client.get(container, **N_TRIPLES).body)
    worker = only_worker(owner.server)
    forget_peak_memory(worker)
    before = peak_memory_bytes(worker)
    request = owner.compose("GET", container, N_TRIPLES)
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(owner.server)) for _ in range(READERS)]
        for wire in wires:
            wire.send(request)
        for wire in wires:
            assert wire.receive_bytes(9) == b"HTTP/1.1 "
        assert owner.client.members(container) == expected
        for _ in range(50):
            assert owner.client.head(container).status == 200
        assert peak_memory_bytes(worker) - before < READERS * size_bytes / 4
        for wire in wires[::2]:
            wire.reset()
    assert owner.client.members(container) == expected


# --- quota -------------------------------------------------------------------------------------
#
# A real client that waits for 100 Continue sends nothing of a body that exceeds the quota.


QUOTA_BYTES = 1_000_000


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    options = ("--quota-bytes", str(QUOTA_BYTES))
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        yield create_pod(server)


def upload(pod: Pod, file: Path, *options: str) -> tuple[int, int]:
    """The status that curl got, and how many bytes of the body it sent."""
    done = subprocess.run(
        [
            *curl_command(),
            *("--header", f"Authorization: Bearer {pod.token}"),
            *("--header", "Content-Type: application/octet-stream"),
            *("--header", "Expect: 100-continue", "--expect100-timeout", str(DEADLINE_S)),
            *("--upload-file", str(file), "--output", "/dev/null"),
            *("--write-out", "%{http_code} %{size_upload}"),
            *options,
            f"{pod.server.base_url}{pod.root}private/file",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * DEADLINE_S,
    )
    status, sent_bytes = done.stdout.split()
    return int(status), int(sent_bytes)


def test_curl_sends_nothing_of_a_body_that_passes_the_quota(pod: Pod, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (2 * QUOTA_BYTES))
    assert upload(pod, file) == (507, 0)
    file.write_bytes(b"x" * (QUOTA_BYTES // 2))
    assert upload(pod, file) == (201, QUOTA_BYTES // 2)


def test_curl_without_a_length_is_stopped_where_the_quota_ends(pod: Pod, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (2 * QUOTA_BYTES))
    before = set(bodies_in(pod.server.root).names())
    status, _ = upload(pod, file, "--header", "Transfer-Encoding: chunked")
    assert status == 507
    assert set(bodies_in(pod.server.root).names()) == before
