"""Every worker tells of the writes of every other, and nothing is lost when one of them dies."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.support.client import Client, Pod, create_pod
from tests.support.commands import invoke
from tests.support.features import WEBID_TLS_OPTIONS
from tests.support.listeners import CERTIFICATE, KEY, client_tls
from tests.support.live_sockets import sockets_to, sockets_to_every_worker
from tests.support.server import DEADLINE_S, ServerProcess, running_server
from tests.support.workers import clients_of_every_worker

pytestmark = pytest.mark.feature("legacy_notifications")

TURTLE = "text/turtle"
PASSWORD = "correct horse battery staple"


OPTIONS = ("--workers", "2", "--drain-timeout-s", "3600")


LISTENERS = {"http": (), "sockets-port": ("--sockets-port", "0")}
"""Which listener serves the sockets, with its options."""


@pytest.fixture(scope="module", params=list(LISTENERS))
def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[ServerProcess]:
    """For tests that leave it as it is."""
    root = tmp_path_factory.mktemp("live") / "root"
    options = (*OPTIONS, *LISTENERS[request.param])
    with running_server(ServerProcess(root, options=options)) as server:
        yield server


@pytest.fixture(params=list(LISTENERS))
def own_server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    options = (*OPTIONS, *LISTENERS[request.param])
    with running_server(ServerProcess(tmp_path / "root", options=options)) as server:
        yield server


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


@pytest.mark.parametrize("credential", [["auth Bearer {}", "dpop none"], []], ids=["auth", "none"])
@pytest.mark.parametrize("workers", [1, 2], ids="{} workers".format)
async def test_a_client_that_writes_before_its_ack_is_notified_of_every_change(
    tmp_path: Path, workers: int, credential: list[str]
) -> None:
    """As the WebSocket cases of solid-crud-tests do, two hundred times."""
    options = ("--workers", str(workers))
    with running_server(ServerProcess(tmp_path / "root", options=options)) as server:
        pod = create_pod(server)
        path = f"{pod.root}{'private' if credential else 'public'}/doc.ttl"
        lines = [*(line.format(pod.token) for line in credential), f"sub {path}"]
        with pod.owner() as owner:
            assert owner.put(path, "<> a <#x>.", TURTLE).status == 201
            for number in range(200):
                async with sockets_to(server) as [socket]:
                    for line in lines:
                        await socket.connection.send_str(line)
                    answer = await asyncio.to_thread(owner.put, path, f"<> <#n> {number}.", TURTLE)
                    assert answer.status == 204
                    assert await socket.receive() == f"ack {path}"
                    assert await socket.receive() == f"pub {path}"


def acl(pod: Pod, subject: str, more: str = "") -> str:
    """Access rules that keep the owner in control."""
    url = f"{pod.server.base_url}{subject}"
    owner = (
        f"[] a <http://www.w3.org/ns/auth/acl#Authorization>; acl:agent <{pod.web_id}>; "
        f"acl:accessTo <{url}>; acl:mode acl:Read, acl:Write, acl:Control."
    )
    return f"@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n{owner}\n{more}"


async def test_the_writes_of_each_worker_are_heard_at_each(server: ServerProcess, pod: Pod) -> None:
    """N-19: in the order of the log, so that all hear the same."""
    path = f"{pod.root}public/shared.ttl"
    url = f"{server.base_url}{path}"
    with clients_of_every_worker(server, workers=2, token=pod.token) as writers:
        async with sockets_to_every_worker(server, workers=2) as sockets:
            for socket in sockets.values():
                await socket.subscribe(url)
            for number in range(20):
                for writer in writers:
                    answer = writer.put(path, f"<> <#n> {number}.", TURTLE)
                    assert answer.status in {201, 204}
                    for socket in sockets.values():
                        assert await socket.receive() == f"pub {url}"


async def test_racing_writers_of_all_workers_are_heard_as_one(
    server: ServerProcess, pod: Pod
) -> None:
    """L-7."""
    container = f"{pod.root}public/"
    urls = [f"{server.base_url}{container}{name}" for name in ("", "raced", "last")]
    with clients_of_every_worker(server, workers=2, each=5, token=pod.token) as writers:
        async with sockets_to_every_worker(server, workers=2) as sockets:
            for socket in sockets.values():
                await socket.subscribe(*urls)
            conditions = {"Content-Type": TURTLE, "If-None-Match": "*"}
            for writer in writers:
                writer.send("PUT", f"{container}raced", "<> a <#x>.", conditions)
            statuses = Counter(writer.receive().status for writer in writers)
            assert statuses == {201: 1, 412: 9}
            assert writers[0].put(f"{container}last", "<> a <#x>.", TURTLE).status == 201
            for socket in sockets.values():
                lines = await socket.receive_until(f"pub {urls[2]}")
                assert lines.count(f"pub {urls[1]}") == 1


async def test_a_worker_that_is_killed_takes_no_event_along(
    own_server: ServerProcess,
) -> None:
    """Who listens at another worker hears of every write that was stored, once, and of no other."""
    server = own_server
    pod = create_pod(server)
    container = f"{pod.root}public/many/"
    with Client(server, token=pod.token) as owner:
        assert owner.put(container, "", TURTLE).status == 201
    async with sockets_to_every_worker(server, workers=2) as sockets:
        killed, staying = sorted(sockets)
        socket = sockets[staying]
        await socket.subscribe(f"{server.base_url}{container}")
        writing = asyncio.create_task(
            asyncio.to_thread(write_until_cut_off, server, pod, container)
        )
        for _ in range(30):
            await socket.receive()
        os.kill(killed, signal.SIGKILL)
        await writing
        with Client(server, token=pod.token) as owner:
            assert owner.put(f"{container}last", "x").status == 201
            members = owner.members(container)
        missing = len(members) - 30
        for _ in range(missing):
            assert await socket.receive() == f"pub {server.base_url}{container}"
        # Nothing more: what is told next is what is done now.
        await socket.subscribe(f"{server.base_url}{container}last")
        with Client(server, token=pod.token) as owner:
            assert owner.delete(f"{container}last").status == 204
        told = {await socket.receive(), await socket.receive()}
        assert told == {f"pub {server.base_url}{container}{name}" for name in ("", "last")}


def write_until_cut_off(server: ServerProcess, pod: Pod, container: str) -> None:
    """Make resources over connections to both workers until one of them is gone."""
    with clients_of_every_worker(server, workers=2, each=3, token=pod.token) as writers:
        for number in range(100_000):
            writer = writers[number % len(writers)]
            try:
                writer.put(f"{container}{number}", "x")
            except (OSError, http.client.HTTPException):
                return
    raise AssertionError("no worker was killed")


async def test_access_taken_away_at_one_worker_is_gone_at_the_other(
    server: ServerProcess, pod: Pod
) -> None:
    """N-30, L-10."""
    path = f"{pod.root}public/doc.ttl"
    url = f"{server.base_url}{path}"
    with clients_of_every_worker(server, workers=2, token=pod.token) as writers:
        assert writers[0].put(path, "<> a <#x>.", TURTLE).status == 201
        async with sockets_to_every_worker(server, workers=2) as sockets:
            for socket in sockets.values():
                await socket.subscribe(url)
            assert writers[0].put(f"{path}.acl", acl(pod, path), TURTLE).status == 201
            assert writers[1].put(path, "<> a <#y>.", TURTLE).status == 204
            for socket in sockets.values():
                assert await socket.receive() == f"err {url} forbidden"


async def test_changes_by_the_operator_beside_the_server_are_notified(tmp_path: Path) -> None:
    """An account that is deleted by the command line, another process again."""
    options = ("--idp", "--workers", "2")
    root = tmp_path / "root"
    with running_server(ServerProcess(root, options=options)) as server:
        await command(root, "create", "alice", "--email", "a@example.org", typed=f"{PASSWORD}\n")
        async with sockets_to_every_worker(server, workers=2) as sockets:
            for socket in sockets.values():
                await socket.subscribe(f"{server.base_url}/alice/profile/card")
            await command(root, "delete", "alice", "--yes")
            for socket in sockets.values():
                assert await socket.receive() == f"pub {server.base_url}/alice/profile/card"


async def command(root: Path, *arguments: str, typed: str = "") -> None:
    """``podstead account …``, in a loop of its own."""
    result = await asyncio.to_thread(invoke, root, "account", *arguments, typed=typed)
    assert result.exit_code == 0, result.output


async def test_listeners_are_closed_when_the_server_stops_and_do_not_delay_it(
    own_server: ServerProcess,
) -> None:
    server = own_server
    pod = create_pod(server)
    async with sockets_to(server, count=10) as sockets:
        await sockets[0].subscribe(f"{server.base_url}{pod.root}public/")
        server.signal(signal.SIGTERM)
        assert [await socket.closed() for socket in sockets] == [1001] * 10
        assert await asyncio.to_thread(server.wait) == 0
    assert server.errors == ""


@pytest.mark.parametrize(
    "listener",
    [(), WEBID_TLS_OPTIONS, ("--sockets-port", "0"), ("--sockets-port", "0", *WEBID_TLS_OPTIONS)],
    ids=["https", "webid-tls", "sockets-port", "sockets-port and webid-tls"],
)
async def test_sockets_are_behind_tls_as_well(tmp_path: Path, listener: tuple[str, ...]) -> None:
    """L-1: whoever decrypts."""
    options = ("--ssl-cert", str(CERTIFICATE), "--ssl-key", str(KEY), *listener)
    with running_server(ServerProcess(tmp_path / "root", options, tls=client_tls())) as server:
        pod = create_pod(server)
        with pod.owner() as owner:
            address = owner.head(pod.root).headers["updates-via"]
            assert address.startswith("wss://localhost:")
            connector = aiohttp.TCPConnector(ssl=client_tls())
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.ws_connect(address) as socket,
            ):
                path = f"{pod.root}public/x.ttl"
                await socket.send_str(f"sub {path}")
                assert await socket.receive_str() == "protocol solid-0.1"
                assert await socket.receive_str() == f"ack {path}"
                assert owner.put(path, "<> a <#x>.", TURTLE).status == 201
                assert await socket.receive_str() == f"pub {path}"


async def test_a_listener_that_never_reads_does_not_hold_up_the_stop(
    own_server: ServerProcess,
) -> None:
    server = own_server
    address = urlsplit(server.request("OPTIONS", "/x").headers["updates-via"])
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    writer.write(
        f"GET /.notifications HTTP/1.1\r\nHost: {address.netloc}\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    async with asyncio.timeout(DEADLINE_S):
        assert b" 101 " in await reader.readline()
    assert await asyncio.to_thread(server.stop) == 0
    writer.close()
