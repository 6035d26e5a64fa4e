"""Concurrent writes on two worker processes (P-26)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.agents import N3_PATCH, SPARQL_UPDATE, Agent, Response, create_agent
from tests.support.server import ServerProcess, running_server

WRITERS = 10
ROUNDS = 3

Request = Callable[[], Response]


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """The owner of a pod on a server with two workers."""
    root = tmp_path_factory.mktemp("simultaneous") / "root"
    with running_server(ServerProcess(root=root, options=("--workers", "2"))) as server:
        yield create_agent(server)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(WRITERS) as threads:
        yield threads


def at_once(threads: ThreadPoolExecutor, requests: list[Request]) -> Counter[int]:
    """Send all requests at the same time; how often each status came."""
    answers = [threads.submit(request) for request in requests]
    return Counter(answer.result().status for answer in answers)


@pytest.mark.parametrize("name", ["x.ttl", "x/", "a/b/x.ttl"])
def test_p_26_one_of_many_creations_succeeds(
    writer: Agent, threads: ThreadPoolExecutor, name: str
) -> None:
    for number in range(ROUNDS):
        target = f"{writer.pod}created{number}-{name}"

        def create(target: str = target) -> Response:
            return writer.put(target, headers={"If-None-Match": "*"})

        assert at_once(threads, [create] * WRITERS) == {201: 1, 412: WRITERS - 1}


def test_p_26_one_of_many_replacements_of_one_state_succeeds(
    writer: Agent, threads: ThreadPoolExecutor
) -> None:
    target = writer.create(f"{writer.pod}replaced.ttl")
    for _ in range(ROUNDS):
        tag = writer.head(target).header("ETag") or ""

        def replace(tag: str = tag) -> Response:
            return writer.put(target, "<> <#is> <#new>.", headers={"If-Match": tag})

        assert at_once(threads, [replace] * WRITERS) == {204: 1, 412: WRITERS - 1}


def insertion(number: int, content_type: str) -> str:
    triple = f"<#n{number}> <#is> {number} ."
    if content_type == SPARQL_UPDATE:
        return f"INSERT DATA {{ {triple} }}"
    return (
        "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n"
        f"[] a solid:InsertDeletePatch; solid:inserts {{ {triple} }}."
    )


@pytest.mark.parametrize("content_type", [SPARQL_UPDATE, N3_PATCH])
@pytest.mark.parametrize("name", ["x.ttl", "x/"])
@pytest.mark.parametrize("exists", [True, False])
def test_p_26_patches_at_once_are_all_applied(
    writer: Agent, threads: ThreadPoolExecutor, *, exists: bool, name: str, content_type: str
) -> None:
    target = f"{writer.pod}{exists}/{content_type}/{name}"
    if exists:
        writer.create(target)

    def patch(number: int) -> Request:
        body = insertion(number, content_type)
        return lambda: writer.patch(target, body, content_type)

    statuses = at_once(threads, [patch(number) for number in range(WRITERS)])
    assert statuses == ({204: WRITERS} if exists else {201: 1, 204: WRITERS - 1})
    inserted = {
        str(subject)
        for subject, predicate, _ in writer.read(target).triples
        if str(predicate) == writer.url(f"{target}#is")
    }
    assert inserted == {writer.url(f"{target}#n{number}") for number in range(WRITERS)}


def test_p_26_posts_at_once_all_have_a_member_of_their_own(
    writer: Agent, threads: ThreadPoolExecutor
) -> None:
    container = writer.create(f"{writer.pod}posted/")

    def post() -> Response:
        return writer.post(container, "x", "text/plain", {"Slug": "name"})

    assert at_once(threads, [post] * WRITERS) == {201: WRITERS}
    assert len(writer.read(container).members) == WRITERS
