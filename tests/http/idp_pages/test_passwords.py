"""Choosing a password: one rule, a warning of common ones, and what a new one does not end."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from podstead.app.adapters.passwords import MAX_PENDING_HASHES, Argon2Passwords
from podstead.app.operator.administration import open_root
from podstead.config import Settings
from podstead.idp.passwords import COMMON_PASSWORDS, MIN_CHARACTERS, PasswordCheck
from podstead.idp.sign_in import MARK_S
from podstead.storage.record_store import RecordStore
from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, Start, password_of, running
from tests.support.asgi import Answer
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import csrf_token, sign_in, whole_account
from tests.support.nostr import NostrKey
from tests.support.nostr_pages import link, log_in
from tests.support.passkeys import SCRIPT, SoftAuthenticator, listed, register
from tests.support.passkeys import log_in as log_in_by_passkey
from tests.support.passkeys import register as add_passkey

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
    assert said in page.text

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


@pytest.mark.feature("nostr")
@pytest.mark.feature("passkeys")
@pytest.mark.feature("webid_tls")
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
    assert "Token of a pod revoked" in page.text
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


# --- lock out ----------------------------------------------------------------------------------
#
# Who has to wait when a stranger guesses the password of an account, and who does not.


LOCK_OUT_STRANGER: Final = "192.0.2.66"
JSON_FIELDS: Final = {"Content-Type": "application/json", "Accept": "application/json"}
NEW_PASSWORD: Final = "quite another one"


async def guess(
    server: Server, login: str, *, peer: str = LOCK_OUT_STRANGER, password: str = "a wrong guess"
) -> int:
    """The status of a sign-in of a program that has no cookie."""
    body = json.dumps({"username": login, "password": password}).encode()
    answer = await server.public.request(
        "POST", "/idp/credentials", headers=JSON_FIELDS, body=body, peer=peer
    )
    return answer.status


async def lock(server: Server, login: str = "alice") -> None:
    """Guess until signing in with the name has to wait, from one address after the other."""
    for index in range(8):
        if await guess(server, login, peer=f"198.51.100.{index}") == 429:
            return
    raise AssertionError("nobody has to wait")


async def try_again(browser: Browser, password: str | None = None) -> Page:
    """Sign in once more in a browser, after its session ended."""
    page = await browser.get("/idp/login")
    return await browser.send(
        page, "/idp/login", username="alice", password=password or password_of("alice")
    )


async def sign_out(browser: Browser) -> None:
    page = await whole_account(browser)
    await browser.send(page, "/.pages/sign-out")


@pytest.fixture
async def owner(server: Server) -> Browser:
    """A browser that has signed in before, and is signed out."""
    browser = Browser(server.application)
    assert (await sign_in(browser)).path == SECURITY
    await sign_out(browser)
    return browser


async def test_strangers_do_not_keep_the_owner_out(server: Server, owner: Browser) -> None:
    """Not even from the owner's own address, with all failures that it may have in a minute."""
    await lock(server)
    assert (await try_again(Browser(server.application))).status == 429
    for index in range(70):
        await guess(server, f"name{index}", peer=owner.peer)
    assert await guess(server, "bob", peer=owner.peer, password=password_of("bob")) == 429
    assert (await try_again(owner)).path == "/.pages/security"


async def test_an_owner_who_mistypes_can_try_again(server: Server, owner: Browser) -> None:
    await lock(server)
    page = await try_again(owner, "a mistake")
    assert "wrong" in page.text
    assert (await try_again(owner)).path == "/.pages/security"


async def test_a_known_browser_guesses_no_faster_than_others(
    server: Server, owner: Browser
) -> None:
    statuses = [(await try_again(owner, f"guess {index}")).status for index in range(7)]
    assert statuses == [200] * 5 + [429] * 2
    assert (await try_again(owner)).status == 429
    assert (await sign_in(Browser(server.application))).path == SECURITY


async def test_a_browser_is_known_at_the_accounts_that_it_signed_in_to_only(
    server: Server,
) -> None:
    other = Browser(server.application)
    await sign_in(other, "bob")
    await sign_out(other)
    await lock(server)
    assert (await try_again(other)).status == 429


async def test_a_mark_that_the_server_did_not_sign_is_nothing(
    server: Server, owner: Browser
) -> None:
    mark = owner.cookies["podstead-known"]
    device, made_s, signature = mark.split(".")
    await lock(server)
    for forged in (
        f"{'0' * 32}.{made_s}.{signature}",
        f"{device}.{int(made_s) + 1}.{signature}",
        f"{device}.{made_s}.{'0' * 64}",
        "~".join([f"{'0' * 32}.{made_s}.{signature}"] * 4 + [mark]),
        "~~..~.",
        "x" * 2000,
    ):
        owner.cookies["podstead-known"] = forged
        assert (await try_again(owner)).status == 429, forged
    owner.cookies["podstead-known"] = mark
    assert (await try_again(owner)).path == "/.pages/security"


async def test_a_browser_is_known_for_half_a_year(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    clock.advance(MARK_S - 1)
    await lock(server)
    assert (await try_again(owner)).path == "/.pages/security"
    await sign_out(owner)
    clock.advance(MARK_S)
    await lock(server)
    assert (await try_again(owner)).status == 429


async def test_a_new_password_makes_other_browsers_unknown(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    """Whoever had the old one may have signed in to them."""
    other = Browser(server.application)
    page = await sign_in(other)
    clock.advance(5)
    typed = {"current": password_of("alice"), "new": NEW_PASSWORD, "confirm": NEW_PASSWORD}
    await other.send(page, "/idp/account/password", **typed)
    await sign_out(other)
    await lock(server)
    assert (await try_again(owner, NEW_PASSWORD)).status == 429
    assert (await try_again(other, NEW_PASSWORD)).path == "/.pages/security"


async def test_a_mark_outlives_a_new_start_and_signs_nobody_in(
    server: Server, owner: Browser, settings: Settings, clock: FakeClock
) -> None:
    async with running(replace(settings, idp=True), clock=clock) as application:
        again = Browser(application, cookies=dict(owner.cookies))
        assert (await whole_account(again)).path == "/idp/login"
        await lock(server)
        assert (await try_again(again)).path == "/.pages/security"


async def test_a_browser_is_known_at_several_accounts(server: Server, owner: Browser) -> None:
    await sign_in(owner, "bob")
    await sign_out(owner)
    await lock(server)
    assert (await try_again(owner)).path == "/.pages/security"


async def test_failures_of_others_do_not_prevent_changing_the_password(
    server: Server, owner: Browser
) -> None:
    page = await try_again(owner)
    del owner.cookies["podstead-known"]
    await lock(server)
    typed = {"current": password_of("alice"), "new": NEW_PASSWORD, "confirm": NEW_PASSWORD}
    page = await owner.send(page, "/idp/account/password", **typed)
    assert "Your password has been changed" in page.text


@pytest.mark.feature("nostr")
async def test_a_linked_nostr_key_gets_its_try(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    key = NostrKey.new()
    await try_again(owner)
    assert (await link(owner, clock, key)).status == 201
    await lock(server)
    assert (await log_in(Browser(server.application), clock, key)).status == 200


@pytest.mark.feature("passkeys")
async def test_a_passkey_gets_its_try(server: Server) -> None:
    browser = Browser(server.application)
    await sign_in(browser)
    passkey = SoftAuthenticator(BASE)
    assert (await add_passkey(browser, passkey)).status == 200
    await lock(server)
    assert (await log_in_by_passkey(Browser(server.application), passkey)).status == 200


# --- what waiting tells -----------------------------------------------------------------------


@pytest.mark.parametrize("first", ["alice", "alice@example.org", "nobody", "nobody@example.org"])
async def test_waiting_does_not_link_a_pod_name_with_an_email_address(
    server: Server, first: str
) -> None:
    """Whatever name was guessed at, others are as they were: those of the same account too."""
    await lock(server, first)
    others = {"alice", "alice@example.org", "nobody", "nobody@example.org"} - {first}
    for other in sorted(others):
        assert await guess(server, other) == 401, other
    assert await guess(server, first.upper()) == 429


async def test_unknown_names_wait_like_known_ones(server: Server) -> None:
    statuses = {
        login: [await guess(server, login, peer=f"198.51.100.{index}") for index in range(7)]
        for login in ("alice", "alice@example.org", "nobody", "nobody@example.org")
    }
    assert set(map(tuple, statuses.values())) == {(401,) * 5 + (429,) * 2}


# --- Signing in while one address asks for as many hashes of passwords as it can ---------------


STRANGER = "192.0.2.66"
JSON = {"Content-Type": "application/json"}


async def get_token(server: Server, name: str, peer: str, owner: str = "") -> Answer:
    body = json.dumps({"username": name, "password": password_of(owner or name)}).encode()
    return await server.public.request(
        "POST", "/idp/credentials", headers=JSON, body=body, peer=peer
    )


@pytest.mark.parametrize("name", ["bob", "nobody{}"])
async def test_one_address_with_right_passwords_does_not_keep_others_from_signing_in(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """The hashes of the stranger take for ever; what finds no place is 429 for one account, and for
    several 503, in one line of the log each."""
    compare, released = Argon2Passwords._compare, threading.Event()

    def slow(self: Argon2Passwords, password_hash: str, password: str) -> PasswordCheck:
        if password == password_of("bob"):
            released.wait()
        return compare(self, password_hash, password)

    monkeypatch.setattr(Argon2Passwords, "_compare", slow)
    sent = MAX_PENDING_HASHES + 10
    tasks = [
        asyncio.create_task(get_token(server, name.format(number), STRANGER, "bob"))
        for number in range(sent)
    ]
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(60):
            for ended in itertools.islice(
                asyncio.as_completed(tasks), sent - MAX_PENDING_HASHES // 2
            ):
                await ended
            own = await get_token(server, "alice", "192.0.2.1")
    released.set()
    answers = await asyncio.gather(*tasks)
    assert own.status == 200, own.text
    refused = [answer for answer in answers if answer.status in {429, 503}]
    assert len(refused) == sent - MAX_PENDING_HASHES // 2
    assert all(answer.header("retry-after") for answer in refused)
    noted = [each for each in caplog.records if each.name == "podstead.web"]
    assert len(noted) == [answer.status for answer in answers].count(503)
    assert bool(noted) == (name != "bob")
    assert not any(each.exc_info for each in noted)
