"""The provider's pages in a browser: accessible, in light and dark, and with the keyboard alone."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.tour import tour
from tests.support.browser_people import (
    CHECK,
    SCHEMES,
    WITHOUT_SCRIPTS,
    App,
    allow,
    show_account,
    sign_in,
    type_password,
    violations,
)
from tests.support.people import PASSWORD, Account
from tests.support.server import ServerProcess

pytestmark = pytest.mark.needs("chromium")


TOUR_PAGES = 23


def test_every_page_is_accessible_fits_and_stays_here(
    page: Page, provider: ServerProcess, app: App, person: Account, axe: str
) -> None:
    """Labels, contrast, landmarks, titles, names of everything that can be used, in both colour
    schemes and at both widths. No page requests another origin or breaks its policy (A-45)."""
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(_origin(request)))
    page.on(
        "console",
        lambda message: complaints.append(message.text) if "Policy" in message.text else None,
    )
    found = {}
    titles = []
    for name in tour(page, provider, app, person):
        found[name] = violations(page, axe)
        titles.append(page.title())
    assert {name: each for name, each in found.items() if each} == {}
    assert len(found) == TOUR_PAGES
    assert all(title.endswith(urlsplit(provider.base_url).netloc) for title in titles)
    assert len(set(titles)) >= 13
    assert set(asked) == {provider.base_url, app.redirect_uri.rstrip("/")}
    assert complaints == []


def test_axe_finds_what_is_wrong(page: Page, axe: str) -> None:
    """So that its finding nothing means something."""
    page.set_content("<p style='color: #ccc; background: #fff'>Pale</p><input><img src='data:,'>")
    page.evaluate(axe)
    found = {each["rule"] for each in page.evaluate(CHECK)}
    assert {"color-contrast", "image-alt", "label", "document-title"} <= found


def test_axe_finds_what_is_pale_in_one_colour_scheme_only(page: Page, axe: str) -> None:
    pale = "@media (prefers-color-scheme: dark) {p {color: #222; background: #111}}"
    page.set_content(f"<style>{pale}</style><p>Pale in the dark</p>")
    found = violations(page, axe)
    for width in (360, 1280):
        rules = [{each["rule"] for each in found[f"{width}, {scheme}"]} for scheme in SCHEMES]
        assert rules[1] - rules[0] == {"color-contrast"}


@WITHOUT_SCRIPTS
def test_everything_works_without_scripts(
    page: Page, provider: ServerProcess, app: App, person: Account
) -> None:
    for _ in tour(page, provider, app, person):
        pass


@pytest.mark.parametrize("scripts", [True, False])
def test_an_answer_by_form_gets_to_the_application(
    chromium: Browser, app: App, person: Account, scripts: bool
) -> None:
    """A-53: by itself, and by its button where scripts do not run."""
    context = chromium.new_context(service_workers="block", java_script_enabled=scripts)
    page = context.new_page()
    page.goto(app.request(response_mode="form_post"))
    type_password(page, person.name)
    allow(page)
    if not scripts:
        page.get_by_role("button", name="Continue").click()
    page.wait_for_url(app.redirect_uri)
    text = page.inner_text("p")
    assert "code=" in text
    assert "state=the-state" in text


# --- with keys only -----------------------------------------------------------------------------


def test_signing_in_and_allowing_with_keys_only(page: Page, app: App, person: Account) -> None:
    """The first field has the focus, and Enter sends a form."""
    page.goto(app.request(prompt="consent"))
    _has_focus(page, "E-mail address or pod name")
    page.keyboard.type(person.name)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Allow", exact=True).wait_for()
    _tab_to(page, "Allow")
    assert page.evaluate("document.activeElement.matches(':focus-visible')")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url(f"{app.redirect_uri}?code=**")


def test_a_wrong_password_leaves_the_keys_where_they_are_needed(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    """The name is there still; typing goes on at the password."""
    page.goto(f"{provider.base_url}/idp/login")
    _has_focus(page, "E-mail address or pod name")
    page.keyboard.type(person.name)
    page.keyboard.press("Tab")
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    page.get_by_role("alert").wait_for()
    _has_focus(page, "Password")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    show_account(page)


def test_registering_with_keys_only(page: Page, provider: ServerProcess, person: Account) -> None:
    """What is wrong has the focus, and its text is the field's description."""
    page.goto(f"{provider.base_url}/idp/register")
    _has_focus(page, "Name of your pod")
    for typed in (person.name, f"new-{person.name}@example.org", PASSWORD, PASSWORD):
        page.keyboard.type(typed)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("alert").wait_for()
    _has_focus(page, "Name of your pod")
    described = page.evaluate(
        """() => document.activeElement.getAttribute("aria-describedby").split(" ")
            .map(id => document.getElementById(id).textContent).join(" ")"""
    )
    assert "Another pod already has this name" in described
    page.keyboard.press("Control+a")
    page.keyboard.type(f"{person.name}b")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    for typed in (PASSWORD, PASSWORD):
        page.keyboard.type(typed)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/.pages/welcome")
    page.locator("summary", has_text="Your addresses").press("Enter")
    web_id = f"{provider.base_url}/{person.name}b/#me"
    expect(page.get_by_role("main").get_by_text(web_id, exact=True)).to_be_visible()


def test_the_account_with_keys_only(page: Page, provider: ServerProcess, person: Account) -> None:
    """Opens a form, changes the address, makes and removes client credentials, signs out."""
    sign_in(page, provider, person)
    _tab_to(page, "Change your e-mail address")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type(f"changed-{person.email}")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("status").wait_for()
    page.goto(f"{provider.base_url}/.pages/security?view=account")
    assert f"changed-{person.email}" in page.inner_text("main")
    page.goto(f"{provider.base_url}/.pages/security?view=programs")
    _tab_to(page, "Create client credentials")
    page.keyboard.press("Enter")
    page.get_by_text("Copy the secret now").wait_for()
    _tab_to(page, "Done")
    page.keyboard.press("Enter")
    show_account(page)
    _tab_to(page, "Remove")
    page.keyboard.press("Enter")
    page.get_by_text("The client credentials have been removed").wait_for()
    _tab_to(page, person.name)
    page.keyboard.press("Enter")
    _tab_to(page, "Sign out")
    page.keyboard.press("Enter")
    page.get_by_text("You are signed out").wait_for()


def test_what_a_button_of_a_list_does_is_in_its_name(
    page: Page, provider: ServerProcess, app: App, person: Account
) -> None:
    """For who hears the buttons one after another: not only "Disconnect"."""
    sign_in(page, provider, person)
    page.goto(app.request())
    page.get_by_role("button", name="Allow", exact=True).click()
    page.goto(f"{provider.base_url}/.pages/apps")
    page.get_by_role("button", name="Disconnect Field Notes").wait_for()
    for view in ("sign-in", "events"):
        page.goto(f"{provider.base_url}/.pages/security?view={view}")
        page.get_by_role("button", name="Sign out Chrome on Linux").wait_for()


def _has_focus(page: Page, label: str) -> None:
    """A page gives its first field the focus when it is painted first, not when it is loaded."""
    expect(page.get_by_label(label, exact=True)).to_be_focused()


def _tab_to(page: Page, text: str) -> None:
    """Press Tab until what has the focus reads so."""
    read = "document.activeElement.textContent.trim()"
    for _ in range(60):
        if page.evaluate(read) == text:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {text}")


def _origin(request: Request) -> str:
    parts = urlsplit(request.url)
    return f"{parts.scheme}://{parts.netloc}"
