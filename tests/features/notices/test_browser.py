"""The bell and the page of notices in a browser, with scripts and without."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.support.browser_fixtures import (
    app,
    application,
    axe,
    chromium,
    context,
    page,
    person,
    provider,
    window,
)
from tests.support.browser_people import (
    IN_EVERY_WINDOW,
    App,
    Window,
    allow,
    sign_in,
    violations,
)
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess


def ask_and_refuse(page: Page, provider: ServerProcess, person: Account) -> None:
    """Somebody asks for access, and the person refuses it."""
    other = page.context.browser
    assert other is not None
    asker = create_account(provider)
    context = other.new_context(service_workers="block")
    try:
        page_of_asker = context.new_page()
        sign_in(page_of_asker, provider, asker)
        page_of_asker.goto(f"{provider.base_url}/.pages/ask/{person.name}/private/")
        page_of_asker.get_by_role("button", name="Send the request").click()
        page_of_asker.get_by_text("Your request was sent").wait_for()
        page.goto(f"{provider.base_url}/.pages/requests")
        page.get_by_role("button", name="Refuse").click()
        page.get_by_text("The request was removed.").wait_for()
        page_of_asker.goto(f"{provider.base_url}/.pages/")
        expect(page_of_asker.get_by_role("link", name="Notices 1 not read")).to_be_visible()
        expect(page_of_asker.get_by_role("heading", name="New for you")).to_be_visible()
    finally:
        context.close()


@IN_EVERY_WINDOW
def test_what_is_new_is_counted_opened_and_marked(
    page: Page,
    app: App,
    provider: ServerProcess,
    person: Account,
    axe: str,
    window: Window,
) -> None:
    sign_in(page, provider, person)
    bell = page.locator(".bell")
    page.goto(app.request(prompt="consent"))
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}**")
    page.goto(f"{provider.base_url}/.pages/")
    expect(bell).to_have_accessible_name("Notices 1 not read")
    if window.scripts:
        assert violations(page, axe) == {}
    bell.click()
    text = "The application “Field Notes” may use your pod"
    expect(page.get_by_role("link", name=text)).to_be_visible()
    if window.scripts:
        assert violations(page, axe) == {}
    size = bell.bounding_box()
    assert size is not None
    assert min(size["width"], size["height"]) >= 24
    page.get_by_role("link", name=text).click()
    expect(page).to_have_url(f"{provider.base_url}/.pages/apps")
    expect(bell).to_have_accessible_name("Notices")
    page.goto(app.request(prompt="consent"))
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}**")
    page.goto(f"{provider.base_url}/.pages/notices")
    expect(bell).to_have_accessible_name("Notices 1 not read")
    page.get_by_role("button", name=f"Mark as read: {text}").click()
    expect(bell).to_have_accessible_name("Notices")
    expect(page.get_by_role("button", name="Mark all as read")).to_have_count(0)


def test_whoever_asked_for_access_is_told_the_answer(
    page: Page,
    provider: ServerProcess,
    person: Account,
) -> None:
    sign_in(page, provider, person)
    ask_and_refuse(page, provider, person)
