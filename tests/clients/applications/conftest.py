"""A provider, a person, and a browser in which applications of other origins are opened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.clients.applications.sites import no_other_host
from tests.support.client import Client
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess, server_fixture

DEADLINE_MS = 30_000
"""For one step of a person, on a machine that may be busy."""


provider = server_fixture(["--idp"])


@pytest.fixture
def account(provider: ServerProcess) -> Account:
    """Somebody with an account and a pod of their own."""
    return create_account(provider)


@pytest.fixture
def owner(account: Account) -> Iterator[Client]:
    """Another client for the same person, to look and to prepare by."""
    with account.owner() as client:
        yield client


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A tab of a browser that has been nowhere yet, and that reaches this machine only."""
    context = chromium.new_context()
    expect.set_options(timeout=DEADLINE_MS)
    context.set_default_timeout(DEADLINE_MS)
    no_other_host(context)
    yield context.new_page()
    context.close()
