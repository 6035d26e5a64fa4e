"""The operator's console in a real browser, from the first start on, at two widths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from tests.support.browser_people import SCHEMES, sign_in, violations
from tests.support.people import PASSWORD, Account, create_account
from tests.support.server import ServerProcess, running_server

PHONE: ViewportSize = {"width": 360, "height": 740}
DESK: ViewportSize = {"width": 1280, "height": 800}
PICTURES = os.environ.get("PODSTEAD_PICTURES")

pytestmark = pytest.mark.needs("chromium")


@dataclass(frozen=True)
class Operated:
    """A server whose first operator has just followed the link that the start printed."""

    server: ServerProcess
    link: str
    bob: Account

    def url(self, page: str) -> str:
        return f"{self.server.base_url}/.pages/console/{page}"


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Operated]:
    server = ServerProcess(root=tmp_path_factory.mktemp("console") / "root", options=["--idp"])
    with running_server(server):
        line = server.wait_for_line("  http")
        found = re.search(r"http://\S+/\.pages/link/[0-9a-f]{64}", line)
        assert found is not None
        page = chromium.new_page()
        page.goto(found[0])
        page.get_by_label("Name of your pod").fill("olga")
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_label("Repeat the password").fill(PASSWORD)
        page.get_by_role("button", name="Create the account").click()
        expect(page.get_by_role("heading", name="Accounts and pods")).to_be_visible()
        page.close()
        yield Operated(server, found[0], create_account(server))


@pytest.fixture(params=[PHONE, DESK], ids=["360", "1280"])
def operator(
    request: pytest.FixtureRequest, chromium: Browser, operated: Operated
) -> Iterator[BrowserContext]:
    """A browser of the operator, at two widths."""
    context = chromium.new_context(viewport=request.param)
    sign_in_as(context.new_page(), operated, "olga")
    yield context
    context.close()


def sign_in_as(page: Page, operated: Operated, name: str) -> None:
    account = Account(operated.server, name, "", "")
    sign_in(page, operated.server, account)


def test_every_page_of_the_console_is_accessible(
    operator: BrowserContext, operated: Operated, axe: str
) -> None:
    page = operator.new_page()
    bob = f"accounts/{operated.bob.name}"
    addresses = {
        "accounts": "accounts",
        "account": bob,
        "delete": f"{bob}/delete",
        "link": f"{bob}/link",
        "log": "log?events=person",
        "health": "health",
        "settings": "settings",
        "invitations": "invitations",
    }
    found: dict[str, object] = {}
    for name, address in addresses.items():
        answer = page.goto(operated.url(address))
        if answer is None or answer.status != 200:
            found[name] = f"status {answer and answer.status}"
            continue
        found[name] = violations(page, axe)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        for scheme in SCHEMES if PICTURES else ():
            page.emulate_media(color_scheme=scheme)
            width = page.evaluate("innerWidth")
            file = Path(PICTURES or "") / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=file, full_page=name != "settings")
    assert not {name: each for name, each in found.items() if each}


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_an_operator_helps_a_person_who_has_lost_the_password(
    chromium: Browser, operated: Operated, *, scripts: bool
) -> None:
    person = create_account(operated.server)
    context = chromium.new_context(java_script_enabled=scripts)
    page = context.new_page()
    sign_in_as(page, operated, "olga")
    page.goto(operated.url("accounts"))
    page.get_by_role("searchbox", name="Name, e-mail address or WebID").fill(person.name)
    page.get_by_role("button", name="Search", exact=True).last.click()
    page.get_by_role("link", name=person.name, exact=True).click()
    page.get_by_role("link", name="Create a link…").click()
    page.get_by_role("button", name="Create the link").click()
    link = page.locator("code.secret").inner_text()
    context.close()

    context = chromium.new_context(java_script_enabled=scripts)
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Password", exact=True).fill("other words than before")
    page.get_by_label("Repeat the password").fill("other words than before")
    page.get_by_role("button", name="Set the password and sign in").click()
    page.get_by_role("link", name="Recent events").click()
    expect(page.get_by_text("One-time sign-in link created")).to_be_visible()
    page.goto(link)
    expect(page.get_by_text("This link has been used")).to_be_visible()
    context.close()


def test_the_link_of_the_start_works_once(page: Page, operated: Operated) -> None:
    page.goto(operated.link)
    expect(page.get_by_text("This link has been used")).to_be_visible()
