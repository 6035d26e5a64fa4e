"""Truncated pushes, killed servers, disconnecting clients, and excessive sizes."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import random
import socket
import struct
import zlib
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.git import (
    NOTHING,
    Git,
    only_repository,
    packet,
    publish,
    push_of,
    url_of,
)
from tests.support.git_requests import MIB, Start, new_work, noise
from tests.support.server import ServerProcess
from tests.support.waiting import wait_until
from tests.support.workers import (
    PROC,
    forget_peak_memory,
    kill_everything,
    only_worker,
    peak_memory_bytes,
    processes_of,
)

pytestmark = pytest.mark.needs("git")

RECEIVE = "application/x-git-receive-pack-request"

HELD_BACK = 1000


class OpenPush:
    """A push that is under way, of which the client has sent so much; the owner's, unless another
    ``token`` is given."""

    def __init__(self, pod: Pod, name: str, *, token: str | None = None) -> None:
        self._connection = pod.server.connect()
        self._connection.putrequest("POST", f"{pod.root}{name}/git-receive-pack")
        for header, value in (
            ("Authorization", f"Bearer {token or pod.token}"),
            ("Content-Type", RECEIVE),
            ("Transfer-Encoding", "chunked"),
        ):
            self._connection.putheader(header, value)
        self._connection.endheaders()

    def send(self, piece: bytes) -> None:
        self._connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))

    def finish(self, piece: bytes) -> int:
        """Send the last piece and end the content; the status of the answer."""
        self.send(piece)
        self._connection.send(b"0\r\n\r\n")
        answer = self._connection.getresponse()
        answer.read()
        self._connection.close()
        return answer.status

    def leave(self) -> None:
        self._connection.close()


def git_processes(server: ServerProcess) -> list[int]:
    """Those of the server's processes that are git's."""
    found = []
    for pid in processes_of(server):
        with contextlib.suppress(OSError):
            if "git" in (PROC / str(pid) / "comm").read_text():
                found.append(pid)
    return found


def is_coming_in(repository: Path) -> bool:
    """Whether the objects of a push are being taken in."""
    return any(repository.glob("objects/tmp_objdir-*/pack/tmp_pack_*"))


def half_pushed(pod: Pod, name: str, work: Git, *, old: str, token: str | None = None) -> OpenPush:
    """A push of which git has taken in all but the last :data:`HELD_BACK` bytes."""
    content = push_of(work, old=old)
    push = OpenPush(pod, name, token=token)
    push.send(content[: len(content) // 3])
    push.send(content[len(content) // 3 : 2 * len(content) // 3])
    push.send(content[2 * len(content) // 3 : -HELD_BACK])
    repository = only_repository(pod.server.root)
    wait_until(lambda: is_coming_in(repository), "git to take the push in")
    return push


def test_a_server_killed_in_a_push_leaves_the_repository_sound(start: Start, git: Git) -> None:
    server = start()
    pod = create_pod(server)
    url = url_of(pod, "private/notes")
    work = new_work(git, pod)
    work("push", "--quiet", url, "main")
    before = work.tip()
    repository = only_repository(server.root)
    work.commit("large", noise(2 * MIB))
    push = half_pushed(pod, "private/notes", work, old=before)
    kill_everything(server, random.Random(3))
    push.leave()
    server.start()
    held = Git(repository)
    held("fsck", "--full", "--strict")
    assert held.tip("refs/heads/main") == before
    # As if git had been about to change the branch.
    (repository / "refs/heads/main.lock").touch()
    work("push", "--quiet", url, "main")
    assert held.tip("refs/heads/main") == work.tip()
    assert not is_coming_in(repository)
    held("fsck", "--full", "--strict")
    assert git.with_token(pod.token).cloned(url, "clone").tip() == work.tip()


def test_the_first_push_may_be_the_one_that_is_killed(start: Start, git: Git) -> None:
    server = start()
    pod = create_pod(server)
    work = new_work(git, pod)
    work.commit("large", noise(2 * MIB))
    content = push_of(work, old=NOTHING)
    push = OpenPush(pod, "private/notes")
    push.send(content[:MIB])
    push.send(content[MIB:-1000])
    wait_until(lambda: any((server.root / "git").glob("*/objects/tmp_objdir-*")), "the push")
    kill_everything(server, random.Random(4))
    push.leave()
    server.start()
    url = url_of(pod, "private/notes")
    work("push", "--quiet", url, "main")
    Git(only_repository(server.root))("fsck", "--full", "--strict")
    assert git.with_token(pod.token).cloned(url, "clone").tip() == work.tip()


def test_the_git_of_a_client_that_left_ends(start: Start, git: Git) -> None:
    """And gives its slot to others: there is one."""
    server = start("--git-processes", "1")
    pod = create_pod(server)
    url = url_of(pod, "private/notes")
    work = new_work(git, pod)
    work("push", "--quiet", url, "main")
    before = work.tip()
    repository = only_repository(server.root)
    work.commit("large", noise(2 * MIB))
    push = half_pushed(pod, "private/notes", work, old=before)
    assert git_processes(server)
    push.leave()
    wait_until(lambda: not git_processes(server), "the end of git")
    wait_until(lambda: not is_coming_in(repository), "the removal of what came in")
    assert Git(repository).tip("refs/heads/main") == before
    work("push", "--quiet", url, "main")
    assert Git(repository).tip("refs/heads/main") == work.tip()


def test_a_clone_that_is_left_ends_too(start: Start, git: Git) -> None:
    server = start("--git-processes", "1")
    pod = create_pod(server)
    url = url_of(pod, "private/notes")
    work = new_work(git, pod)
    # More than the buffers of a connection hold.
    work.commit("large", noise(24 * MIB))
    work("push", "--quiet", url, "main")
    want = f"want {work.tip()} side-band-64k no-progress\n"
    body = f"{len(want) + 4:04x}{want}00000009done\n".encode()
    request = (
        f"POST {pod.root}private/notes/git-upload-pack HTTP/1.1\r\n"
        f"Host: localhost:{server.port}\r\nAuthorization: Bearer {pod.token}\r\n"
        "Content-Type: application/x-git-upload-pack-request\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    with socket.create_connection(("localhost", server.port or 0), timeout=60) as connection:
        connection.sendall(request + body)
        assert connection.recv(9) == b"HTTP/1.1 "
        assert git_processes(server)
    wait_until(lambda: not git_processes(server), "the end of git")
    assert git.with_token(pod.token).cloned(url, "clone").tip() == work.tip()


def test_a_push_is_as_large_as_any_body_may_be(start: Start, git: Git) -> None:
    server = start("--max-body-bytes", str(MIB))
    pod = create_pod(server)
    url = url_of(pod, "private/notes")
    work = new_work(git, pod)
    work("push", "--quiet", url, "main")
    repository = only_repository(server.root)
    before = work.tip()
    work.commit("large", noise(2 * MIB))
    content = push_of(work, old=before)
    typed = {"Content-Type": RECEIVE, "Authorization": f"Bearer {pod.token}"}
    target = f"{pod.root}private/notes/git-receive-pack"
    with contextlib.suppress(ConnectionError):
        assert server.request("POST", target, content, typed).status == 413
    assert work.ends("push", url, "main").code != 0
    assert Git(repository).tip("refs/heads/main") == before
    work("reset", "--quiet", "--hard", before)
    work.commit("small", noise(MIB // 2))
    work("push", "--quiet", url, "main")
    assert Git(repository).tip("refs/heads/main") == work.tip()


def test_the_inflated_size_is_limited(start: Start, git: Git) -> None:
    server = start("--max-body-bytes", str(MIB))
    pod = create_pod(server)
    url = url_of(pod, "private/notes")
    work = new_work(git, pod)
    work("push", "--quiet", url, "main")
    before = work.tip()
    # Stored without compression, so that gzip makes it small.
    plain = Git(work.place, (*work.settings, "core.compression=0", "pack.compression=0"))
    plain.commit("large", bytes(3 * MIB))
    content = push_of(plain, old=before)
    assert len(content) > 2 * MIB
    packed = gzip.compress(content)
    assert len(packed) < MIB
    typed = {
        "Content-Type": RECEIVE,
        "Content-Encoding": "gzip",
        "Authorization": f"Bearer {pod.token}",
    }
    answer = server.request("POST", f"{pod.root}private/notes/git-receive-pack", packed, typed)
    assert answer.status == 413
    assert Git(only_repository(server.root)).tip("refs/heads/main") == before


def test_a_question_is_not_larger_than_git_can_hold(start: Start) -> None:
    """Nor is what it inflates to, for git would keep it all in memory; anybody may ask."""
    server = start()
    pod = create_pod(server)
    publish(pod, "open/", "Read")
    begun = b"".join(map(packet, (b"command=fetch", b"object-format=sha1"))) + b"0001"
    content = begun + packet(b"have " + b"1" * 40) * (11 * MIB // 49)
    asking = {
        "Content-Type": "application/x-git-upload-pack-request",
        "Git-Protocol": "version=2",
    }
    target = f"{pod.root}open/git-upload-pack"
    packed = gzip.compress(content)
    assert len(packed) < MIB
    bomb = server.request("POST", target, packed, {**asking, "Content-Encoding": "gzip"})
    assert bomb.status == 413
    with contextlib.suppress(ConnectionError):  # it may be cut off while it sends
        assert server.request("POST", target, content, asking).status == 413
    cut = gzip.compress(begun)[:-1]
    damaged = server.request("POST", target, cut, {**asking, "Content-Encoding": "gzip"})
    assert damaged.status == 400
    wait_until(lambda: not git_processes(server), "the end of git")


def test_no_object_is_given_memory_for_what_it_says_of_its_size(start: Start, git: Git) -> None:
    server = start()
    pod = create_pod(server)
    commit_of_2_gib = _pack_entry_head(kind=1, size_bytes=2 * 1024 * MIB)
    pack = b"PACK" + struct.pack(">II", 2, 1) + commit_of_2_gib + zlib.compress(bytes(MIB))
    command = f"{NOTHING} {'1' * 40} refs/heads/main\0 report-status".encode()
    content = packet(command) + b"0000" + pack + hashlib.sha1(pack).digest()
    typed = {"Content-Type": RECEIVE, "Authorization": f"Bearer {pod.token}"}
    server.request("POST", f"{pod.root}private/notes/git-receive-pack", content, typed)
    wait_until(lambda: "over limit" in server.errors, "git to refuse")
    assert git.with_token(pod.token).branches(url_of(pod, "private/notes")) == {}


def _pack_entry_head(*, kind: int, size_bytes: int) -> bytes:
    """How an object of a pack begins (gitformat-pack)."""
    first, rest = kind << 4 | size_bytes & 0b1111, size_bytes >> 4
    head = []
    while rest:
        head.append(first | 0x80)
        first, rest = rest & 0x7F, rest >> 7
    return bytes((*head, first))


def test_a_pod_and_its_repositories_keep_the_quota_when_pushing(start: Start, git: Git) -> None:
    server = start("--quota-bytes", str(MIB))
    pod = create_pod(server)
    work = new_work(git, pod)
    work.commit("b", noise(MIB // 3))
    work("push", "--quiet", url_of(pod, "private/one"), "main")
    with pod.owner() as client:
        body = noise(MIB // 4)
        assert client.put(f"{pod.root}private/x", body, "application/octet-stream").status == 201
    work.commit("c", noise(MIB // 2))
    assert work.ends("push", url_of(pod, "private/two"), "main").code != 0
    work("push", "--quiet", url_of(pod, "private/two"), "main~:refs/heads/main")
    refused = work.ends("push", url_of(pod, "private/three"), "main~:refs/heads/main")
    assert refused.code != 0
    with pod.owner() as client:
        assert client.put(f"{pod.root}private/small", "1").status == 201
    other = create_pod(server)
    theirs = Git(work.place, git.with_token(other.token).settings)
    theirs("push", "--quiet", url_of(other, "private/one"), "main~:refs/heads/main")


def test_a_large_repository_takes_little_memory_of_the_worker(start: Start, git: Git) -> None:
    """Content is handed through both ways, no faster than it is taken."""
    server = start()
    pod = create_pod(server)
    url = url_of(pod, "private/notes")
    work = new_work(git, pod)
    work.commit("large", noise(64 * MIB))
    worker = only_worker(server)
    git.with_token(pod.token).ends("ls-remote", url)
    before = peak_memory_bytes(worker)
    forget_peak_memory(worker)
    work("push", "--quiet", url, "main")
    clone = git.with_token(pod.token).cloned(url, "clone")
    assert clone.tip() == work.tip()
    assert peak_memory_bytes(worker) - before < 24 * MIB


def test_an_invalid_pack_is_refused_and_changes_nothing(start: Start, git: Git) -> None:
    server = start()
    pod = create_pod(server)
    work = new_work(git, pod)
    url = url_of(pod, "private/notes")
    work("push", "--quiet", url, "main")
    before = work.tip()
    work.commit("b", "2")
    content = push_of(work, old=before)
    typed = {"Content-Type": RECEIVE, "Authorization": f"Bearer {pod.token}"}
    target = f"{pod.root}private/notes/git-receive-pack"
    damaged = content[:-30] + bytes(10) + content[-20:]
    for body in (content[:-1], damaged, b"ffff", b"garbage" * 1000, content[:80]):
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            assert b"ok refs/heads/main" not in server.request("POST", target, body, typed).body
        assert Git(only_repository(server.root)).tip("refs/heads/main") == before
    assert b"ok refs/heads/main" in server.request("POST", target, content, typed).body


def test_objects_are_checked_before_they_are_kept(start: Start, git: Git) -> None:
    """transfer.fsckObjects: a tree that would write into .git when it is checked out."""
    server = start()
    pod = create_pod(server)
    work = new_work(git, pod)
    blob = work("hash-object", "-w", "--stdin", input_bytes=b"[core]\n")
    inner = work("mktree", input_bytes=f"100644 blob {blob}\tconfig\n".encode())
    tree = work("mktree", input_bytes=f"040000 tree {inner}\t.git\n".encode())
    commit = work("commit-tree", tree, "-m", "Not this")
    refused = work.ends("push", url_of(pod, "private/notes"), f"{commit}:refs/heads/main")
    assert "hasDotgit" in refused.refused_with
    assert "refs/heads/main" not in git.with_token(pod.token).branches(url_of(pod, "private/notes"))


def test_stopping_ends_what_still_runs(start: Start, git: Git) -> None:
    server = start("--drain-timeout-s", "1")
    pod = create_pod(server)
    work = new_work(git, pod)
    work("push", "--quiet", url_of(pod, "private/notes"), "main")
    before = work.tip()
    work.commit("large", noise(2 * MIB))
    push = half_pushed(pod, "private/notes", work, old=before)
    processes = git_processes(server)
    assert processes
    server.stop()
    wait_until(lambda: not any((PROC / str(pid)).exists() for pid in processes), "the end of git")
    push.leave()
