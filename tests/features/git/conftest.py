"""A server that answers git, for the tests of one module; each test has a pod of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.git import Git
from tests.support.git_requests import OPTIONS, Start
from tests.support.server import ServerProcess, running_server, server_fixture

server = server_fixture(OPTIONS)


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Git without credentials, in a directory of the test's own."""
    return Git(tmp_path)


@pytest.fixture
def owner(git: Git, pod: Pod) -> Git:
    """Git with the credential of the pod's owner."""
    return git.with_token(pod.token)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers with further options."""
    with contextlib.ExitStack() as servers:

        def begin(*options: str) -> ServerProcess:
            made = ServerProcess(tmp_path / "root", (*OPTIONS, *options))
            return servers.enter_context(running_server(made))

        yield begin
