"""A server that answers git, for the tests of one module; each test has a pod of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.git import Git
from tests.support.server import ServerProcess, running_server

OPTIONS = ("--git", "--pod-creations-per-hour", "0", "--invalid-credentials-per-minute", "0")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("git") / "root"
    with running_server(ServerProcess(root, OPTIONS)) as running:
        yield running


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
