"""A provider as its operator starts it, people with accounts there, and applications."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.people import Person, create_account
from tests.support.provider import Provider, running_provider
from tests.support.provider_clients import (
    StartServer,
)
from tests.support.server import ServerProcess, server_fixture
from tests.support.websites import Website, running_website

server = server_fixture(["--idp", "--workers", "2"])
"""A provider with two workers."""


@pytest.fixture
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    started: list[ServerProcess] = []

    def start(*options: str) -> ServerProcess:
        root = tmp_path_factory.mktemp("own") / "root"
        started.append(ServerProcess(root=root, options=options))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def alice(server: ServerProcess) -> Person:
    """Somebody with an account and a pod, signed in nowhere."""
    return Person(create_account(server))


@pytest.fixture
def stranger() -> Iterator[Provider]:
    """A provider on this machine that nobody has to trust."""
    with running_provider() as provider:
        yield provider


@pytest.fixture
def website() -> Iterator[Website]:
    with running_website() as website:
        yield website
