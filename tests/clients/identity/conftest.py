"""A server that is an identity provider, people with accounts there, and what applications are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.people import Person, create_account
from tests.support.server import ServerProcess, server_fixture
from tests.support.websites import Website, running_website

provider = server_fixture(["--idp", "--workers", "2"])


@pytest.fixture
def person(provider: ServerProcess) -> Person:
    """Somebody with an account and a pod of their own, signed in nowhere."""
    return Person(create_account(provider))


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    """Where applications are served from: an origin of its own."""
    with running_website() as site:
        yield site
