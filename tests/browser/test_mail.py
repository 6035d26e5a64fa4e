"""Confirming an address and choosing a new password in a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support.browser_people import SCHEMES, show_account, violations
from tests.support.mail import Received
from tests.support.people import PASSWORD
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until

PHONE: ViewportSize = {"width": 360, "height": 740}
DESK: ViewportSize = {"width": 1280, "height": 800}
PICTURES = os.environ.get("PODSTEAD_PICTURES")

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.feature("mail")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mail")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    options = ["--idp", "--mail", f"file:{folder / 'sent'}"]
    options += ["--operator-contact", "help@pods.example"]
    with running_server(ServerProcess(folder / "root", options=options)) as server:
        yield server


def last_message_to(folder: Path, recipient: str, subject: str) -> Received:
    found: list[Received] = []

    def has_arrived() -> bool:
        for path in (folder / "sent").glob("*.eml"):
            parsed = message_from_bytes(path.read_bytes(), policy=policy.default)
            assert isinstance(parsed, EmailMessage)
            received = Received(recipient, parsed)
            if recipient in str(parsed["To"]) and subject in received.subject:
                found.append(received)
        return bool(found)

    wait_until(has_arrived, subject)
    return found[0]


def check(page: Page, name: str, axe: str) -> None:
    """The page is accessible and fits, at every width; takes pictures if they are asked for."""
    if page.viewport_size == PHONE:
        assert not violations(page, axe), name
    for scheme in SCHEMES if PICTURES else ():
        page.emulate_media(color_scheme=scheme)
        path = Path(PICTURES or "") / f"mail-{name}-{page.evaluate('innerWidth')}-{scheme}.png"
        page.screenshot(path=path, full_page=True)


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["360", "1280"])
def test_a_person_confirms_the_address_and_gets_a_new_password(
    chromium: Browser, server: ServerProcess, folder: Path, axe: str, size: ViewportSize
) -> None:
    name = f"person-{size['width']}"
    context = chromium.new_context(service_workers="block", viewport=size)
    page = context.new_page()
    page.goto(f"{server.base_url}/idp/register")
    page.get_by_label("Name of your pod").fill(name)
    page.get_by_label("E-mail address").fill(f"{name}@example.org")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    page.wait_for_url("**/.pages/welcome")
    check(page, "welcome", axe)
    page.goto(f"{server.base_url}/.pages/security")
    check(page, "security", axe)

    message = last_message_to(folder, f"{name}@example.org", "Confirm")
    page.goto(server.base_url + message.link)
    check(page, "verify", axe)
    page.get_by_role("button", name="Yes, confirm the address").click()
    expect(page.get_by_role("status")).to_contain_text("is confirmed")
    check(page, "verified", axe)

    context = chromium.new_context(service_workers="block", viewport=size)
    page = context.new_page()
    page.goto(f"{server.base_url}/idp/login")
    check(page, "login", axe)
    page.get_by_role("link", name="Forgotten your password?").click()
    check(page, "forgot", axe)
    page.get_by_label("E-mail address or pod name").fill(name)
    page.get_by_role("button", name="Send me a link").click()
    expect(page.get_by_role("status")).to_contain_text("If there is such an account")
    check(page, "sent", axe)
    message = last_message_to(folder, f"{name}@example.org", "Choose a new password")
    if PICTURES:
        page.set_content(message.html)
        page.screenshot(path=Path(PICTURES) / f"mail-message-{size['width']}.png")
    page.goto(server.base_url + message.link)
    page.get_by_label("Password", exact=True).fill("other words than before")
    page.get_by_label("Repeat the password").fill("other words than before")
    page.get_by_role("button", name="Set the password and sign in").click()
    show_account(page)


def test_it_works_without_scripts(chromium: Browser, server: ServerProcess) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.base_url}/.pages/forgot")
    page.get_by_label("E-mail address or pod name").fill("nobody")
    page.get_by_role("button", name="Send me a link").click()
    expect(page.get_by_role("status")).to_contain_text("If there is such an account")
