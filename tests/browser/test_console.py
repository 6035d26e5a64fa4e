"""The operator's console in a real browser, from the first start on, at two widths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyotp
import pytest
from playwright.sync_api import Browser, Page, expect

from podstead.web.pages.addresses import SECURITY
from tests.support.browser_people import (
    IN_EVERY_WINDOW,
    PHONE_WIDTH,
    SCHEMES,
    Window,
    become_the_first_operator,
    printed_link,
    sign_in,
    violations,
)
from tests.support.client import Client
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess, running_server

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
        link = printed_link(server)
        with Window(PHONE_WIDTH, scripts=False).new_context(chromium) as context:
            page = context.new_page()
            page.goto(link)
            become_the_first_operator(page)
        yield Operated(server, link, create_account(server))


@pytest.fixture
def operator(page: Page, operated: Operated) -> Page:
    """A browser of the operator."""
    sign_in_as(page, operated, "olga")
    return page


def sign_in_as(page: Page, operated: Operated, name: str) -> None:
    account = Account(operated.server, name, "", "")
    sign_in(page, operated.server, account)


def test_every_page_of_the_console_is_accessible(
    operator: Page, operated: Operated, axe: str
) -> None:
    page = operator
    bob = f"accounts/{operated.bob.name}"
    addresses = {
        "accounts": "accounts",
        "account": bob,
        "delete": f"{bob}/delete",
        "link": f"{bob}/link",
        "log": "log?events=person",
        "health": "health",
        "settings": "settings",
        "setting": "settings/registration",
        "mail": "settings/mail",
        "invitations": "invitations",
    }
    found: dict[str, object] = {}
    for name, address in addresses.items():
        answer = page.goto(operated.url(address))
        if answer is None or answer.status != 200:
            found[name] = f"status {answer and answer.status}"
            continue
        found[name] = violations(page, axe)
        for scheme in SCHEMES if PICTURES else ():
            page.emulate_media(color_scheme=scheme)
            width = page.evaluate("innerWidth")
            file = Path(PICTURES or "") / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=file, full_page=name != "settings")
    assert not {name: each for name, each in found.items() if each}


@IN_EVERY_WINDOW
def test_an_operator_helps_a_person_who_has_lost_the_password(
    chromium: Browser, window: Window, operator: Page, operated: Operated
) -> None:
    person = create_account(operated.server)
    page = operator
    page.goto(operated.url("accounts"))
    page.get_by_role("searchbox", name="Name or address").fill(person.name)
    page.get_by_role("button", name="Search", exact=True).last.click()
    page.get_by_role("link", name=person.name, exact=True).click()
    page.get_by_role("link", name="Create a link…").click()
    page.get_by_role("button", name="Create the link").click()
    link = page.locator("code.secret").inner_text()

    context = window.new_context(chromium)
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Password", exact=True).fill("other words than before")
    page.get_by_label("Repeat the password").fill("other words than before")
    page.get_by_role("button", name="Set the password and sign in").click()
    page.get_by_role("link", name="Recent events").click()
    expect(page.get_by_text("One-time sign-in link created")).to_be_visible()
    page.goto(link)
    expect(page.get_by_text("This link has been used")).to_be_visible()


@IN_EVERY_WINDOW
def test_an_operator_manages_an_account_to_its_end(operator: Page, operated: Operated) -> None:
    """Quota, sessions, disabling, deleting; the log names each action."""
    page = operator
    person = create_account(operated.server)
    account = operated.url(f"accounts/{person.name}")
    page.goto(account)
    page.get_by_label("A limit of its own").check()
    page.get_by_label("Megabytes").fill("5")
    page.get_by_role("button", name="Set the quota").click()
    expect(page.get_by_text(f"The quota of {person.name} is set")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("of 5 MB")
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_text("signed out everywhere")).to_be_visible()
    page.get_by_role("link", name="Disable…").click()
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_text("The account is disabled")).to_be_visible()
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("link", name="Disable…")).to_be_visible()
    page.get_by_role("link", name="Delete…").click()
    page.get_by_label("name of the pod").fill(person.name)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Accounts and pods")).to_be_visible()
    with Client(operated.server) as public:
        assert public.get(f"/{person.name}/").status == 401
    page.goto(operated.url("log"))
    logged = page.get_by_role("row").filter(has_text="olga")
    for event in ("Quota set", "Account disabled", "Account enabled", "Account deleted"):
        expect(logged.filter(has_text=event).first).to_be_visible()


@pytest.mark.feature("two_factor")
@IN_EVERY_WINDOW
def test_an_operator_makes_another_one_and_resets_a_second_factor(
    chromium: Browser, window: Window, operator: Page, operated: Operated
) -> None:
    person = create_account(operated.server)
    context = window.new_context(chromium)
    theirs = context.new_page()
    sign_in_as(theirs, operated, person.name)
    page = operator
    for action, title, button, done, status in (
        ("Make an operator…", "Make {} an operator?", "Make an operator", "an operator now", 200),
        (
            *("No longer an operator…", "Take the console away from {}?"),
            *("No longer an operator", "no longer an operator", 404),
        ),
    ):
        page.goto(operated.url(f"accounts/{person.name}"))
        page.get_by_role("link", name=action).click()
        expect(page.get_by_role("heading", name=title.format(person.name))).to_be_visible()
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("status")).to_contain_text(f"{person.name} is {done}.")
        answer = theirs.goto(operated.url("accounts"))
        assert answer is not None
        assert answer.status == status

    theirs.goto(f"{operated.server.base_url}{SECURITY}")
    theirs.get_by_role("link", name="Add an authenticator app").click()
    app = pyotp.TOTP(theirs.locator("input[name=secret]").input_value())
    theirs.get_by_label("Code that the app shows now").fill(app.now())
    theirs.get_by_role("button", name="Add", exact=True).click()
    expect(theirs.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    page.get_by_role("link", name="Reset…").click()
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("has been reset")
    theirs.goto(f"{operated.server.base_url}{SECURITY}")
    expect(theirs.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in_as(theirs, operated, person.name)
    theirs.goto(f"{operated.server.base_url}{SECURITY}")
    expect(theirs.get_by_role("link", name="Add an authenticator app")).to_be_visible()


@IN_EVERY_WINDOW
def test_an_operator_invites_somebody_and_looks_after_the_server(
    operator: Page, operated: Operated
) -> None:
    page = operator
    page.goto(operated.url("invitations"))
    expect(page.get_by_text("Registration is open")).to_be_visible()
    page.get_by_label("How many people can use it").fill("3")
    page.get_by_role("button", name="Create the invitation").click()
    expect(page.locator("code.secret").first).to_contain_text("/idp/register")
    page.goto(operated.url("invitations"))
    expect(page.get_by_text("3 of 3")).to_be_visible()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("There is no invitation")).to_be_visible()
    page.goto(operated.url("health"))
    expect(page.get_by_role("heading", name="Slow requests")).to_be_visible()
    page.goto(operated.url("settings"))
    expect(page.get_by_text("--idp", exact=True).locator("visible=true")).to_have_count(1)


def test_the_first_start_leads_to_the_console_at_a_desk(
    page: Page, axe: str, tmp_path: Path
) -> None:
    """On a phone without scripts, the operator of the other tests has followed such a link."""
    with running_server(ServerProcess(root=tmp_path / "root", options=["--idp"])) as server:
        page.goto(printed_link(server))
        assert violations(page, axe) == {}
        become_the_first_operator(page)


def test_the_link_of_the_start_works_once(page: Page, operated: Operated) -> None:
    page.goto(operated.link)
    expect(page.get_by_text("This link has been used")).to_be_visible()
