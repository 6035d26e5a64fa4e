"""Signing in with a Nostr key, by an extension of the browser."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.nostr_extension import Extension
from tests.support.browser_people import (
    AT_BOTH_WIDTHS,
    App,
    allow,
    show_account,
    sign_in,
    type_password,
    violations,
)
from tests.support.nostr import NostrKey
from tests.support.people import PASSWORD, Account
from tests.support.server import ServerProcess, server_fixture

NO_EXTENSION = "This browser has no Nostr extension"
NO_ACCOUNT = (
    "No account here has this key. If you have an account, sign in to it in another way, and link "
    "the key there."
)
NOT_SIGNED = "Nothing was done: the extension did not sign."

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.feature("nostr")]


provider = server_fixture(["--idp", "--trusted-proxy", "127.0.0.1", "--trusted-proxy", "::1"])


@pytest.fixture
def linked(page: Page, extension: Extension, provider: ServerProcess, person: Account) -> Account:
    """Somebody who has linked the key of the extension, and signed out."""
    sign_in(page, provider, person)
    page.get_by_role("button", name="Link a Nostr key").click()
    page.get_by_text("The Nostr key has been linked").wait_for()
    page.context.clear_cookies()
    return person


@pytest.fixture
def stating(extension: Extension, provider: ServerProcess, person: Account, page: Page) -> Account:
    """Somebody who allows the key of the extension to sign in, which only their profile names."""
    with person.owner() as client:
        same = "<http://www.w3.org/2002/07/owl#sameAs>"
        update = f"INSERT DATA {{ <{person.web_id}> {same} <{extension.key.did}> }}"
        headers = {"Content-Type": "application/sparql-update"}
        answer = client.request("PATCH", f"/{person.name}/", update, headers)
    assert answer.status < 300, answer.text
    page.goto(f"{provider.base_url}/idp/login")
    type_password(page, person.name)
    page.get_by_role("button", name="Allow signing in").click()
    page.get_by_text("You can now sign in with this key of your profile").wait_for()
    page.context.clear_cookies()
    return person


def press(page: Page) -> None:
    ways = page.locator("details.ways")
    if ways.get_attribute("open") is None:
        ways.locator("summary").click()
    page.get_by_role("button", name="Sign in with Nostr").click()


def problem(page: Page) -> str:
    alert = page.locator("#nostr-sign-in [role=alert]:not(:empty)")
    alert.wait_for()
    return alert.inner_text()


@AT_BOTH_WIDTHS
def test_an_application_gets_a_code_by_a_linked_key(page: Page, linked: Account, app: App) -> None:
    page.goto(app.request())
    press(page)
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}?code=**")
    assert "state=the-state" in page.url


def test_the_account_shows_by_a_linked_key(
    page: Page, linked: Account, provider: ServerProcess
) -> None:
    """A-126"""
    page.goto(f"{provider.base_url}/idp/login")
    press(page)
    show_account(page)
    page.get_by_label(f"Signed in as {linked.name}").wait_for()
    [session] = [each for each in page.context.cookies() if "session" in str(each.get("name"))]
    assert session["expires"] == -1


def test_a_person_who_ticks_the_box_stays_signed_in(
    page: Page, linked: Account, provider: ServerProcess
) -> None:
    page.goto(f"{provider.base_url}/idp/login")
    page.get_by_label("Stay signed in on this device").check()
    press(page)
    show_account(page)
    [session] = [each for each in page.context.cookies() if "session" in str(each.get("name"))]
    assert session["expires"] > 0


@pytest.mark.feature("passkeys")
def test_a_linked_key_signs_in_again(page: Page, linked: Account, provider: ServerProcess) -> None:
    page.goto(f"{provider.base_url}/idp/login?again=passkeys")
    press(page)
    page.wait_for_url("**/.pages/security#sign-in")


def type_name(page: Page, person: Account) -> None:
    page.get_by_label("E-mail address or pod name").fill(person.name)


def test_an_allowed_key_of_the_profile_signs_in_to_the_account_that_is_named(
    page: Page, stating: Account, app: App
) -> None:
    page.goto(app.request())
    press(page)
    assert problem(page).startswith("No account here has this key")
    type_name(page, stating)
    press(page)
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}?code=**")


def test_a_key_that_only_the_profile_names_is_not_enough_to_sign_in_again(
    page: Page, stating: Account, provider: ServerProcess
) -> None:
    """The person is sent to sign in again, and told what will do."""
    page.goto(f"{provider.base_url}/idp/login")
    type_name(page, stating)
    press(page)
    show_account(page)
    page.get_by_role("button", name="Link a Nostr key").click()
    page.wait_for_url("**/idp/login?again=nostr*")
    press(page)
    assert problem(page).startswith("Only your profile names this key, which is not enough here")
    type_password(page, stating.name)
    page.wait_for_url("**/.pages/security?view=sign-in")


@AT_BOTH_WIDTHS
def test_a_key_without_an_account_gets_one(
    page: Page, extension: Extension, person: Account, app: App
) -> None:
    """A-131"""
    page.goto(app.request())
    press(page)
    assert problem(page) == NO_ACCOUNT
    page.get_by_role("link", name="Create an account with this key").click()
    page.wait_for_url("**/idp/register?uid=**")
    npub = extension.npub(page)
    assert npub in page.inner_text("main")
    assert page.get_by_label("Sign in with my Nostr key as well").is_checked()
    page.get_by_label("Name of your pod").fill(f"{person.name}x")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}?code=**")
    page.context.clear_cookies()
    page.goto(app.request())
    press(page)
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}?code=**")


@pytest.mark.parametrize("where", ["an application", "the account"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("({...event, sig: '0'.repeat(128)})", "The event has no valid signature."),
        (
            "signed({...event, created_at: event.created_at - 120})",
            "The event is too old or from the future.",
        ),
        ("signed({...event, kind: 22242})", "The event has the wrong kind."),
        (
            "signed({...event, tags: [['u', 'https://pod.example/'], ...event.tags.slice(1)]})",
            "The event is for another URL.",
        ),
        ("null", NOT_SIGNED),
    ],
    ids=["signature", "time", "kind", "address", "nothing"],
)
def test_an_unsolicited_event_signs_nobody_in(
    page: Page,
    extension: Extension,
    linked: Account,
    provider: ServerProcess,
    app: App,
    where: str,
    change: str,
    said: str,
) -> None:
    key = list(extension.key.secret.to_bytes(32, "big"))
    page.goto(app.request() if where == "an application" else f"{provider.base_url}/idp/login")
    signed = f"changed => NostrTools.finalizeEvent(changed, Uint8Array.from({key}))"
    extension.change(page, f"event => (signed => {change})({signed})")
    press(page)
    assert problem(page) == said
    extension.change(page, "event => event")
    press(page)
    if where == "an application":
        allow(page)
    account = "**/.pages/security"
    page.wait_for_url(account if where == "the account" else f"{app.redirect_uri}?code=**")


def test_an_event_signs_in_once(page: Page, linked: Account, app: App) -> None:
    answers: list[tuple[int, object]] = []

    def send_twice(route: Route) -> None:
        first, second = route.fetch(), route.fetch()
        answers.extend((each.status, each.json()) for each in (first, second))
        route.fulfill(response=first)

    page.goto(app.request())
    page.route("**/schnorr-login", send_twice)
    press(page)
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}?code=**")
    assert [status for status, _ in answers] == [200, 401]
    assert answers[1][1] == {"success": False, "error": "The event has already been used"}


def test_without_an_extension_the_page_says_so_and_stays_of_use(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    page.goto(f"{provider.base_url}/idp/login")
    press(page)
    assert problem(page).startswith(NO_EXTENSION)
    expect(page.locator("#schnorrBtn")).to_be_focused()
    type_password(page, person.name)
    show_account(page)


def test_an_extension_may_come_late(
    context: BrowserContext, page: Page, provider: ServerProcess, person: Account
) -> None:
    """It is waited for."""
    extension = Extension(NostrKey.new())
    extension.install(context, there=False)
    page.clock.install(time=time.time())
    page.goto(f"{provider.base_url}/idp/login")
    page.clock.pause_at(time.time() + 10)
    press(page)
    expect(page.locator("#schnorrBtn")).to_be_disabled()
    page.clock.run_for(1000)
    extension.comes(page)
    page.clock.run_for(100)
    assert problem(page) == NO_ACCOUNT


def test_a_person_who_declines_to_sign_can_sign_in_otherwise(
    page: Page, extension: Extension, linked: Account, app: App
) -> None:
    page.goto(app.request())
    extension.refuse(page)
    press(page)
    assert problem(page) == NOT_SIGNED
    type_password(page, linked.name)
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}?code=**")


def test_keys_alone_are_enough(page: Page, linked: Account, provider: ServerProcess) -> None:
    """The keys of the keyboard."""
    page.goto(f"{provider.base_url}/idp/login")
    expect(page.get_by_label("E-mail address or pod name")).to_be_focused()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#schnorrBtn")).to_be_focused()
    page.keyboard.press("Enter")
    show_account(page)


def test_without_scripts_no_key_is_offered(chromium: Browser, provider: ServerProcess) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{provider.base_url}/idp/login")
    assert not page.get_by_role("button", name="Sign in with Nostr").is_visible()


def test_axe_finds_nothing_where_a_key_signs_in(
    chromium: Browser, provider: ServerProcess, app: App, axe: str
) -> None:
    """With the button, with what went wrong, and with the form that links the key."""
    context = chromium.new_context(service_workers="block", viewport={"width": 375, "height": 700})
    Extension(NostrKey.new()).install(context)
    page = context.new_page()
    page.goto(app.request())
    assert violations(page, axe) == {}
    press(page)
    problem(page)
    assert violations(page, axe) == {}
    page.get_by_role("link", name="Create an account with this key").click()
    page.wait_for_url("**/idp/register?uid=**")
    assert violations(page, axe) == {}
