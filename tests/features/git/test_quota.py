"""Repositories count towards the quota of a pod and disk space, measured after packing."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import apsw
import pytest

from podstead.storage.sqlite import SqliteStore
from tests.support.client import Pod, create_pod
from tests.support.git import Git, url_of
from tests.support.git_requests import MIB, OPTIONS, Start, new_work, noise
from tests.support.server import ServerProcess, running_server
from tests.support.small_disk import small_disk
from tests.support.waiting import wait_until

pytestmark = pytest.mark.needs("git")


def test_a_push_to_a_full_disk_is_refused_and_cloning_still_works(start: Start, git: Git) -> None:
    server = start()
    pod = create_pod(server)
    url = url_of(pod, "private/notes")
    work = new_work(git, pod)
    work("push", "--quiet", url, "main")
    server.stop()
    server.options = (*server.options, "--min-free-bytes", str(2**53))
    server.start()
    tip = work.tip()
    work.commit("new", "new")
    refused = work.ends("push", url, "main")
    assert refused.code != 0
    assert "507" in refused.errors
    assert git.with_token(pod.token).cloned(url, "clone").tip() == tip


def test_a_push_ends_when_the_disk_fills_up_while_it_arrives(tmp_path: Path, git: Git) -> None:
    """Before it has taken what others need, and nothing of it stays."""
    place = tmp_path / "disk"
    place.mkdir()
    with small_disk(place, size_bytes=48 * MIB) as disk, contextlib.ExitStack() as servers:
        # Where there can be no small disk, none is ever free enough.
        floor_bytes = 2**53 if disk is None else 16 * MIB
        server = ServerProcess(place / "root", OPTIONS)
        if disk is not None:
            server.command = disk.command
        servers.enter_context(running_server(server))
        pod = create_pod(server)
        url = url_of(pod, "private/notes")
        work = new_work(git, pod)
        work("push", "--quiet", url, "main")
        server.stop()
        server.options = (*OPTIONS, "--min-free-bytes", str(floor_bytes))
        server.start()
        tip = work.tip()
        work.commit("large", noise(100 * MIB))
        refused = work.ends("-c", f"http.postBuffer={1024 * MIB}", "push", url, "main")
        assert refused.code != 0
        assert "507" in refused.errors
        if disk is not None:
            wait_until(lambda: disk.free_bytes > 40 * MIB, "the room that the push had taken")
        assert git.with_token(pod.token).branches(url)["refs/heads/main"] == tip


def used_bytes(server: ServerProcess, pod: Pod) -> int:
    """What a pod is charged for."""

    async def read() -> int:
        store = SqliteStore(server.root)
        await store.open()
        try:
            return await store.used_bytes(pod.name)
        finally:
            await store.close()

    return asyncio.run(read())


def test_a_repository_is_charged_for_and_what_nothing_reaches_is_not(
    start: Start, git: Git
) -> None:
    """A branch that is replaced again and again, and one that is deleted, leave nothing behind."""
    server = start("--quota-bytes", str(3 * MIB))
    pod = create_pod(server)
    url = url_of(pod, "private/notes")
    work = new_work(git, pod)
    at_first = used_bytes(server, pod)
    for number in range(6):
        work("checkout", "--quiet", "--orphan", f"draft{number}")
        work.commit("large", noise(MIB + number))
        assert work.ends("push", "--quiet", "--force", url, "HEAD:refs/heads/draft").code == 0
        wait_until(
            lambda: MIB < used_bytes(server, pod) - at_first < MIB + MIB // 4,
            "a repository that holds one draft only",
        )
    clone = git.with_token(pod.token).cloned(url, "clone", "--branch", "draft")
    assert clone.tip() == work.tip()
    work("push", "--quiet", url, "main", ":refs/heads/draft")
    wait_until(lambda: used_bytes(server, pod) - at_first < MIB // 4, "an empty repository")
    with pod.owner() as client:
        container = f"{pod.root}private/notes/"
        assert client.delete(container).status == 204
    wait_until(lambda: used_bytes(server, pod) <= at_first, "no charge for a repository")


def test_a_put_counts_the_size_of_repositories_towards_the_quota(start: Start, git: Git) -> None:
    server = start("--quota-bytes", str(MIB))
    pod = create_pod(server)
    work = new_work(git, pod)
    work.commit("b", noise(MIB * 3 // 4))
    work("push", "--quiet", url_of(pod, "private/one"), "main")
    body = noise(MIB // 2)
    with pod.owner() as client:
        refused = client.put(f"{pod.root}private/x", body, "application/octet-stream")
        assert refused.status == 507
        told = json.loads(refused.body)
        assert told["usedBytes"] > MIB * 3 // 4
        # A push that has no room left is told the same.
        work.commit("c", noise(MIB // 2))
        pushed = work.ends("push", url_of(pod, "private/two"), "main")
        assert pushed.code != 0
        assert client.put(f"{pod.root}private/y", "small").status == 201


def test_repositories_of_before_are_charged_for_after_the_start(start: Start, git: Git) -> None:
    server = start()
    pod = create_pod(server)
    work = new_work(git, pod)
    work.commit("b", noise(MIB))
    work("push", "--quiet", url_of(pod, "private/one"), "main")
    server.stop()
    connection = apsw.Connection(str(server.root / "podstead.db"))
    connection.execute("DELETE FROM charges")
    connection.execute("UPDATE storages SET used_bytes = 0")
    connection.close()
    server.start()
    wait_until(lambda: used_bytes(server, pod) > MIB, "a charge for what is there")
