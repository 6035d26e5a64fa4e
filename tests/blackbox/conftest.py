"""One server for the tests of a module, with limits small enough to reach; each test its own pod.

Whatever a test sends, the server logs nothing and still answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.blackbox.limited_server import (
    OPTIONS,
    Owner,
)
from tests.support.client import create_pod
from tests.support.server import ServerProcess, server_fixture

server = server_fixture(OPTIONS)


@pytest.fixture(autouse=True)
def unmoved(server: ServerProcess) -> Iterator[None]:
    """The server has nothing to log about any test but its audit, and goes on serving."""
    before = len(server.errors)
    yield
    assert server.get("/").status == 200
    logged = server.errors[before:].splitlines()
    assert [line for line in logged if " info podstead.audit: " not in line] == []


@pytest.fixture
def owner(server: ServerProcess) -> Iterator[Owner]:
    pod = create_pod(server)
    with pod.owner() as client:
        yield Owner(server, pod, client)


@pytest.fixture
def leaves_nothing(owner: Owner) -> Iterator[Callable[[str], None]]:
    """At the end of the test the pod's root has the members it had, and no file is left over.

    Calling it with a target checks at once that nothing is there.
    """
    before = owner.client.members(owner.root)
    blobs = owner.blobs()

    def check(target: str) -> None:
        assert owner.client.get(target).status == 404

    yield check
    assert owner.client.members(owner.root) == before
    owner.wait_until_no_draft_is_left()
    assert owner.blobs() == blobs
