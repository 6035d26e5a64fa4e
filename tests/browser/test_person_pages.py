"""The pages about the person in a real browser: at two widths, with scripts and without."""

from __future__ import annotations

import base64
import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser_people import (
    AT_BOTH_WIDTHS,
    IN_EVERY_WINDOW,
    App,
    allow,
    sign_in,
    violations,
)
from tests.support.people import Account
from tests.support.server import ServerProcess

PAGES = (
    "/.pages/",
    "/.pages/welcome",
    "/.pages/profile",
    "/.pages/activity",
    "/.pages/storage",
    "/.pages/apps",
    *(
        f"/.pages/security?view={view}"
        for view in ("sign-in", "browsers", "programs", "events", "account")
    ),
)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture
def signed_in(page: Page, provider: ServerProcess, person: Account) -> Page:
    """A browser in which the person is signed in."""
    sign_in(page, provider, person)
    return page


def test_every_page_is_accessible_and_as_wide_as_the_window(
    signed_in: Page, provider: ServerProcess, axe: str
) -> None:
    page = signed_in
    refused: list[str] = []
    page.on(
        "console",
        lambda said: refused.append(said.text) if "by Playwright" not in said.text else None,
    )
    for path in PAGES:
        page.goto(provider.base_url + path)
        assert violations(page, axe) == {}, path
    assert refused == []  # nothing that the policy of the pages forbids


@IN_EVERY_WINDOW
def test_the_profile_is_saved_with_a_picture(signed_in: Page, provider: ServerProcess) -> None:
    page = signed_in
    page.goto(f"{provider.base_url}/.pages/profile")
    page.get_by_label("Name", exact=True).fill("Maria Example")
    page.get_by_label("Links").fill("example.org")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your profile is saved.")).to_be_visible()
    expect(page.get_by_role("link", name="https://example.org")).to_be_visible()
    page.get_by_label("Choose a picture").set_input_files(
        {"name": "me.png", "mimeType": "image/png", "buffer": PNG}
    )
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("Your picture is saved.")).to_be_visible()
    picture = page.get_by_role("img", name="Your picture")
    expect(picture).to_be_visible()
    assert picture.evaluate("each => each.naturalWidth") == 1
    page.get_by_role("button", name="Remove the picture").click()
    expect(page.get_by_text("Your profile shows no picture any more.")).to_be_visible()


@AT_BOTH_WIDTHS
def test_addresses_are_copied(
    context: BrowserContext, signed_in: Page, provider: ServerProcess, person: Account
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = signed_in
    page.goto(f"{provider.base_url}/.pages/")
    page.get_by_text("Your addresses").click()
    page.get_by_role("button", name="Copy: Your address").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{provider.base_url}/{person.name}/#me"


@IN_EVERY_WINDOW
def test_everything_about_the_person_is_found_and_ended(
    signed_in: Page, provider: ServerProcess, person: Account, app: App
) -> None:
    page = signed_in
    page.goto(f"{provider.base_url}/.pages/profile")
    page.get_by_label("A few words about you").fill("Hello")
    page.get_by_label("Only you").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your profile is saved.")).to_be_visible()
    page.goto(f"{provider.base_url}/.pages/activity")
    page.locator("summary", has_text="Filter").click()
    page.get_by_label("What", exact=True).select_option("created")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name="details.ttl")).to_be_visible()
    page.goto(f"{provider.base_url}/.pages/storage")
    expect(page.get_by_role("table", name="By folder").get_by_role("link").first).to_be_visible()
    page.goto(app.request())
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}**")
    page.goto(f"{provider.base_url}/.pages/apps")
    page.get_by_role("button", name="Disconnect Field Notes").click()
    expect(page.get_by_text("No application is connected")).to_be_visible()
    page.goto(f"{provider.base_url}/.pages/security?view=programs")
    page.get_by_label("What they are for").fill("nightly copy")
    page.get_by_role("button", name="Create client credentials").click()
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_text("nightly copy")).to_be_visible()
    page.get_by_role("button", name="Remove nightly copy").click()
    expect(page.get_by_text("The client credentials have been removed.")).to_be_visible()
    page.goto(f"{provider.base_url}/.pages/security?view=events")
    expect(page.get_by_text("Client credentials deleted").first).to_be_visible()
    page.goto(f"{provider.base_url}/.pages/security?view=account")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download everything").click()
    assert download.value.path().stat().st_size > 0
    page.goto(f"{provider.base_url}/.pages/security?view=browsers")
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_text("You are signed out")).to_be_visible()
    sign_in(page, provider, person)
    page.goto(f"{provider.base_url}/idp/account/delete")
    page.get_by_label("To confirm, type the name of your pod").fill(person.name)
    page.get_by_role("button", name="Delete everything").click()
    expect(page.get_by_text("Your account has been deleted")).to_be_visible()


@pytest.mark.feature("passkeys")
def test_a_passkey_is_added_on_the_page_about_security(
    context: BrowserContext, provider: ServerProcess, person: Account
) -> None:
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
            }
        },
    )
    sign_in(page, provider, person)
    page.goto(f"{provider.base_url}/.pages/security")
    page.get_by_label("Name of the new passkey").fill("my phone")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("my phone", exact=True)).to_be_visible()
    assert page.url.endswith("/.pages/security?view=sign-in")


def test_another_browser_is_signed_out_at_once(
    signed_in: Page, chromium: Browser, provider: ServerProcess, person: Account
) -> None:
    """What it shows goes as soon as it asks for anything, and when something changes there."""
    with chromium.new_context(service_workers="block") as elsewhere:
        other = elsewhere.new_page()
        sign_in(other, provider, person)
        with other.expect_response("**/.pages/events/**"):
            other.goto(f"{provider.base_url}/.pages/files/{person.name}/private/")
        page = signed_in
        page.goto(f"{provider.base_url}/.pages/security")
        entries = page.get_by_role("region", name="Signed-in browsers").get_by_role("listitem")
        expect(entries).to_have_count(2)
        entries.filter(has_not_text="this browser").get_by_role("button").click()
        expect(page.get_by_text("That browser has been signed out.")).to_be_visible()
        expect(entries).to_have_count(1)
        page.goto(f"{provider.base_url}/.pages/new/{person.name}/private/?kind=folder")
        page.get_by_label("Name", exact=True).fill("after")
        page.get_by_role("button", name="Create").click()
        other.wait_for_url("**/idp/login**")
        other.goto(f"{provider.base_url}/.pages/files/{person.name}/private/")
        expect(other).to_have_url(re.compile("/idp/login"))
