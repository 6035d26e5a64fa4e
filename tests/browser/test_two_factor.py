"""A second factor in a browser: an authenticator app, recovery codes, and a passkey."""

from __future__ import annotations

import re
import time

import pyotp
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.test_passkeys import device_of
from tests.support.browser_people import (
    PHONE_WIDTH,
    show_account,
    sign_in,
    type_password,
    violations,
)
from tests.support.people import Account
from tests.support.server import ServerProcess

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.feature("two_factor")]

SECURITY = "/.pages/security"


def give_password(page: Page, person: Account) -> None:
    page.goto("/idp/login")
    type_password(page, person.name)
    page.wait_for_url("**/idp/second-factor")


def check(page: Page, axe: str) -> None:
    """Axe finds nothing, and nothing is wider than the window, at every width."""
    assert violations(page, axe) == {}


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_person_adds_an_app_and_signs_in_with_it(
    chromium: Browser,
    provider: ServerProcess,
    person: Account,
    axe: str,
    width: int,
    scripts: bool,
) -> None:
    """Everything but the passkey works without scripts. axe itself is a script."""
    context = chromium.new_context(
        service_workers="block",
        base_url=provider.base_url,
        viewport=ViewportSize(width=width, height=740),
        java_script_enabled=scripts,
    )
    page = context.new_page()
    sign_in(page, provider, person)
    page.goto(SECURITY)
    page.get_by_role("link", name="Add an authenticator app").click()
    app = pyotp.TOTP(page.locator("input[name=secret]").input_value())
    picture = page.get_by_role("img", name="QR code").bounding_box()
    assert picture is not None
    assert picture["width"] > 150
    if scripts and width == PHONE_WIDTH:
        check(page, axe)
    now_s = int(time.time())
    page.get_by_label("Code that the app shows now").fill(app.at(now_s))
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    code = page.locator(".codes li").first.inner_text()
    if scripts and width == PHONE_WIDTH:
        check(page, axe)
    page.get_by_role("link", name="I have kept them").click()
    expect(page.get_by_text("10 left")).to_be_visible()
    if scripts and width == PHONE_WIDTH:
        check(page, axe)
    context.clear_cookies()
    give_password(page, person)
    page.get_by_label("Code", exact=True).fill(app.at(now_s))
    page.get_by_role("button", name="Sign in").first.click()
    expect(page.get_by_text("The code is wrong or was used already")).to_be_visible()
    if scripts and width == PHONE_WIDTH:
        check(page, axe)
    page.get_by_label("Code", exact=True).fill(app.at(now_s + 30))
    page.get_by_role("button", name="Sign in").first.click()
    show_account(page)
    context.clear_cookies()
    give_password(page, person)
    page.get_by_text("Use a recovery code").click()
    page.get_by_label("Recovery code").fill(code)
    page.get_by_role("button", name="Sign in").last.click()
    show_account(page)


@pytest.mark.feature("passkeys")
def test_a_passkey_is_the_second_step(
    chromium: Browser, provider: ServerProcess, person: Account
) -> None:
    context = chromium.new_context(service_workers="block", base_url=provider.base_url)
    page = context.new_page()
    page.add_init_script("PublicKeyCredential.isConditionalMediationAvailable = async () => false;")
    device_of(context, page)
    sign_in(page, provider, person)
    page.goto(SECURITY)
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_role("button", name="Require a passkey besides the password").click()
    expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    context.clear_cookies()
    give_password(page, person)
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(re.compile(r"/\.pages/security$"))
