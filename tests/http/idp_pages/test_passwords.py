"""Choosing a password: one rule, a warning of common ones, and what a new one does not end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from podstead.app.operator.administration import open_root
from podstead.config import Settings
from podstead.idp.passwords import COMMON_PASSWORDS, MIN_CHARACTERS
from podstead.storage.record_store import RecordStore
from podstead.web.pages.addresses import SECURITY
from tests.http.idp_pages.test_passkeys import SCRIPT, listed, register
from tests.support.application import BASE, Server, Start, password_of
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import csrf_token, sign_in, whole_account
from tests.support.nostr import NostrKey
from tests.support.nostr_pages import link
from tests.support.passkeys import SoftAuthenticator

NewBrowser = Callable[[], Browser]
NEW = "quite another one"
COMMON = "password123"
SHORT = "7 chars"
WARNING = "one of the 1,000 most common ones"
STAYS = "Still valid after the new password"


async def registered(browser: Browser, password: str, name: str = "carol") -> Page:
    page = await browser.get("/idp/register")
    return await browser.send(
        page, "/idp/register", username=name, password=password, confirmPassword=password
    )


async def change(browser: Browser, new: str, current: str | None = None) -> Page:
    page = await whole_account(browser)
    typed = {"current": current or password_of("alice"), "new": new, "confirm": new}
    return await whole_account(browser, await browser.send(page, "/idp/account/password", **typed))


# --- the rule ---------------------------------------------------------------------------------


async def test_pages_and_programs_get_the_same_error_for_a_short_password(
    server: Server, browser: Browser, new_browser: NewBrowser
) -> None:
    said = f"A password must have at least {MIN_CHARACTERS} characters; choose a longer one"
    page = await registered(browser, SHORT)
    assert (page.status, said in page.text) == (400, True)
    owner = new_browser()
    account = await sign_in(owner)
    page = await change(owner, SHORT)
    assert f"Choose a password of {MIN_CHARACTERS} to 1,024 characters" in page.text

    sent: dict[str, Any] = {"name": "carol", "username": "carol", "email": "carol@example.org"}
    sent |= {"password": SHORT, "confirmPassword": SHORT}
    changed = {"current": password_of("alice"), "new": SHORT}
    csrf = {"X-CSRF-Token": csrf_token(account)}
    for asked, path, body in (
        (new_browser(), "/.pods", sent),
        (new_browser(), "/idp/register", sent),
        (owner, "/idp/account/password", changed),
    ):
        answer = await asked.ask(
            "POST", path, headers=SCRIPT | csrf, body=json.dumps(body).encode()
        )
        assert answer.status == 400, answer.text
        assert answer.json()["error"] == "Password must be at least 8 characters"
        assert answer.json()["message"].startswith(said)


# --- common passwords -------------------------------------------------------------------------


def test_the_list_has_what_may_be_chosen_only() -> None:
    assert len(COMMON_PASSWORDS) == 1000
    assert all(len(each) >= MIN_CHARACTERS for each in COMMON_PASSWORDS)
    assert {COMMON, "12345678", "iloveyou"} <= COMMON_PASSWORDS


@pytest.mark.parametrize("password", [COMMON, "Password123", "QWERTYUIOP"])
async def test_a_common_password_is_taken_and_warned_of(browser: Browser, password: str) -> None:
    page = await registered(browser, password)
    assert page.path == "/.pages/welcome"
    assert WARNING in page.text
    assert WARNING in (await whole_account(browser)).text


async def test_who_signs_in_with_a_common_password_is_warned_until_it_is_changed(
    browser: Browser, new_browser: NewBrowser
) -> None:
    await registered(browser, COMMON)
    other = new_browser()
    page = await other.get("/idp/login")
    page = await other.send(page, "/idp/login", username="carol", password=COMMON)
    assert WARNING in page.text
    assert WARNING not in (await change(other, NEW, COMMON)).text
    assert WARNING in (await change(other, "iloveyou", NEW)).text


async def test_other_passwords_are_not_warned_of(browser: Browser) -> None:
    assert WARNING not in (await registered(browser, NEW)).text


# --- what a new password does not end ---------------------------------------------------------


async def test_where_nothing_stays_nothing_is_listed(browser: Browser) -> None:
    await sign_in(browser)
    page = await change(browser, NEW)
    assert "Your password has been changed" in page.text
    assert STAYS not in page.text


async def test_what_a_new_password_does_not_end_is_listed_with_a_way_to_end_each(
    start: Start, settings: Settings, clock: FakeClock
) -> None:
    server = await start(clock=clock, idp=True, webid_tls=True)
    browser, passkey, key, stated = (
        Browser(server.application),
        SoftAuthenticator(BASE),
        NostrKey.new(),
        NostrKey.new(),
    )
    page = await sign_in(browser)
    await register(browser, passkey)
    assert (await link(browser, clock, key, sent={"publish": False})).status == 201
    await state(server, stated)
    await browser.send(await whole_account(browser), "/idp/account/certificates")
    page = await whole_account(browser)
    await browser.send(page, "/idp/account/client-credentials", name="backup")
    token_id = await token_of_the_operator(settings, clock)

    page = await change(browser, NEW)
    stays = page.text[page.text.index(STAYS) :].partition("</section>")[0]
    for shown in ("Passkey", "my key", "Client credentials", "backup", "Nostr key</strong>",
                  "Client certificate", "Token of your pod", token_id,
                  "sign requests for as long as your profile names it"):  # fmt: skip
        assert shown in stays, shown
    [shown_passkey] = await listed(browser)
    actions = [each.action.partition("?")[0] for each in page.forms if f'"{each.action}"' in stays]
    assert f"/idp/account/passkeys/{shown_passkey['id']}" in actions
    assert f"/idp/account/nostr/{key.public}" in actions
    ended = set()
    for action in dict.fromkeys(actions):
        page = await whole_account(browser, await browser.send(page, action))
        assert page.path == SECURITY, action
        ended.add(action.split("/")[3])
    assert ended == {"passkeys", "nostr", "certificates", "client-credentials", "tokens"}
    page = await change(browser, password_of("alice"), NEW)
    stays = page.text[page.text.index(STAYS) :].partition("</section>")[0]
    assert stays.count("<li>") == 1  # the key that only the profile can take back


async def state(server: Server, key: NostrKey) -> None:
    same = "http://www.w3.org/2002/07/owl#sameAs"
    update = f"INSERT DATA {{ <{BASE}/alice/#me> <{same}> <{key.did}> }}"
    headers = {"Content-Type": "application/sparql-update"}
    answer = await server.alice.request("PATCH", "/alice/", headers=headers, body=update.encode())
    assert answer.status < 300, answer.text


async def token_of_the_operator(settings: Settings, clock: FakeClock) -> str:
    async with open_root(replace(settings, simple_tokens=True)) as root:
        records = RecordStore(root.records.store, clock, root.records.randomness)
        await replace(root.tokens, records=records).create("alice")
        return (await root.tokens.list("alice"))[0].token_id


# --- tokens that the operator made ------------------------------------------------------------


async def test_the_owner_sees_and_revokes_a_token_that_the_operator_made(
    browser: Browser, settings: Settings, clock: FakeClock
) -> None:
    token_id = await token_of_the_operator(settings, clock)
    page = await sign_in(browser)
    assert token_id in page.text
    path = f"/idp/account/tokens/{token_id}"
    assert (await browser.ask("GET", path, headers=SCRIPT)).json()["id"] == token_id
    page = await whole_account(browser, await browser.send(page, path))
    assert "The token has been revoked" in page.text
    assert "Token of the pod revoked" in page.text
    async with open_root(settings) as root:
        [record] = await root.tokens.list("alice")
    assert record.revoked_s is not None
    answer = await browser.ask("GET", "/idp/account/tokens", headers=SCRIPT)
    assert answer.json() == {"tokens": []}
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(page)}
    assert (await browser.ask("DELETE", path, headers=headers)).status == 404


async def test_nobody_sees_or_revokes_the_token_of_another_pod(
    browser: Browser, settings: Settings, clock: FakeClock
) -> None:
    token_id = await token_of_the_operator(settings, clock)
    page = await sign_in(browser, "bob")
    assert token_id not in page.text
    path = f"/idp/account/tokens/{token_id}"
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(page)}
    statuses = [
        (await browser.ask(method, path, headers=headers)).status for method in ("GET", "DELETE")
    ]
    assert statuses == [404, 404]
