"""What the owner of an account is told about changes of how they get in: what, when, from where."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from podstead.app.accounts import build_accounts
from podstead.app.adapters.system import SystemRandomness
from podstead.config import Settings
from podstead.idp.security_events import MAX_EVENTS
from podstead.storage.sqlite import SqliteStore
from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, Start, password_of
from tests.support.asgi import Answer
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, csrf_token, sign_in, whole_account
from tests.support.nostr import NostrKey
from tests.support.nostr_pages import link
from tests.support.passkeys import SCRIPT, SoftAuthenticator, listed, log_in, register

NewBrowser = Callable[[], Browser]
NEW = "quite another one"
PEER = "192.0.2.17"


@pytest.fixture
def key() -> SoftAuthenticator:
    return SoftAuthenticator(BASE)


@pytest.fixture
async def owner(browser: Browser) -> Browser:
    """Alice's browser, at an address of its own."""
    browser.peer = PEER
    await sign_in(browser)
    return browser


async def events(browser: Browser) -> list[dict[str, Any]]:
    answer = await browser.ask("GET", "/idp/account/events", headers=SCRIPT)
    assert answer.status == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["events"]
    return found


async def told(browser: Browser) -> list[str]:
    return [each["what"] for each in await events(browser)]


async def post(browser: Browser, path: str, **sent: str) -> Page:
    page = await browser.send(await whole_account(browser), f"/idp/account/{path}", **sent)
    return await whole_account(browser, page)


async def change_password(browser: Browser) -> Page:
    return await post(browser, "password", current=password_of("alice"), new=NEW, confirm=NEW)


async def test_a_new_account_has_no_events(owner: Browser) -> None:
    assert await events(owner) == []
    assert "Nothing has changed yet" in (await whole_account(owner)).text


@pytest.mark.feature("nostr")
@pytest.mark.feature("passkeys")
async def test_each_added_or_removed_sign_in_method_is_listed_with_time_and_address(
    owner: Browser,
    clock: FakeClock,
    key: SoftAuthenticator,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log of the server has each of them, too."""
    caplog.set_level(logging.INFO, "podstead.audit")
    nostr_key = NostrKey.new()
    await register(owner, key)
    clock.advance(1)
    assert (await link(owner, clock, nostr_key)).status == 201
    clock.advance(1)
    await post(owner, "client-credentials", name="backup")
    clock.advance(1)
    [passkey] = await listed(owner)
    await post(owner, f"passkeys/{passkey['id']}")
    clock.advance(1)
    await post(owner, f"nostr/{nostr_key.public}")
    clock.advance(1)
    await post(owner, "email", email="new@example.org", current=password_of("alice"))
    clock.advance(1)
    await change_password(owner)
    found = await events(owner)
    assert [(each["what"], each["subject"][:6]) for each in found] == [
        ("password changed", ""),
        ("e-mail address changed", ""),
        ("Nostr key unlinked", "npub1" + found[2]["subject"][5]),
        ("passkey removed", "my key"),
        ("client credentials created", "backup"),
        ("Nostr key linked", "npub1" + found[5]["subject"][5]),
        ("passkey added", "my key"),
    ]
    logged = {each.getMessage() for each in caplog.records if each.name == "podstead.audit"}
    assert {each["what"] for each in found} <= logged
    assert {each["address"] for each in found} == {PEER}
    assert found[-1]["at"] == "2027-01-15T08:00:00Z"
    assert found[0]["at"] == "2027-01-15T08:00:06Z"
    page = await whole_account(owner)
    for shown in ("Passkey added", "Password changed", PEER, "Firefox", "Jan 15, 2027, 8:00"):
        assert shown in page.text


async def test_nobody_else_sees_them(owner: Browser, new_browser: NewBrowser) -> None:
    await change_password(owner)
    other = new_browser()
    await sign_in(other, "bob")
    assert await events(other) == []
    assert (await new_browser().ask("GET", "/idp/account/events", headers=SCRIPT)).status == 401


@pytest.mark.feature("passkeys")
async def test_a_passkey_that_is_removed_ends_what_it_has_signed_in(
    owner: Browser, new_browser: NewBrowser, key: SoftAuthenticator, app: App
) -> None:
    """Browsers, and what applications got in them; other sessions go on."""
    await register(owner, key)
    thief = new_browser()
    assert (await log_in(thief, key)).status == 200
    page = await thief.get(app.request())
    page = await thief.send(page, f"{page.path}/confirm")
    tokens = await app.tokens(page)
    [passkey] = await listed(owner)
    page = await post(owner, f"passkeys/{passkey['id']}")
    assert "The passkey has been removed" in page.text
    assert (await whole_account(thief)).path == "/idp/login"
    assert await app.refresh(tokens["refresh_token"]) == 400
    assert (await whole_account(owner)).path == SECURITY


@pytest.mark.feature("passkeys")
async def test_removing_the_passkey_of_the_session_signs_out(
    owner: Browser, new_browser: NewBrowser, key: SoftAuthenticator
) -> None:
    await register(owner, key)
    [passkey] = await listed(owner)
    page = await sign_in_by(owner, key)
    removed = await ask(owner, page, f"/idp/account/passkeys/{passkey['id']}")
    assert removed.status == 204
    assert "podstead-session" not in owner.cookies
    assert (await whole_account(owner)).path == "/idp/login"


async def sign_in_by(browser: Browser, key: SoftAuthenticator) -> Page:
    assert (await log_in(browser, key)).status == 200
    return await whole_account(browser)


async def ask(browser: Browser, page: Page, path: str, **sent: str) -> Answer:
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(page)}
    return await browser.ask("DELETE", path, headers=headers, body=json.dumps(sent).encode())


@pytest.mark.feature("passkeys")
async def test_what_another_passkey_has_signed_in_goes_on(
    owner: Browser, new_browser: NewBrowser, key: SoftAuthenticator
) -> None:
    other_key, other = SoftAuthenticator(BASE), new_browser()
    await register(owner, key)
    [passkey] = await listed(owner)
    await register(owner, other_key)
    assert (await log_in(other, other_key)).status == 200
    await post(owner, f"passkeys/{passkey['id']}")
    assert (await whole_account(other)).path == SECURITY


@pytest.mark.feature("webid_tls")
async def test_certificates_are_reported_as_well(start: Start, clock: FakeClock) -> None:
    server = await start(
        clock=clock, idp=True, webid_tls=True, trusted_proxies=(), client_cert_header=None
    )
    browser = Browser(server.application)
    page = await sign_in(browser)
    page = await browser.send(page, "/idp/account/certificates")
    page = await whole_account(browser)
    [form] = [each for each in page.forms if each.action.startswith("/idp/account/certificates/")]
    clock.advance(1)
    await browser.send(page, form.action)
    mark = form.action.partition("?")[0].rpartition("/")[2]
    assert [(each["what"], each["subject"]) for each in await events(browser)] == [
        ("key of a client certificate removed", mark),
        ("client certificate made", mark),
    ]


async def test_acts_of_the_operator_are_listed_as_theirs(
    owner: Browser, store: SqliteStore, settings: Settings, clock: FakeClock
) -> None:
    """Who works on the data root is no client, and has no address."""
    services = build_accounts(settings, store=store, clock=clock, randomness=SystemRandomness())
    account = await services.accounts.find("alice")
    assert account is not None
    await services.credentials.create(account, name="backup")
    [event] = await events(owner)
    assert (event["what"], event["address"]) == ("client credentials created", None)
    assert "the operator of this server" in (await whole_account(owner)).text


@pytest.mark.feature("nostr")
async def test_a_key_that_an_application_adds_to_the_profile_is_reported(
    server: Server, owner: Browser
) -> None:
    """It signs nobody in, yet requests signed with it act as the owner."""
    nostr = pytest.importorskip("podstead.features.nostr.keys")
    keys = sorted(NostrKey.new().public for _ in range(3))
    names = ", ".join(f"<did:nostr:{key}>" for key in keys)
    statement = f"<{BASE}/alice/#me> <http://www.w3.org/2002/07/owl#sameAs> {names}"
    for word in ("INSERT", "DELETE"):
        update = f"{word} DATA {{ {statement} }}".encode()
        headers = {"Content-Type": "application/sparql-update"}
        answer = await server.alice.request(
            "PATCH", "/alice/", headers=headers, body=update, peer="192.0.2.44"
        )
        assert answer.status < 300, answer.text
    found = await events(owner)
    assert {each["what"] for each in found} == {
        "Nostr key named by the profile",
        "Nostr key no longer named by the profile",
    }
    for each in found:
        assert each["subject"] == f"{nostr.npub(keys[0])} and 2 more"
        assert (each["address"], each["by"]) == ("192.0.2.44", "a change of the profile")
    page = await whole_account(owner)
    assert "a change of the profile" in page.text


@pytest.mark.feature("nostr")
async def test_a_linked_and_published_key_is_reported_once(
    owner: Browser, clock: FakeClock
) -> None:
    key = NostrKey.new()
    assert (await link(owner, clock, key)).status == 201
    clock.advance(1)
    await post(owner, f"nostr/{key.public}")
    assert await told(owner) == ["Nostr key unlinked", "Nostr key linked"]


async def test_the_newest_are_kept(owner: Browser, clock: FakeClock) -> None:
    page = await whole_account(owner)
    for index in range(MAX_EVENTS // 2 + 5):
        clock.advance(1)
        headers = SCRIPT | {"X-CSRF-Token": csrf_token(page)}
        body = json.dumps({"name": str(index)}).encode()
        path = "/idp/account/client-credentials"
        made = await owner.ask("POST", path, headers=headers, body=body)
        clock.advance(1)
        assert (await ask(owner, page, f"{path}/{made.json()['id']}")).status == 204
    found = await events(owner)
    assert len(found) == MAX_EVENTS
    assert found[0]["what"] == "client credentials deleted"
    assert found[-1]["subject"] == "5"
