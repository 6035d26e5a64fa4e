"""tus-js-client uploads through connections that break, and while the server is killed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clients.client_home import StartClient
from tests.support.breaking_proxy import (
    BreakingProxy,
    ProxiedServer,
    running_behind,
    running_breaking_proxy,
)
from tests.support.client import Pod, create_pod
from tests.support.client_process import ClientFailed, ClientProcess

pytestmark = pytest.mark.feature("uploads")

SIZE = 5_000_000


@pytest.fixture(scope="module")
def client(start_client: StartClient) -> ClientProcess:
    return start_client("tus.mjs")


@pytest.fixture(scope="module")
def proxy() -> Iterator[BreakingProxy]:
    with running_breaking_proxy() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, proxy: BreakingProxy
) -> Iterator[ProxiedServer]:
    root = tmp_path_factory.mktemp("tus") / "root"
    with running_behind(proxy, root, "--workers", "2") as server:
        yield server


@pytest.fixture(scope="module")
def pod(server: ProxiedServer) -> Pod:
    return create_pod(server)


def where(pod: Pod, name: str) -> dict[str, str]:
    """What every upload of the client needs to know."""
    return {
        "endpoint": f"{pod.server.base_url}/.uploads/",
        "token": pod.token,
        "target": f"{pod.root}private/{name}",
    }


def stored_sha256(pod: Pod, name: str) -> str:
    with pod.owner() as owner:
        answer = owner.get(f"{pod.root}private/{name}")
    assert answer.status == 200
    return hashlib.sha256(answer.body).hexdigest()


@pytest.mark.parametrize("together", [False, True], ids=["separate", "together"])
@pytest.mark.parametrize("chunk_size", [None, 700_000], ids=["one request", "parts"])
@pytest.mark.parametrize("size", [0, 1, SIZE])
def test_it_uploads(
    client: ClientProcess, pod: Pod, size: int, chunk_size: int | None, together: bool
) -> None:
    name = f"{size}-{chunk_size}-{together}.bin"
    sent = client.run(
        "upload", **where(pod, name), size=size, chunkSize=chunk_size, together=together
    ).value
    assert sent["sha256"] == stored_sha256(pod, name)


def test_it_continues_when_the_connection_breaks(
    client: ClientProcess, pod: Pod, proxy: BreakingProxy
) -> None:
    before = proxy.broken
    proxy.break_after([1_000_000, 2_500_000, 4_000_000, 5_500_000])
    sent = client.run("upload", **where(pod, "broken.bin"), size=SIZE).value
    assert sent["sha256"] == stored_sha256(pod, "broken.bin")
    assert proxy.broken - before >= 3
    assert sent["errors"] >= 3


def test_it_continues_with_another_client(client: ClientProcess, pod: Pod) -> None:
    sent = client.run(
        "resume", **where(pod, "resumed.bin"), size=SIZE, chunkSize=500_000, stopAfter=2_000_000
    ).value
    assert sent["sha256"] == stored_sha256(pod, "resumed.bin")
    assert sent["first"] >= 2_000_000


def test_it_ends_an_upload(client: ClientProcess, pod: Pod) -> None:
    assert client.run("terminate", **where(pod, "ended.bin")).value == {"status": 404}


def test_it_is_told_that_a_name_is_taken(client: ClientProcess, pod: Pod) -> None:
    with pod.owner() as owner:
        assert owner.put(f"{pod.root}private/taken.txt", "x", "text/plain").status == 201
    with pytest.raises(ClientFailed, match="412"):
        client.run("upload", **where(pod, "taken.txt"), size=10, metadata={"if-none-match": "*"})


def test_it_continues_after_the_server_was_killed(
    client: ClientProcess, pod: Pod, server: ProxiedServer, proxy: BreakingProxy
) -> None:
    proxy.break_after([2_000_000])
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(
            client.run,
            "upload",
            **where(pod, "killed.bin"),
            size=SIZE,
            chunkSize=100_000,
        )
        server.kill()
        server.start()
        sent = sending.result().value
    assert sent["sha256"] == stored_sha256(pod, "killed.bin")
