"""Registration by invitation and with terms, in a real browser, with scripts and without."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.support.browser_people import (
    IN_EVERY_WINDOW,
    SCHEMES,
    Window,
    violations,
)
from tests.support.people import PASSWORD
from tests.support.server import ServerProcess, run_command, running_server

PICTURES = os.environ.get("PODSTEAD_PICTURES")
TERMS = """# House rules

1. Be kind to others.
2. Keep your password to yourself.

| what | how long |
|------|----------|
| logs | 90 days  |
"""

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("registration")
    terms = folder / "terms.md"
    terms.write_text(TERMS)
    named = ["--operator-name", "The reading group", "--operator-contact", "help@pods.example"]
    options = ["--idp", "--registration", "invited", "--terms", str(terms), *named]
    with running_server(ServerProcess(folder / "root", options=options)) as server:
        yield server


def invitation_link(server: ServerProcess) -> str:
    made = run_command("invite", "create", "--json", "--root", str(server.root))
    assert made.returncode == 0, made.stderr
    link: str = json.loads(made.stdout)["link"]
    return link


@IN_EVERY_WINDOW
def test_a_guest_follows_the_link_accepts_the_terms_and_is_in(
    context: BrowserContext, window: Window, server: ServerProcess
) -> None:
    page = context.new_page()
    page.goto(invitation_link(server))
    name = f"guest-{window}"
    page.get_by_label("Name of your pod").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    with context.expect_page() as opened:
        page.get_by_role("link", name="terms of use").click()
    expect(opened.value.get_by_role("heading", name="House rules")).to_be_visible()
    opened.value.close()
    page.get_by_role("button", name="Create the account").click()
    expect(page.get_by_role("heading", name="Create an account and a pod")).to_be_visible()
    page.get_by_label("I accept").check()
    page.get_by_role("button", name="Create the account").click()
    page.wait_for_url("**/.pages/welcome")


def test_every_page_is_accessible_and_fits(page: Page, server: ServerProcess, axe: str) -> None:
    link = invitation_link(server).removeprefix(server.base_url)
    addresses = {"first": "/", "register": link, "terms": "/.pages/terms"}
    for name, address in addresses.items():
        page.goto(server.base_url + address)
        assert not violations(page, axe), name
        if PICTURES:
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                size = page.evaluate("innerWidth")
                path = Path(PICTURES) / f"{name}-{size}-{scheme}.png"
                page.screenshot(path=path, full_page=True)
