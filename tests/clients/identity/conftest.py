"""A server that is an identity provider, people with accounts there, and what applications are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.people import Person, create_account
from tests.support.server import ServerProcess, running_server
from tests.support.websites import Website, running_website


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("provider") / "root"
    with running_server(ServerProcess(root=root, options=["--idp", "--workers", "2"])) as server:
        yield server


@pytest.fixture
def person(provider: ServerProcess) -> Person:
    """Somebody with an account and a pod of their own, signed in nowhere."""
    return Person(create_account(provider))


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    """Where applications are served from: an origin of its own."""
    with running_website() as site:
        yield site
