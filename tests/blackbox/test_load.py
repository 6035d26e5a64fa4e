"""Many concurrent connections with different requests: every response is correct."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.client import Client, Pod, create_pod
from tests.support.server import ServerProcess, running_server

CONNECTIONS = 64
TURNS = 6
LISTED = 200


@pytest.fixture(scope="module", params=[1, 2], ids="{} workers".format)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("load") / "root"
    options = ("--workers", str(request.param))
    with running_server(ServerProcess(root=root, options=options)) as server:
        yield server


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    """A pod with a container that is large enough to take a while."""
    pod = create_pod(server)
    with pod.owner() as client:
        for number in range(LISTED):
            assert client.put(f"{pod.root}public/{number}", "x").status == 201
    return pod


def test_sixty_four_busy_connections_get_no_wrong_answer(pod: Pod) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        clients = [threads.submit(live, pod, number) for number in range(CONNECTIONS)]
        made = {path for client in clients for path in client.result()}
    with pod.owner() as client:
        assert client.members(f"{pod.root}shared/") == made


def test_sixty_four_writers_of_one_document_all_succeed(pod: Pod) -> None:
    """None is turned away because others were faster."""
    target = f"{pod.root}hot.txt"
    with contextlib.ExitStack() as connections:
        clients = [connections.enter_context(pod.owner()) for _ in range(CONNECTIONS)]
        clients[0].put(target, "start")
        for turn in range(TURNS):
            for number, client in enumerate(clients):
                headers = {"Content-Type": "text/plain"}
                client.send("PUT", target, f"{turn} {number}", headers)
            answers = [client.receive() for client in clients]
            assert {answer.status for answer in answers} == {204}
            last = clients[0].get(target)
            winner = int(last.text.removeprefix(f"{turn} "))
            assert last.headers["etag"] == answers[winner].headers["etag"]


def live(pod: Pod, number: int) -> set[str]:
    """What one client does; the paths it leaves in the shared container."""
    own = f"{pod.root}own/{number}/"
    posted: set[str] = set()
    with pod.owner() as owner, Client(pod.server) as public:
        steps = [write_and_read, read_conditionally, read_publicly, be_refused, write_large, post]
        for turn in range(TURNS):
            random.Random(f"{number} {turn}").shuffle(steps)
            for step in steps:
                posted |= step(pod, owner, public, f"{own}{turn}")
    return posted


def write_and_read(pod: Pod, owner: Client, public: Client, target: str) -> set[str]:
    turtle = f'<> <#is> "{target}".'
    assert owner.put(f"{target}.ttl", turtle, "text/turtle").status == 201
    assert owner.get(f"{target}.ttl").text == turtle
    converted = owner.get(f"{target}.ttl", Accept="application/ld+json")
    assert target in converted.text
    assert owner.delete(f"{target}.ttl").status == 204
    assert owner.get(f"{target}.ttl").status == 404
    return set()


def read_conditionally(pod: Pod, owner: Client, public: Client, target: str) -> set[str]:
    etag = owner.put(f"{target}.txt", "one").headers["etag"]
    assert owner.get(f"{target}.txt", If_None_Match=etag).status == 304
    assert owner.put(f"{target}.txt", "two", If_Match=etag).status == 204
    assert owner.put(f"{target}.txt", "three", If_Match=etag).status == 412
    assert owner.get(f"{target}.txt", If_None_Match=etag).text == "two"
    return set()


def read_publicly(pod: Pod, owner: Client, public: Client, target: str) -> set[str]:
    assert len(public.members(f"{pod.root}public/")) == LISTED
    assert public.get(f"{pod.root}public/7").text == "x"
    assert public.head(f"{pod.root}profile/card").status == 200
    assert public.get(pod.root).status == 200
    return set()


def be_refused(pod: Pod, owner: Client, public: Client, target: str) -> set[str]:
    assert public.get(f"{pod.root}private/").status == 401
    assert public.put(target, "x" * 10_000).status == 401
    assert owner.get(f"{target}/missing").status == 404
    assert owner.put(f"{target}.bad", "<", "text/turtle").status == 400
    return set()


def write_large(pod: Pod, owner: Client, public: Client, target: str) -> set[str]:
    body = target.encode() * 10_000
    assert owner.put(f"{target}.bin", body).status == 201
    assert owner.get(f"{target}.bin").body == body
    part = owner.get(f"{target}.bin", Range="bytes=100-99999")
    assert (part.status, part.body) == (206, body[100:100_000])
    return set()


def post(pod: Pod, owner: Client, public: Client, target: str) -> set[str]:
    headers = {"Content-Type": "text/plain", "Slug": "same"}
    if owner.head(f"{pod.root}shared/").status == 404:
        owner.put(f"{pod.root}shared/", "", "text/turtle")
    answer = owner.request("POST", f"{pod.root}shared/", target, headers)
    assert answer.status == 201
    path = answer.headers["location"].removeprefix(pod.server.base_url)
    assert owner.get(path).text == target
    return {path}
