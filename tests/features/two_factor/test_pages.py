"""Signing in with a password and a second factor, and attempts to get around the second one."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import struct
from base64 import b32decode
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from html import unescape
from typing import Any, Final

import pytest

from podstead.config import Settings
from podstead.features.two_factor.codes import TWO_FACTORS
from podstead.features.two_factor.service import TwoFactors
from podstead.idp.records import SESSIONS
from podstead.idp.sign_in import PASSWORD_AND_CODE
from podstead.storage.records import Record
from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, password_of, running
from tests.support.browser import Browser, Form, Page
from tests.support.clock import FakeClock
from tests.support.console import ACCOUNTS, administering, sign_in_operator
from tests.support.idp_pages import App, reply_of, sign_in, whole_account
from tests.support.idp_pages import register as register_app
from tests.support.passkeys import SoftAuthenticator
from tests.support.passkeys import log_in as log_in_by_passkey
from tests.support.passkeys import register as add_passkey

STEP: Final = "/idp/second-factor"
SET_UP: Final = f"{STEP}/set-up"
FACTOR: Final = "/idp/account/two-factor"
RECOVER: Final = "/idp/recover"
NEW: Final = "quite another one"
JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}


def code_of(secret: str, clock: FakeClock, *, ahead: int = 0) -> str:
    """The code that an app shows: RFC 6238 and RFC 4226 section 5.3, written down once more."""
    counter = struct.pack(">Q", clock.now_s() // 30 + ahead)
    digest = hmac.new(b32decode(secret), counter, hashlib.sha1).digest()
    at = digest[-1] & 15
    number = struct.unpack(">I", digest[at : at + 4])[0] & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


def secret_in(page: Page) -> str:
    [secret] = re.findall(r'name="secret" value="([A-Z2-7]{32})"', page.text)
    return str(secret)


def codes_in(page: Page) -> list[str]:
    return re.findall(r"<li><code>([a-z2-7-]{19})</code>", page.text)


async def set_up(browser: Browser, clock: FakeClock) -> tuple[str, list[str]]:
    """Add an app on the page for it; its secret, and the recovery codes."""
    page = await browser.get(FACTOR)
    secret = secret_in(page)
    page = await browser.send(page, FACTOR, code=code_of(secret, clock))
    assert page.status == 200, page.text
    return secret, codes_in(page)


async def give_password(browser: Browser, name: str = "alice") -> Page:
    page = await sign_in(browser, name)
    assert page.path == STEP, page.text
    return page


@pytest.fixture
async def owner(browser: Browser) -> Browser:
    await sign_in(browser)
    return browser


@pytest.fixture
async def secret(owner: Browser, clock: FakeClock) -> str:
    """The secret of the app that Alice has added."""
    secret, _codes = await set_up(owner, clock)
    clock.advance(60)
    return secret


@pytest.fixture
def stranger(server: Server, secret: str) -> Browser:
    """Somebody who knows the password, at another address."""
    return Browser(server.application, peer="192.0.2.66")


async def is_signed_in(browser: Browser) -> bool:
    return (await whole_account(browser)).path == SECURITY


# --- signing in -------------------------------------------------------------------------------


async def test_after_the_password_a_code_is_asked_for(
    stranger: Browser, secret: str, clock: FakeClock
) -> None:
    page = await give_password(stranger)
    assert not await is_signed_in(stranger)
    page = await stranger.send(page, STEP, code=code_of(secret, clock))
    assert page.path == "/.pages/security"


async def test_the_sign_in_continues_where_it_led_to(
    server: Server, stranger: Browser, secret: str, clock: FakeClock
) -> None:
    page = await stranger.get("/idp/login?next=/.pages/files/alice/private/")
    page = await stranger.send(page, "/idp/login", username="alice", password=password_of("alice"))
    page = await stranger.send(page, STEP, code=code_of(secret, clock))
    assert page.path == "/.pages/files/alice/private/"


async def test_an_application_learns_that_two_factors_were_given(
    stranger: Browser, app: App, secret: str, clock: FakeClock, settings: Settings
) -> None:
    page = await stranger.get(app.request())
    action = next(form.action for form in page.forms if "password" in page.text)
    page = await stranger.send(page, action, username="alice", password=password_of("alice"))
    assert page.path == STEP
    page = await stranger.send(page, STEP, code=code_of(secret, clock))
    assert reply_of(page)["code"]
    async with administering(settings, clock=clock) as services:
        account = await services.accounts.find("alice")
        assert account is not None
        sessions = await services.records.of_owner(SESSIONS, account.value.account_id)
    assert PASSWORD_AND_CODE in {each.value.amr for each in sessions}


async def test_a_program_is_told_where_to_send_the_code(
    server: Server, stranger: Browser, secret: str, clock: FakeClock
) -> None:
    await stranger.get("/idp/login")
    headers = {**JSON, "Sec-Fetch-Site": "same-origin"}
    body = json.dumps({"username": "alice", "password": password_of("alice")}).encode()
    answer = await stranger.ask("POST", "/idp/login", headers=headers, body=body)
    assert (answer.status, answer.json()["error"]) == (401, "second_factor_required")
    assert answer.json()["location"] == BASE + STEP
    wrong = await stranger.ask("POST", STEP, headers=headers, body=b'{"code": "abc"}')
    assert (wrong.status, wrong.json()["error"]) == (401, "invalid_grant")
    body = json.dumps({"code": code_of(secret, clock)}).encode()
    answer = await stranger.ask("POST", STEP, headers=headers, body=body)
    assert answer.json()["location"] == f"{BASE}/idp/account"


@pytest.mark.feature("passkeys")
async def test_a_passkey_is_two_factors(
    server: Server, owner: Browser, stranger: Browser, secret: str
) -> None:
    key = SoftAuthenticator(BASE)
    await add_passkey(owner, key)
    page = await give_password(stranger)
    assert 'data-passkeys="sign-in"' in page.text
    await log_in_by_passkey(stranger, key)
    assert await is_signed_in(stranger)


# --- getting around it ------------------------------------------------------------------------


async def test_a_code_is_accepted_once(
    stranger: Browser, secret: str, clock: FakeClock, server: Server
) -> None:
    used = code_of(secret, clock)
    await stranger.send(await give_password(stranger), STEP, code=used)
    other = Browser(server.application)
    page = await other.send(await give_password(other), STEP, code=used)
    assert "The code is wrong or was used already" in page.text
    page = await other.send(page, STEP, code=code_of(secret, clock, ahead=-1))
    assert "The code is wrong or was used already" in page.text
    clock.advance(60)
    page = await other.send(page, STEP, code=code_of(secret, clock))
    assert page.path == "/.pages/security"


@pytest.mark.parametrize(("ahead", "accepted"), [(-2, False), (-1, True), (1, True), (2, False)])
async def test_clocks_may_differ_by_one_step(
    stranger: Browser, secret: str, clock: FakeClock, ahead: int, accepted: bool
) -> None:
    page = await give_password(stranger)
    await stranger.send(page, STEP, code=code_of(secret, clock, ahead=ahead))
    assert await is_signed_in(stranger) is accepted


async def test_without_the_password_there_is_no_second_step(
    server: Server, secret: str, clock: FakeClock
) -> None:
    nobody = Browser(server.application)
    assert (await nobody.get(STEP)).path == "/idp/login"
    page = await nobody.post(STEP, {"code": code_of(secret, clock)})
    assert page.path == "/idp/login"
    assert not await is_signed_in(nobody)


async def test_another_browser_does_not_finish_the_sign_in(
    server: Server, stranger: Browser, secret: str, clock: FakeClock
) -> None:
    await give_password(stranger)
    other = Browser(server.application)
    await other.get("/idp/login")
    await other.post(STEP, {"code": code_of(secret, clock)})
    assert not await is_signed_in(other)


async def test_the_second_step_expires_and_ends_with_the_password(
    server: Server, owner: Browser, stranger: Browser, secret: str, clock: FakeClock
) -> None:
    await give_password(stranger)
    clock.advance(601)
    await stranger.post(STEP, {"code": code_of(secret, clock)})
    assert not await is_signed_in(stranger)
    await give_password(stranger)
    page = await whole_account(owner)
    fields = {"current": password_of("alice"), "new": NEW, "confirm": NEW}
    await owner.send(page, "/idp/account/password", **fields)
    clock.advance(60)
    await stranger.post(STEP, {"code": code_of(secret, clock)})
    assert not await is_signed_in(stranger)


async def test_a_few_wrong_codes_end_the_sign_in_and_the_owner_sees_it(
    owner: Browser, stranger: Browser, secret: str, clock: FakeClock
) -> None:
    page = await give_password(stranger)
    for _ in range(5):
        page = await stranger.post(STEP, {"code": "000000"})
    assert "Too many wrong codes" in page.text
    await stranger.post(STEP, {"code": code_of(secret, clock)})
    assert not await is_signed_in(stranger)
    events = await owner.get(f"{SECURITY}?view=events")
    assert "second factor failed after the right password" in events.text.lower()


async def test_guessing_codes_waits_and_does_not_lock_the_owner_out(
    server: Server, owner: Browser, stranger: Browser, secret: str, clock: FakeClock
) -> None:
    statuses = []
    for _ in range(12):
        page = await sign_in(stranger)
        if page.path == STEP:
            page = await stranger.post(STEP, {"code": "000000"})
        statuses.append(page.status)
    assert 429 in statuses
    page = await whole_account(owner)
    await owner.send(page, "/.pages/sign-out")
    page = await owner.send(await give_password(owner), STEP, code=code_of(secret, clock))
    assert page.path == "/.pages/security"


async def test_codes_that_are_guessed_at_once_get_no_more_tries(
    server: Server, secret: str, clock: FakeClock
) -> None:
    """In as many browsers, as somebody can have who knows the password; the last one is right."""
    browsers = [Browser(server.application) for _ in range(20)]
    for each in browsers:
        await give_password(each)
    codes = ["000000"] * 19 + [code_of(secret, clock)]
    pages = await asyncio.gather(
        *(each.post(STEP, {"code": code}) for each, code in zip(browsers, codes, strict=True))
    )
    assert [page.status for page in pages].count(429) == 15
    assert not await is_signed_in(browsers[-1])


async def test_a_password_alone_gets_no_token(server: Server, secret: str) -> None:
    body = json.dumps({"username": "alice", "password": password_of("alice")}).encode()
    answer = await server.public.request("POST", "/idp/credentials", headers=JSON, body=body)
    assert (answer.status, answer.json()["error"]) == (401, "invalid_grant")
    assert "client credentials" in answer.json()["error_description"]


async def test_a_one_time_link_still_needs_the_second_factor(
    server: Server, settings: Settings, stranger: Browser, secret: str, clock: FakeClock
) -> None:
    async with administering(settings, clock=clock) as services:
        account = await services.accounts.find("alice")
        assert account is not None
        account_id = account.value.account_id
        link = await services.administration.create_sign_in_link(account_id)
    path = f"/.pages/link/{link}"
    page = await stranger.send(await stranger.get(path), path, password=NEW, confirm=NEW)
    assert page.path == STEP
    assert not await is_signed_in(stranger)
    await stranger.send(page, STEP, code=code_of(secret, clock))
    assert await is_signed_in(stranger)


async def test_a_wrong_code_adds_no_app(owner: Browser, clock: FakeClock) -> None:
    page = await owner.get(FACTOR)
    page = await owner.send(page, FACTOR, code="000000")
    assert page.status == 400
    assert len(secret_in(page)) == 32
    page = await owner.post(FACTOR, {**page.form(FACTOR).fields, "secret": "A" * 31, "code": "1"})
    assert page.status == 400
    assert "Your password alone signs you in" in (await owner.get(SECURITY)).text


@pytest.mark.parametrize("action", ["", "/remove", "/recovery-codes", "/passkey"])
async def test_changes_need_the_token_of_the_session_and_a_recent_sign_in(
    owner: Browser, secret: str, clock: FakeClock, action: str
) -> None:
    page = await owner.post(FACTOR + action, {"csrf_token": "0" * 64})
    assert page.status == 403
    token = re.search(r'data-csrf-token="([0-9a-f]{64})"', (await owner.get(SECURITY)).text)
    assert token is not None
    clock.advance(601)
    page = await owner.post(FACTOR + action, {"csrf_token": token[1]})
    assert page.path == "/idp/login"
    assert "Authenticator app" in (await owner.get(SECURITY)).text


# --- recovery codes ---------------------------------------------------------------------------


async def test_a_recovery_code_signs_in_once(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    _secret, codes = await set_up(owner, clock)
    assert len(set(codes)) == 10
    lost = Browser(server.application)
    typed = codes[3].upper().replace("-", " ")
    await give_password(lost)
    page = await lost.post(STEP, {"recovery": typed})
    assert page.path == "/.pages/security"
    again = Browser(server.application)
    await give_password(again)
    page = await again.post(STEP, {"recovery": codes[3]})
    assert "The code is wrong or was used already" in page.text
    assert "9 left" in (await owner.get(SECURITY)).text


async def test_recovery_codes_are_stored_as_hashes_and_renewed(
    server: Server, owner: Browser, clock: FakeClock, settings: Settings
) -> None:
    _secret, codes = await set_up(owner, clock)
    page = await owner.get(SECURITY)
    form = next(each for each in page.forms if "/recovery-codes" in each.action)
    renewed = codes_in(await owner.post(form.action, form.fields))
    assert len(renewed) == 10
    assert not set(renewed) & set(codes)
    async with administering(settings, clock=clock) as services:
        account = await services.accounts.find("alice")
        assert account is not None
        kept = await services.records.read(TWO_FACTORS, account.value.account_id)
    assert kept is not None
    assert not any(code in str(kept.value) for code in renewed)
    lost = Browser(server.application)
    await give_password(lost)
    await lost.post(STEP, {"recovery": codes[0]})
    assert not await is_signed_in(lost)


async def test_a_lost_password_is_replaced_by_a_recovery_code_and_the_second_factor(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    secret, codes = await set_up(owner, clock)
    clock.advance(60)
    lost = Browser(server.application)
    page = await lost.get(RECOVER)
    typed = {"username": "alice", "code": codes[0], "password": NEW, "confirm": NEW}
    page = await lost.send(page, RECOVER, **typed)
    assert page.path == STEP
    await lost.post(STEP, {"recovery": codes[1]})
    assert not await is_signed_in(lost), "codes of one sheet of paper are one factor"
    page = await lost.post(STEP, {"code": code_of(secret, clock)})
    assert page.path == "/.pages/security"
    assert not await is_signed_in(owner), "a new password ends sessions"


async def test_nor_is_another_recovery_code_the_second_factor_of_a_later_sign_in(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    secret, codes = await set_up(owner, clock)
    clock.advance(60)
    finder = Browser(server.application)
    typed = {"username": "alice", "code": codes[0], "password": NEW, "confirm": NEW}
    await finder.send(await finder.get(RECOVER), RECOVER, **typed)
    later = Browser(server.application)
    page = await later.get("/idp/login")
    page = await later.send(page, "/idp/login", username="alice", password=NEW)
    assert page.path == STEP
    assert 'name="recovery"' not in page.text
    await later.post(STEP, {"recovery": codes[1]})
    assert not await is_signed_in(later)
    page = await later.post(STEP, {"code": code_of(secret, clock)})
    assert page.path == "/.pages/security"
    again = Browser(server.application)
    page = await again.get("/idp/login")
    await again.send(page, "/idp/login", username="alice", password=NEW)
    page = await again.post(STEP, {"recovery": codes[1]})
    assert page.path == "/.pages/security", "whoever has the app as well is the owner"


async def test_a_stranger_does_not_keep_the_owner_from_using_a_recovery_code(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    _secret, codes = await set_up(owner, clock)
    stranger = Browser(server.application, peer="192.0.2.66")
    typed = {"username": "alice", "code": "aaaa-bbbb", "password": NEW, "confirm": NEW}
    await stranger.get(RECOVER)
    statuses = [(await stranger.post(RECOVER, typed)).status for _ in range(12)]
    assert 429 in statuses
    lost = Browser(server.application)
    page = await lost.send(await lost.get(RECOVER), RECOVER, **{**typed, "code": codes[0]})
    assert page.path == STEP


async def test_a_recovery_code_without_a_second_factor_is_for_a_lost_password(
    server: Server, owner: Browser
) -> None:
    page = await owner.get(SECURITY)
    form = next(each for each in page.forms if "/recovery-codes" in each.action)
    codes = codes_in(await owner.post(form.action, form.fields))
    lost = Browser(server.application)
    typed = {"username": "alice", "code": codes[0], "password": NEW, "confirm": NEW}
    page = await lost.send(await lost.get(RECOVER), RECOVER, **typed)
    assert page.path == "/.pages/security"


async def test_recovery_tells_nothing_about_accounts(server: Server, owner: Browser) -> None:
    texts = set()
    browser = Browser(server.application)
    typed = {"code": "aaaa-bbbb", "password": NEW, "confirm": NEW}
    for name in ("alice", "nobody"):
        typed["username"] = name
        page = await browser.send(await browser.get(RECOVER), RECOVER, **typed)
        texts.add((page.status, page.text.replace(name, "")))
    assert len(texts) == 1
    statuses = set()
    for _ in range(12):
        statuses.add((await browser.post(RECOVER, typed)).status)
    assert 429 in statuses


# --- what people and operators change ---------------------------------------------------------


async def test_the_account_page_of_the_provider_has_it_as_well(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    """A provider with an origin of its own has no other page for it."""
    secret, codes = await set_up(owner, clock)
    page = await whole_account(owner)
    assert "10 left" in page.text
    renewed = codes_in(await owner.send(page, f"{FACTOR}/recovery-codes"))
    assert len(renewed) == 10
    assert not set(codes) & set(renewed)
    page = await owner.send(await whole_account(owner), f"{FACTOR}/remove")
    assert page.path == SECURITY
    assert "The authenticator app has been removed." in page.text
    assert secret not in page.text


async def test_an_app_is_removed(
    server: Server, owner: Browser, secret: str, clock: FakeClock
) -> None:
    page = await owner.get(SECURITY)
    form = next(each for each in page.forms if "/two-factor/remove" in each.action)
    page = await owner.post(form.action, form.fields)
    assert "The authenticator app has been removed." in page.text
    assert (await sign_in(Browser(server.application))).path == SECURITY


@pytest.mark.feature("passkeys")
async def test_a_passkey_can_be_required_besides_the_password(
    server: Server, owner: Browser
) -> None:
    key = SoftAuthenticator(BASE)
    await add_passkey(owner, key)
    page = await owner.get(SECURITY)
    form = next(each for each in page.forms if "/two-factor/passkey" in each.action)
    assert len(codes_in(await owner.post(form.action, form.fields))) == 10
    page = await give_password(Browser(server.application))
    assert 'data-passkeys="sign-in"' in page.text
    assert 'name="code"' not in page.text
    page = await owner.get(SECURITY)
    form = next(
        each
        for each in page.forms
        if "/account/passkeys/" in each.action and "/name" not in each.action
    )
    page = await owner.post(form.action, form.fields)
    assert page.status == 409


async def test_an_operator_resets_a_second_factor(
    server: Server, owner: Browser, secret: str, clock: FakeClock, settings: Settings
) -> None:
    operator = await sign_in_operator(server, settings, "bob")
    waiting = Browser(server.application)
    await give_password(waiting)
    path = f"{ACCOUNTS}/alice/reset-two-factor"
    page = await operator.send(await operator.get(path), path)
    assert (await waiting.get(STEP)).path == "/idp/login"
    assert "The second factor of alice has been reset." in unescape(page.text)
    assert not await is_signed_in(owner)
    assert (await sign_in(owner)).path == SECURITY
    assert "second factor reset" in (await owner.get(f"{SECURITY}?view=events")).text.lower()
    assert "Second factor reset" in (await operator.get("/.pages/console/log")).text


async def test_operators_do_not_reset_their_own(
    server: Server, settings: Settings, clock: FakeClock
) -> None:
    operator = await sign_in_operator(server, settings, "bob")
    await set_up(operator, clock)
    path = f"{ACCOUNTS}/bob/reset-two-factor"
    page = await operator.send(await operator.get(path), path)
    assert "You cannot do this with your own account" in page.text
    await give_password(Browser(server.application), "bob")


# --- the operator's demand --------------------------------------------------------------------


@pytest.fixture
async def demanding(server: Server, settings: Settings, clock: FakeClock) -> AsyncIterator[Server]:
    """The same server after a restart with ``--require-two-factor``."""
    changed = settings.with_values(idp=True, require_two_factor=True)
    async with running(changed, clock=clock) as application:
        yield replace(server, application=application)


async def test_who_has_no_second_factor_sets_one_up_at_the_next_sign_in(
    demanding: Server, clock: FakeClock
) -> None:
    browser = Browser(demanding.application)
    page = await sign_in(browser)
    assert page.path == SET_UP
    assert not await is_signed_in(browser)
    assert "<svg" in page.text
    wrong = await browser.send(page, SET_UP, code="000000")
    assert wrong.status == 400
    secret = secret_in(wrong)
    page = await browser.send(wrong, SET_UP, code=code_of(secret, clock))
    assert len(codes_in(page)) == 10
    assert 'href="/idp/account"' in page.text
    assert await is_signed_in(browser)
    clock.advance(60)
    other = Browser(demanding.application)
    page = await other.send(await give_password(other), STEP, code=code_of(secret, clock))
    assert page.path == "/.pages/security"


@pytest.mark.feature("passkeys")
async def test_the_password_alone_adds_no_app_where_there_is_a_second_factor(
    server: Server, owner: Browser, demanding: Server, clock: FakeClock
) -> None:
    await add_passkey(owner, SoftAuthenticator(BASE))
    stranger = Browser(demanding.application)
    await give_password(stranger)
    assert (await stranger.get(SET_UP)).path == STEP
    secret = "A" * 32
    page = await stranger.post(SET_UP, {"secret": secret, "code": code_of(secret, clock)})
    assert page.status != 200 or page.path == "/idp/login"
    assert not await is_signed_in(stranger)


async def test_the_last_second_factor_stays_while_it_is_demanded(
    demanding: Server, clock: FakeClock
) -> None:
    browser = Browser(demanding.application)
    page = await sign_in(browser)
    secret = secret_in(page)
    await browser.send(page, SET_UP, code=code_of(secret, clock))
    page = await browser.get(SECURITY)
    assert "/two-factor/remove" not in page.text
    form = next(each for each in page.forms if "/recovery-codes" in each.action)
    page = await browser.post(f"{FACTOR}/remove", {"csrf_token": form.fields["csrf_token"]})
    assert page.status == 409
    await give_password(Browser(demanding.application))


async def test_nobody_gets_a_token_by_the_password_where_a_second_factor_is_demanded(
    demanding: Server,
) -> None:
    body = json.dumps({"username": "alice", "password": password_of("alice")}).encode()
    client = demanding.public.asking(demanding.application)
    answer = await client.request("POST", "/idp/credentials", headers=JSON, body=body)
    assert answer.status == 401


# --- registering, where it is demanded ------------------------------------------------------------


PERSON: Final = {
    "username": "carol",
    "email": "carol@example.org",
    "password": NEW,
    "confirmPassword": NEW,
}


async def finish_set_up(browser: Browser, page: Page, clock: FakeClock) -> Page:
    assert page.path == SET_UP, page.text
    assert not await is_signed_in(browser)
    page = await browser.send(page, SET_UP, code=code_of(secret_in(page), clock))
    assert len(codes_in(page)) == 10
    assert await is_signed_in(browser)
    return page


async def test_who_registers_sets_one_up_before_the_first_page(
    demanding: Server, clock: FakeClock
) -> None:
    browser = Browser(demanding.application)
    page = await browser.send(await browser.get("/idp/register"), "/idp/register", **PERSON)
    await finish_set_up(browser, page, clock)


async def test_who_registers_for_an_application_sets_one_up_before_it_gets_a_code(
    demanding: Server, clock: FakeClock
) -> None:
    browser = Browser(demanding.application)
    public = demanding.public.asking(demanding.application)
    app = await register_app(replace(demanding, public=public))
    uid = (await browser.get(app.request())).path.rpartition("/")[2]
    page = await browser.get(f"/idp/register?uid={uid}")
    page = await browser.send(page, "/idp/register", **PERSON)
    page = await finish_set_up(browser, page, clock)
    [onward] = re.findall(r'href="(/idp/interaction/[^"]+)"', page.text)
    assert reply_of(await browser.get(onward))["code"]


async def test_a_program_that_registers_is_led_to_it(demanding: Server, clock: FakeClock) -> None:
    browser = Browser(demanding.application)
    await browser.get("/idp/register")
    headers = {**JSON, "Sec-Fetch-Site": "same-origin"}
    body = json.dumps(PERSON).encode()
    answer = await browser.ask("POST", "/idp/register", headers=headers, body=body)
    assert (answer.status, answer.json()["location"]) == (201, BASE + SET_UP)
    await finish_set_up(browser, await browser.get(SET_UP), clock)


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_one_time_link_leads_to_it(
    demanding: Server, settings: Settings, clock: FakeClock, is_new: bool
) -> None:
    async with administering(settings, clock=clock) as services:
        account = await services.accounts.find("alice")
        assert account is not None
        if is_new:
            link = await services.administration.create_first_link()
        else:
            link = await services.administration.create_sign_in_link(account.value.account_id)
    browser, path = Browser(demanding.application), f"/.pages/link/{link}"
    typed = {"username": "carol"} if is_new else {}
    page = await browser.send(await browser.get(path), path, password=NEW, confirm=NEW, **typed)
    await finish_set_up(browser, page, clock)


# --- two changes at once --------------------------------------------------------------------------


async def with_app_and_passkey(demanding: Server, clock: FakeClock) -> Browser:
    browser = Browser(demanding.application)
    await finish_set_up(browser, await sign_in(browser), clock)
    await add_passkey(browser, SoftAuthenticator(BASE))
    return browser


async def removals(browser: Browser) -> tuple[Form, Form]:
    """Removing the app, and removing the passkey."""
    page = await whole_account(browser)
    [passkey] = {
        each.action: each
        for each in page.forms
        if "/account/passkeys/" in each.action and "/name" not in each.action
    }.values()
    return replace(passkey, action=f"{FACTOR}/remove"), passkey


@pytest.mark.feature("passkeys")
async def test_the_app_stays_if_the_passkey_is_removed_meanwhile(
    demanding: Server, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = await with_app_and_passkey(demanding, clock)
    app, passkey = await removals(browser)
    original = TwoFactors._noting

    async def meanwhile(*arguments: Any) -> Sequence[Record]:  # noqa: ANN401 - as the original
        monkeypatch.setattr(TwoFactors, "_noting", original)
        assert (
            "passkey has been removed" in (await browser.post(passkey.action, passkey.fields)).text
        )
        return await original(*arguments)

    monkeypatch.setattr(TwoFactors, "_noting", meanwhile)
    assert (await browser.post(app.action, app.fields)).status == 409
    await give_password(Browser(demanding.application))


@pytest.mark.feature("passkeys")
async def test_the_passkey_stays_if_the_app_is_removed_meanwhile(
    demanding: Server, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = await with_app_and_passkey(demanding, clock)
    app, passkey = await removals(browser)
    passkeys = pytest.importorskip("podstead.features.passkeys.service").Passkeys
    original = passkeys._noting

    async def meanwhile(*arguments: Any) -> Sequence[Record]:  # noqa: ANN401 - as the original
        monkeypatch.setattr(passkeys, "_noting", original)
        assert "app has been removed" in (await browser.post(app.action, app.fields)).text
        records: Sequence[Record] = await original(*arguments)
        return records

    monkeypatch.setattr(passkeys, "_noting", meanwhile)
    assert (await browser.post(passkey.action, passkey.fields)).status >= 400
    await give_password(Browser(demanding.application))


async def test_the_welcome_offers_recovery_codes(browser: Browser) -> None:
    typed = {"username": "carol", "password": NEW, "confirmPassword": NEW, "email": ""}
    page = await browser.send(await browser.get("/idp/register"), "/idp/register", **typed)
    assert page.path == "/.pages/welcome"
    page = await browser.send(page, f"{FACTOR}/recovery-codes")
    assert "Your recovery codes" in page.text
    assert 'href="/.pages/welcome"' in page.text
    assert "You have recovery codes." in (await browser.get("/.pages/welcome")).text
