"""A provider in use: a real browser, a server with accounts, and an application."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.application_page import running_application
from tests.support.browser_people import ON_THE_WEB, App, Window
from tests.support.chromium import running_chromium
from tests.support.client import Client
from tests.support.node import PAGE_CHECKS, install_packages
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess, server_fixture


@pytest.fixture(scope="module")
def application() -> Iterator[str]:
    """The address of the application, on an origin of its own."""
    with running_application() as url:
        yield url


provider = server_fixture(["--idp"])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(autouse=True)
def nothing_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close what a test has opened in the browser, however the test ends."""
    if "chromium" not in request.fixturenames:
        yield
        return
    chromium: Browser = request.getfixturevalue("chromium")
    before = set(chromium.contexts)
    yield
    for context in set(chromium.contexts) - before:
        context.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core, which checks a page against WCAG's rules and good practice."""
    install_packages(PAGE_CHECKS)
    return (PAGE_CHECKS / "node_modules/axe-core/axe.min.js").read_text()


@pytest.fixture
def window(request: pytest.FixtureRequest) -> Window:
    """The window of ``context``; ``AT_BOTH_WIDTHS`` and ``IN_EVERY_WINDOW`` choose others."""
    window: Window = getattr(request, "param", Window())
    return window


@pytest.fixture
def context(chromium: Browser, window: Window) -> Iterator[BrowserContext]:
    """A browser that has been nowhere yet."""
    with window.new_context(chromium) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def person(provider: ServerProcess) -> Account:
    """Somebody who has just got an account and a pod."""
    return create_account(provider)


@pytest.fixture
def app(provider: ServerProcess, application: str) -> App:
    metadata = {
        "client_name": "Field Notes",
        "redirect_uris": [application, ON_THE_WEB],
        "post_logout_redirect_uris": [application],
        "token_endpoint_auth_method": "none",
    }
    with Client(provider) as client:
        answer = client.request(
            "POST", "/idp/reg", json.dumps(metadata), {"Content-Type": "application/json"}
        )
    assert answer.status == 201, answer.text
    return App(provider, application, json.loads(answer.body)["client_id"])
