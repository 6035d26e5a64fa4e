"""The pages about the person in a real browser: at two widths, with scripts and without."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ViewportSize, expect

from tests.support.browser_people import sign_in, violations
from tests.support.people import Account
from tests.support.server import ServerProcess

PHONE: ViewportSize = {"width": 360, "height": 740}
DESK: ViewportSize = {"width": 1280, "height": 800}
PAGES = (
    "/.pages/",
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


@pytest.fixture(params=[PHONE, DESK], ids=["360", "1280"])
def sized(
    request: pytest.FixtureRequest, chromium: Browser, provider: ServerProcess, person: Account
) -> Iterator[BrowserContext]:
    """A browser in which the person is signed in, at two widths."""
    context = chromium.new_context(viewport=request.param)
    sign_in(context.new_page(), provider, person)
    yield context
    context.close()


def test_every_page_is_accessible_and_as_wide_as_the_window(
    sized: BrowserContext, provider: ServerProcess, axe: str
) -> None:
    page = sized.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    for path in PAGES:
        page.goto(provider.base_url + path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= page.evaluate("innerWidth"), path
        assert violations(page, axe) == {}, path
    assert refused == []  # nothing that the policy of the pages forbids


def test_the_profile_is_saved_with_a_picture(
    sized: BrowserContext, provider: ServerProcess, person: Account
) -> None:
    page = sized.new_page()
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


def test_addresses_are_copied(
    sized: BrowserContext, provider: ServerProcess, person: Account
) -> None:
    sized.grant_permissions(["clipboard-read", "clipboard-write"])
    page = sized.new_page()
    page.goto(f"{provider.base_url}/.pages/")
    page.get_by_role("button", name="Copy: WebID").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{provider.base_url}/{person.name}/#me"


def test_all_of_it_works_without_scripts(
    chromium: Browser, provider: ServerProcess, person: Account
) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport=PHONE)
    page = context.new_page()
    sign_in(page, provider, person)
    page.goto(f"{provider.base_url}/.pages/profile")
    page.get_by_label("A few words about you").fill("Hello")
    page.get_by_label("Only you").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your profile is saved.")).to_be_visible()
    page.goto(f"{provider.base_url}/.pages/activity")
    page.get_by_label("What", exact=True).select_option("created")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name="details.ttl")).to_be_visible()
    page.goto(f"{provider.base_url}/.pages/security?view=programs")
    page.get_by_label("What they are for").fill("nightly copy")
    page.get_by_role("button", name="Create client credentials").click()
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_text("nightly copy")).to_be_visible()
    page.get_by_role("button", name="Remove nightly copy").click()
    expect(page.get_by_text("The client credentials have been removed.")).to_be_visible()
    context.close()


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
