"""One server for the clients of a module, and a container of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.clients.client_home import Home, StartClient
from tests.support.chromium import running_chromium
from tests.support.client import Pod, create_pod
from tests.support.client_process import Agent, running_client
from tests.support.server import ServerProcess, server_fixture

_numbers = itertools.count()


server = server_fixture()


@pytest.fixture(scope="module")
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


@pytest.fixture(scope="module")
def other(server: ServerProcess) -> Agent:
    """Somebody with a pod of their own."""
    pod = create_pod(server)
    return Agent(pod.web_id, pod.token)


@pytest.fixture
def home(pod: Pod) -> Iterator[Home]:
    """A container that only its owner may use."""
    path = f"{pod.root}private/test-{next(_numbers)}/"
    with pod.owner() as owner:
        assert owner.put(path, "", "text/turtle").status == 201
        yield Home(pod, owner, path)


@pytest.fixture(scope="module")
def start_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartClient]:
    """Start the node process of a scenario module; it ends with the tests of the module."""
    logs: Path = tmp_path_factory.mktemp("node")
    with ExitStack() as running:
        yield lambda scenario: running.enter_context(
            running_client(scenario, logs / f"{next(_numbers)}.stderr")
        )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser
