"""Linking Nostr keys on the account page, by an extension of the browser."""

from __future__ import annotations

import json
import time

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.nostr_extension import Extension
from tests.support.browser_people import AT_BOTH_WIDTHS, sign_in, sign_out, violations
from tests.support.client import Client
from tests.support.nostr import NostrKey, nostr
from tests.support.people import PASSWORD, Account, create_account
from tests.support.server import Answer, ServerProcess, server_fixture

WAIT_MS = 1500
"""How long the page waits for an extension."""

EARLIER = "event => signedAnew({...event, created_at: event.created_at - 61})"
ELSEWHERE = """event => signedAnew({
    ...event, tags: event.tags.map(([name, value]) => [name, name === "u" ? `${value}/` : value]),
})"""

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.feature("nostr")]


provider = server_fixture(["--idp", "--trusted-proxy", "127.0.0.1", "--trusted-proxy", "::1"])


@pytest.fixture
def other_person(provider: ServerProcess) -> Account:
    """Somebody else with an account."""
    return create_account(provider)


def ask(
    provider: ServerProcess,
    method: str,
    path: str,
    body: str | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    with Client(provider) as client:
        return client.request(method, path, body, headers or {})


def press(page: Page) -> None:
    page.get_by_role("button", name="Link a Nostr key").click()


def link(page: Page) -> None:
    press(page)
    page.get_by_text("The Nostr key has been linked").wait_for()


def problem(page: Page) -> str:
    alert = page.locator("#nostr-link [role=alert]:not(:empty)")
    alert.wait_for()
    return alert.inner_text()


def did_document(provider: ServerProcess, key: NostrKey) -> Answer:
    return ask(provider, "GET", f"/.well-known/did/nostr/{key.public}.json")


@AT_BOTH_WIDTHS
def test_a_key_is_linked_listed_and_unlinked(
    page: Page, extension: Extension, provider: ServerProcess, person: Account
) -> None:
    """What the extension is asked to sign is for that alone."""
    sign_in(page, provider, person)
    link(page)
    page.get_by_text("The whole key").click()
    text = page.inner_text("main")
    assert extension.npub(page) in text
    assert extension.key.public in text
    assert "in your profile" in text
    document = json.loads(did_document(provider, extension.key).body)
    assert document["alsoKnownAs"] == [person.web_id]
    page.get_by_role("button", name="Unlink npub1").click()
    page.get_by_text("The Nostr key has been unlinked").wait_for()
    assert extension.key.public not in page.inner_text("main")
    assert did_document(provider, extension.key).status == 404


def test_the_extension_signs_one_thing_only(
    page: Page, extension: Extension, provider: ServerProcess, person: Account
) -> None:
    """A-125, A-126"""
    sign_in(page, provider, person)
    extension.refuse(page)
    press(page)
    problem(page)
    [asked] = extension.asked(page)
    tags = asked["tags"]
    assert isinstance(tags, list)
    named = dict(tags)
    assert len(bytes.fromhex(named.pop("challenge"))) == 32
    assert named == {"u": f"{provider.base_url}/idp/account/nostr", "method": "POST"}
    assert (asked["kind"], asked["content"]) == (27235, "")


def test_rules_may_name_the_webid_or_the_key(
    page: Page,
    extension: Extension,
    provider: ServerProcess,
    person: Account,
    other_person: Account,
) -> None:
    place = f"/{other_person.name}/shared/"
    owner = {"Authorization": f"Bearer {other_person.token}", "Content-Type": "text/turtle"}
    for name, agent in (("by-web-id", person.web_id), ("by-key", extension.key.did)):
        rules = (
            "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
            f"<#r> a acl:Authorization; acl:agent <{agent}>; acl:accessTo <{name}>;"
            " acl:mode acl:Read.\n"
            f"<#o> a acl:Authorization; acl:agent <{other_person.web_id}>; acl:accessTo <{name}>;"
            " acl:mode acl:Read, acl:Write, acl:Control."
        )
        assert ask(provider, "PUT", place + name, "<#a> <#b> <#c>.", owner).status == 201
        assert ask(provider, "PUT", f"{place}{name}.acl", rules, owner).status == 201

    def statuses() -> list[int]:
        found = []
        for name in ("by-web-id", "by-key"):
            url = f"{provider.base_url}{place}{name}"
            event = extension.key.event("GET", url, int(time.time()))
            found.append(ask(provider, "GET", place + name, None, nostr(event)).status)
        return found

    assert statuses() == [403, 200]
    sign_in(page, provider, person)
    link(page)
    assert statuses() == [200, 200]


def test_a_key_need_not_be_published(
    page: Page, extension: Extension, provider: ServerProcess, person: Account
) -> None:
    """A-128, with keys only: the box is left by the tabulator, the button pressed by Enter."""
    sign_in(page, provider, person)
    box = page.get_by_label("Name the key in my profile")
    box.focus()
    expect(box).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Link a Nostr key")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_text("The Nostr key has been linked").wait_for()
    assert "in your profile" not in page.inner_text("main")
    assert did_document(provider, extension.key).status == 404


def test_a_key_of_another_account_is_refused(
    page: Page,
    extension: Extension,
    chromium: Browser,
    provider: ServerProcess,
    person: Account,
    other_person: Account,
) -> None:
    sign_in(page, provider, person)
    link(page)
    context = chromium.new_context(service_workers="block")
    extension.install(context)
    other = context.new_page()
    sign_in(other, provider, other_person)
    press(other)
    assert problem(other) == "This key is linked to another account."
    other.reload()
    assert "npub1" not in other.inner_text("main")


def test_without_an_extension_the_page_says_so(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    """And goes on to work."""
    page.clock.install(time=time.time())
    sign_in(page, provider, person)
    page.clock.pause_at(time.time() + 10)
    press(page)
    button = page.get_by_role("button", name="Link a Nostr key")
    expect(button).to_be_disabled()
    page.clock.run_for(WAIT_MS + 100)
    assert "no Nostr extension" in problem(page)
    expect(button).to_be_enabled()
    sign_out(page)
    page.get_by_text("You are signed out").wait_for()


def test_an_extension_may_come_late(
    page: Page, context: BrowserContext, provider: ServerProcess, person: Account
) -> None:
    """After the button was pressed, even."""
    extension = Extension(NostrKey.new())
    extension.install(context, there=False)
    page.clock.install(time=time.time())
    sign_in(page, provider, person)
    page.clock.pause_at(time.time() + 10)
    press(page)
    page.clock.run_for(WAIT_MS - 200)
    extension.comes(page)
    page.clock.run_for(100)
    page.get_by_text("The Nostr key has been linked").wait_for()


def test_a_person_who_declines_can_try_again(
    page: Page, extension: Extension, provider: ServerProcess, person: Account
) -> None:
    sign_in(page, provider, person)
    extension.refuse(page)
    press(page)
    assert problem(page) == "Nothing was done: the extension did not sign."
    extension.refuse(page, False)
    link(page)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("event => ({...event, sig: '0'.repeat(128)})", "The event has no valid signature."),
        (EARLIER, "The event is too old or from the future."),
        (ELSEWHERE, "The event is for another URL."),
        ("() => null", "Nothing was done: the extension did not sign."),
    ],
)
def test_an_unsolicited_event_links_nothing(
    page: Page,
    extension: Extension,
    provider: ServerProcess,
    person: Account,
    change: str,
    said: str,
) -> None:
    """Of another key, time or address."""
    sign_in(page, provider, person)
    extension.change(page, change)
    press(page)
    assert problem(page) == said
    page.reload()
    assert "npub1" not in page.inner_text("main")


def test_an_answer_is_good_once_and_in_its_browser_only(
    page: Page,
    extension: Extension,
    chromium: Browser,
    provider: ServerProcess,
    person: Account,
) -> None:
    """A-126"""
    sign_in(page, provider, person)
    context = chromium.new_context(service_workers="block")
    other = context.new_page()
    sign_in(other, provider, person)
    with page.expect_request("**/idp/account/nostr") as first:
        link(page)
    again = {"authorization": first.value.headers["authorization"]}
    send = """headers => fetch("/idp/account/nostr", {method: "POST", headers})
        .then(async answer => [answer.status, (await answer.json()).error])"""
    assert page.evaluate(send, again) == [400, "Challenge expired or invalid"]
    extension.change(page, "event => { window.signed = event; throw new Error(); }")
    press(page)
    problem(page)
    fresh = page.evaluate('"Nostr " + btoa(JSON.stringify(signed))')
    refused = other.evaluate(send, {"authorization": fresh})
    assert refused == [400, "Challenge expired or invalid"]


def test_an_old_session_requires_a_new_sign_in_and_returns(
    page: Page, extension: Extension, provider: ServerProcess, person: Account
) -> None:
    """A-86: what the server says then is tested where time can be moved."""

    def refuse(route: Route) -> None:
        route.fulfill(status=403, json={"error": "Sign in again", "message": "Sign in again"})

    sign_in(page, provider, person)
    page.route("**/idp/nostr/challenge", refuse)
    press(page)
    page.wait_for_url("**/idp/login?again=nostr*")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/.pages/security?view=sign-in")


def test_a_key_is_unlinked_without_scripts(
    page: Page,
    extension: Extension,
    chromium: Browser,
    provider: ServerProcess,
    person: Account,
) -> None:
    sign_in(page, provider, person)
    link(page)
    context = chromium.new_context(java_script_enabled=False)
    other = context.new_page()
    sign_in(other, provider, person)
    assert "To link a key, allow scripts on this page." in other.inner_text("main")
    assert not other.get_by_role("button", name="Link a Nostr key").is_visible()
    other.get_by_role("button", name="Unlink npub1").click()
    other.get_by_text("The Nostr key has been unlinked").wait_for()


def test_axe_finds_nothing_where_keys_are(
    chromium: Browser, provider: ServerProcess, person: Account, axe: str
) -> None:
    """With the whole key shown, and with something that went wrong, on a phone."""
    context = chromium.new_context(service_workers="block", viewport={"width": 375, "height": 700})
    extension = Extension(NostrKey.new())
    extension.install(context)
    page = context.new_page()
    sign_in(page, provider, person)
    link(page)
    extension.refuse(page)
    press(page)
    problem(page)
    page.get_by_text("The whole key").click()
    assert violations(page, axe) == {}
