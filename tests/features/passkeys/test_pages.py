"""Passkeys, response by response: what is refused without changing anything (A-115 to A-124).

The authenticator is one in software, which can be made to answer wrongly.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from podstead.app.adapters.system import SystemRandomness
from podstead.features.passkeys.ceremonies import PASSKEY_CHALLENGES, PASSKEYS
from podstead.features.passkeys.service import sign_count_increases
from podstead.idp.records import ACCOUNTS
from podstead.storage.record_store import RecordStore
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Start, password_of
from tests.support.asgi import Answer
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, csrf_token, reply_of, sign_in, whole_account
from tests.support.passkeys import (
    PRESENT,
    SCRIPT,
    SYNCED,
    VERIFIED,
    SoftAuthenticator,
    ask,
    decoded,
    listed,
    log_in,
    options,
    register,
)

NewBrowser = Callable[[], Browser]
RECENT_S = 600
CHALLENGE_S = 300


@pytest.fixture
async def account(browser: Browser) -> Page:
    """Alice's account page; she has just signed in by her password."""
    return await sign_in(browser)


@pytest.fixture
def key() -> SoftAuthenticator:
    return SoftAuthenticator(BASE)


def refused(answer: Answer, status: int, error: str) -> bool:
    assert "session" not in str(answer.header_lines("set-cookie"))
    return (answer.status, answer.json()["error"]) == (status, error)


async def _changed_account(store: SqliteStore, clock: FakeClock, **changes: object) -> None:
    """Change Alice's account behind the server's back."""
    for kept in await ACCOUNTS.page(store, now_ms=clock.now_ms()):
        if kept.value.pod == "alice":
            record = ACCOUNTS.replace(kept, msgspec.structs.replace(kept.value, **changes))
            await RecordStore(store, clock, SystemRandomness()).commit([record])


# --- the shapes that clients know ---------------------------------------------------------------


async def test_the_options_for_creating_a_passkey(browser: Browser, account: Page) -> None:
    """A-116, A-120, A-123"""
    asked = await options(browser, "register")
    assert set(asked) == {
        "challenge", "rp", "user", "pubKeyCredParams", "timeout", "attestation",
        "excludeCredentials", "authenticatorSelection", "extensions", "hints", "challengeKey",
    }  # fmt: skip
    assert asked["rp"] == {"name": "localhost:3000", "id": "localhost"}
    assert [each["alg"] for each in asked["pubKeyCredParams"]] == [-8, -7, -257]
    assert asked["attestation"] == "none"
    assert asked["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }
    assert asked["user"]["name"] == "alice@example.org"
    assert len(asked["user"]["id"]) == 43
    assert len(asked["challenge"]) == 43


async def test_the_options_for_signing_in_are_the_same_for_everybody(
    browser: Browser, new_browser: NewBrowser, account: Page, key: SoftAuthenticator
) -> None:
    """A-120, A-182: with a passkey, without one, and without an account."""
    await register(browser, key)
    asked = [await options(new_browser(), "login", username=name) for name in ("alice", "bob", "x")]
    for each in asked:
        assert len(each.pop("challenge")) == 43
        each.pop("challengeKey")
    assert asked[0] == asked[1] == asked[2]
    assert asked[0] == {
        "rpId": "localhost",
        "allowCredentials": [],
        "timeout": 300_000,
        "userVerification": "required",
    }


async def test_a_passkey_is_added_used_named_and_removed(
    browser: Browser, new_browser: NewBrowser, account: Page, key: SoftAuthenticator
) -> None:
    """A-116, A-124"""
    added = await register(browser, key)
    assert (added.status, added.json()) == (200, {"success": True})
    [passkey] = await listed(browser)
    assert passkey["name"] == "my key"
    other = new_browser()
    answer = await log_in(other, key)
    assert answer.status == 200, answer.text
    assert answer.json() == {
        "success": True,
        "webId": f"{BASE}/alice/#me",
        "redirectUrl": f"{BASE}/idp/account",
    }
    assert "alice@example.org" in (await whole_account(other)).text
    token = {"X-CSRF-Token": csrf_token(account)}
    one = f"/idp/account/passkeys/{passkey['id']}"
    body = json.dumps({"name": "another name"}).encode()
    assert (await browser.ask("PATCH", one, headers=SCRIPT | token, body=body)).status == 204
    assert [each["name"] for each in await listed(browser)] == ["another name"]
    assert (await browser.ask("DELETE", one, headers=SCRIPT | token)).status == 204
    assert await listed(browser) == []
    assert refused(await log_in(new_browser(), key), 400, "Unknown credential")


# --- adding -------------------------------------------------------------------------------------


async def test_nobody_adds_a_passkey_without_signing_in(browser: Browser) -> None:
    """A-117"""
    await browser.get("/idp/login")
    for path in ("register/options", "register/verify"):
        assert refused(await ask(browser, path, {"accountId": "alice"}), 401, "Unauthorized")


async def test_the_account_that_is_named_must_be_the_sessions(
    browser: Browser, account: Page
) -> None:
    """A-117"""
    answer = await ask(browser, "register/options", {"accountId": "0" * 32})
    assert refused(answer, 403, "Account mismatch")
    answer = await ask(browser, "register/verify", {"accountId": "0" * 32})
    assert refused(answer, 403, "Account mismatch")


async def test_adding_and_removing_need_a_recent_sign_in(
    browser: Browser, account: Page, key: SoftAuthenticator, clock: FakeClock
) -> None:
    """A-86, A-117: ten minutes."""
    clock.advance(RECENT_S)
    assert (await register(browser, key)).status == 200
    [passkey] = await listed(browser)
    asked = await options(browser, "register")
    clock.advance(1)
    assert refused(await ask(browser, "register/options"), 403, "Sign in again")
    sent = {"challengeKey": asked["challengeKey"], "credential": key.create(asked)}
    assert refused(await ask(browser, "register/verify", sent), 403, "Sign in again")
    path = f"/idp/account/passkeys/{passkey['id']}"
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(account)}
    assert (await browser.ask("DELETE", path, headers=headers)).status == 403
    page = await whole_account(browser)
    page = await browser.send(page, path)
    assert "/idp/login?again=passkeys" in page.url
    assert len(await listed(browser)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "webauthn.get"},
        {"challenge": "A" * 43},
        {"origin": "http://localhost:3001"},
        {"origin": "https://localhost:3000"},
        {"crossOrigin": True},
    ],
)
async def test_a_passkey_made_for_something_else_is_not_kept(
    browser: Browser, account: Page, key: SoftAuthenticator, wrong: dict[str, object]
) -> None:
    """A-121"""
    assert refused(await register(browser, key, **wrong), 400, "Verification failed")
    assert await listed(browser) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"rp_id": "localhost.example"},
        {"flags": VERIFIED},
        {"flags": PRESENT},
        {"algorithm": -36},
        {"credential_id": b"i" * 1024},
    ],
)
async def test_a_passkey_of_a_wrong_kind_is_not_kept(
    browser: Browser, account: Page, key: SoftAuthenticator, changes: dict[str, Any]
) -> None:
    """A-121"""
    answer = await register(browser, replace(key, **changes))
    assert refused(answer, 400, "Verification failed")
    assert await listed(browser) == []


async def test_what_an_authenticator_says_of_its_maker_is_not_looked_at(
    browser: Browser, account: Page, key: SoftAuthenticator
) -> None:
    """A-121"""
    statement = ("packed", {"alg": -7, "sig": b"not one"})
    assert (await register(browser, key, statement=statement)).status == 200


async def test_a_passkey_belongs_to_one_account(
    browser: Browser, new_browser: NewBrowser, account: Page, key: SoftAuthenticator
) -> None:
    """A-121: unique in the whole server."""
    assert (await register(browser, key)).status == 200
    other = new_browser()
    await sign_in(other, "bob")
    assert (await register(other, replace(key))).status == 409
    assert await listed(other) == []


async def test_the_options_for_a_second_passkey_exclude_the_first(
    browser: Browser, account: Page, key: SoftAuthenticator
) -> None:
    """A-120, A-123"""
    first = await options(browser, "register")
    await register(browser, key)
    credential_id = key.get(first)["id"]
    asked = await options(browser, "register")
    assert asked["excludeCredentials"] == [
        {"id": credential_id, "type": "public-key", "transports": ["internal"]}
    ]
    assert asked["user"]["id"] == key.user_handle
    assert (await register(browser, SoftAuthenticator(BASE))).status == 200
    assert len(await listed(browser)) == 2


@pytest.mark.parametrize("sent", [{}, {"challengeKey": "x"}, {"challengeKey": 1, "credential": {}}])
async def test_what_is_missing_is_said(
    browser: Browser, account: Page, sent: dict[str, object]
) -> None:
    """A-116"""
    for path in ("register/verify", "login/verify"):
        assert refused(await ask(browser, path, sent), 400, "Missing required fields")


@pytest.mark.parametrize(
    "response",
    [None, [], {}, {"clientDataJSON": 1}, {"clientDataJSON": "e30", "attestationObject": "oA"}],
)
async def test_an_invalid_passkey_is_refused(
    browser: Browser, account: Page, response: object
) -> None:
    """A-186: by the same words as every other."""
    asked = await options(browser, "register")
    credential = {"id": "eA", "rawId": "eA", "type": "public-key", "response": response}
    sent = {"challengeKey": asked["challengeKey"], "credential": credential}
    assert refused(await ask(browser, "register/verify", sent), 400, "Verification failed")


# --- challenges ---------------------------------------------------------------------------------


async def test_a_challenge_is_good_once(
    browser: Browser, account: Page, key: SoftAuthenticator
) -> None:
    """A-119: also if the first attempt failed."""
    await register(browser, key)
    for wrong in ({}, {"origin": "http://evil.example"}):
        asked = await options(browser, "login")
        sent = {"challengeKey": asked["challengeKey"], "credential": key.get(asked, **wrong)}
        assert (await ask(browser, "login/verify", sent)).status == (400 if wrong else 200)
        sent["credential"] = key.get(asked)
        answer = await ask(browser, "login/verify", sent)
        assert refused(answer, 400, "Challenge expired or invalid")


@pytest.mark.parametrize(("after_s", "status"), [(CHALLENGE_S - 1, 200), (CHALLENGE_S, 400)])
async def test_a_challenge_expires(
    browser: Browser,
    account: Page,
    key: SoftAuthenticator,
    clock: FakeClock,
    after_s: int,
    status: int,
) -> None:
    """A-119"""
    await register(browser, key)
    asked = await options(browser, "login")
    clock.advance(after_s)
    sent = {"challengeKey": asked["challengeKey"], "credential": key.get(asked)}
    assert (await ask(browser, "login/verify", sent)).status == status


async def test_a_challenge_is_for_one_purpose(
    browser: Browser, account: Page, key: SoftAuthenticator
) -> None:
    asked = await options(browser, "register")
    await register(browser, key)
    sent = {"challengeKey": asked["challengeKey"], "credential": key.get(asked)}
    answer = await ask(browser, "login/verify", sent)
    assert refused(answer, 400, "Challenge expired or invalid")
    asked = {**asked, **await options(browser, "login")}
    sent = {
        "challengeKey": asked["challengeKey"],
        "credential": SoftAuthenticator(BASE).create(asked),
    }
    answer = await ask(browser, "register/verify", sent)
    assert refused(answer, 400, "Challenge expired or invalid")


async def test_a_challenge_is_for_one_browser_and_session(
    browser: Browser, new_browser: NewBrowser, account: Page, key: SoftAuthenticator
) -> None:
    """A-119"""
    await register(browser, key)
    asked = await options(browser, "login")
    other = new_browser()
    await sign_in(other)
    sent = {"challengeKey": asked["challengeKey"], "credential": key.get(asked)}
    answer = await ask(other, "login/verify", sent)
    assert refused(answer, 400, "Challenge expired or invalid")
    asked = await options(browser, "register")
    second = SoftAuthenticator(BASE)
    sent = {"challengeKey": asked["challengeKey"], "credential": second.create(asked)}
    answer = await ask(other, "register/verify", sent)
    assert refused(answer, 400, "Challenge expired or invalid")


async def test_challenges_are_the_servers_and_kept_as_hashes(
    browser: Browser, store: SqliteStore, clock: FakeClock
) -> None:
    """A-119: whatever name a client gives itself."""
    first = await options(browser, "login", visitorId="mine", challengeKey="mine")
    second = await options(browser, "login", visitorId="mine", challengeKey="mine")
    assert first["challengeKey"] != second["challengeKey"]
    kept = await PASSKEY_CHALLENGES.page(store, now_ms=clock.now_ms())
    assert len(kept) == 2
    assert first["challengeKey"] not in str(kept)


# --- signing in ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "webauthn.create"},
        {"challenge": "A" * 43},
        {"origin": "http://localhost:3001"},
        {"crossOrigin": True},
    ],
)
async def test_a_signature_for_something_else_signs_nobody_in(
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    key: SoftAuthenticator,
    wrong: dict[str, object],
) -> None:
    """A-122"""
    await register(browser, key)
    assert refused(await log_in(new_browser(), key, **wrong), 400, "Verification failed")


@pytest.mark.parametrize(
    "changes",
    [
        {"rp_id": "localhost.example"},
        {"flags": VERIFIED},
        {"flags": PRESENT},
        {"flags": PRESENT | VERIFIED | SYNCED},
        {"key": SoftAuthenticator(BASE).key},
        {"user_handle": "A" * 43},
        {"user_handle": ""},
        {"user_handle": None},
    ],
)
async def test_another_authenticator_signs_nobody_in(
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    key: SoftAuthenticator,
    caplog: pytest.LogCaptureFixture,
    changes: dict[str, Any],
) -> None:
    """A-122"""
    await register(browser, key)
    with caplog.at_level(logging.WARNING, "podstead.audit"):
        answer = await log_in(new_browser(), replace(key, **changes))
    assert refused(answer, 400, "Verification failed")
    assert [record.getMessage() for record in caplog.records] == ["sign-in failed"]


@pytest.mark.parametrize(
    ("before", "now", "follows"),
    [(0, 0, True), (0, 1, True), (1, 2, True), (1, 1, False), (2, 1, False), (1, 0, False)],
)
def test_which_signature_counts_may_follow(before: int, now: int, follows: bool) -> None:
    """A-122, WebAuthn Level 3, 6.1.1"""
    assert sign_count_increases(before, now) is follows


async def test_a_count_that_does_not_rise_is_a_copy(
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    key: SoftAuthenticator,
    store: SqliteStore,
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Refused, noted, shown, and the count stays."""
    key.sign_count = 5
    await register(browser, key)
    key.sign_count = 6
    assert (await log_in(new_browser(), key)).status == 200
    with caplog.at_level(logging.WARNING, "podstead.audit"):
        assert refused(await log_in(new_browser(), key), 400, "Verification failed")
    assert "possible copy of a passkey" in caplog.text
    [kept] = await PASSKEYS.page(store, now_ms=clock.now_ms())
    assert kept.value.sign_count == 6
    assert "may have a copy of this passkey" in (await whole_account(browser)).text
    key.sign_count = 7
    assert (await log_in(new_browser(), key)).status == 200


async def test_a_disabled_account_stays_shut(
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    key: SoftAuthenticator,
    store: SqliteStore,
    clock: FakeClock,
) -> None:
    await register(browser, key)
    await _changed_account(store, clock, disabled=True)
    assert refused(await log_in(new_browser(), key), 401, "Unauthorized")


async def test_other_sites_ask_nothing(browser: Browser, account: Page) -> None:
    """A-46, A-60"""
    for path in ("register/options", "register/verify", "login/options", "login/verify"):
        headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
        answer = await ask(browser, path, **headers)
        assert answer.status == 403
        assert answer.header("access-control-allow-origin") is None


async def test_an_address_may_ask_so_often(start: Start, clock: FakeClock) -> None:
    """A-181"""
    server = await start(clock=clock, idp=True, passkey_requests_per_minute=3)
    browser = Browser(server.application)
    statuses = [(await ask(browser, "login/options")).status for _ in range(4)]
    assert statuses == [200, 200, 200, 429]


# --- in a sign-in for an application ------------------------------------------------------------


async def _verified(browser: Browser, key: SoftAuthenticator, uid: str) -> Answer:
    asked = await options(browser, "login", interaction=uid)
    sent = {"challengeKey": asked["challengeKey"], "credential": key.get(asked)}
    return await ask(browser, "login/verify", sent)


async def test_an_application_gets_tokens_by_a_passkey(
    browser: Browser, new_browser: NewBrowser, account: Page, app: App, key: SoftAuthenticator
) -> None:
    """A-118"""
    await register(browser, key)
    other = new_browser()
    page = await other.get(app.request())
    answer = await _verified(other, key, page.path.rpartition("/")[2])
    assert answer.json()["redirectUrl"] == f"{BASE}{page.path}/passkey-complete"
    assert (await whole_account(other)).path == "/idp/login"
    page = await other.get(answer.json()["redirectUrl"])
    assert reply_of(page)["state"] == ["the state"]
    assert (await app.tokens(page))["id_token"]


@pytest.mark.parametrize(("flags", "kind"), [(0, "hwk"), (SYNCED, "swk")])
async def test_tokens_say_how_the_person_signed_in(
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    app: App,
    key: SoftAuthenticator,
    flags: int,
    kind: str,
) -> None:
    """A-118, A-71; RFC 8176: also an application that asks later; and a sign-in by password
    afterwards is told as what it is."""
    key.flags |= flags
    await register(browser, key)
    other = new_browser()
    page = await other.get(app.request())
    uid = page.path.rpartition("/")[2]
    page = await other.get((await _verified(other, key, uid)).json()["redirectUrl"])
    assert await _methods(app, page) == [kind, "user", "mfa"]
    page = await other.get(app.request(scope="openid"))
    assert await _methods(app, page) == [kind, "user", "mfa"]
    page = await other.get(app.request(scope="openid", prompt="login"))
    page = await other.send(page, page.path, username="alice", password=password_of("alice"))
    assert await _methods(app, page) == ["pwd"]


async def test_tokens_mention_a_passkey_that_was_used_before_the_request(
    browser: Browser, new_browser: NewBrowser, account: Page, app: App, key: SoftAuthenticator
) -> None:
    """A-118: and then an application."""
    await register(browser, key)
    other = new_browser()
    assert (await log_in(other, key)).status == 200
    page = await other.get(app.request(scope="openid"))
    page = await other.send(page, f"{page.path}/confirm")
    assert await _methods(app, page) == ["hwk", "user", "mfa"]


async def _methods(app: App, page: Page) -> object:
    tokens = await app.tokens(page)
    payload = tokens["id_token"].split(".")[1]
    return json.loads(decoded(payload))["amr"]


@pytest.mark.parametrize("has_one", [False, True])
async def test_the_page_of_consent_offers_a_passkey_to_who_has_none(
    browser: Browser, account: Page, app: App, key: SoftAuthenticator, has_one: bool
) -> None:
    """A-124: on the way, and nobody has to."""
    if has_one:
        await register(browser, key)
    page = await browser.get(app.request(prompt="consent"))
    offered = 'href="/idp/account#sign-in"' in page.text
    assert offered is not has_one
    assert reply_of(await browser.send(page, f"{page.path}/confirm"))["code"]


# --- for whom -----------------------------------------------------------------------------------


@pytest.fixture
async def of_a_domain(start: Start, clock: FakeClock) -> Browser:
    """At a server whose passkeys are of the domain above it."""
    server = await start(
        clock=clock,
        idp=True,
        base_url="https://id.pods.example",
        passkey_rp_id="pods.example",
        passkey_origins=("https://www.pods.example",),
    )
    return Browser(server.application, "https://id.pods.example")


@pytest.mark.parametrize("origin", ["https://id.pods.example", "https://www.pods.example"])
async def test_a_passkey_may_be_of_the_domain_and_used_on_its_pages(
    of_a_domain: Browser, origin: str
) -> None:
    """A-115"""
    await sign_in(of_a_domain)
    assert (await options(of_a_domain, "register"))["rp"]["id"] == "pods.example"
    assert (await options(of_a_domain, "login"))["rpId"] == "pods.example"
    key = SoftAuthenticator(origin, "pods.example")
    assert (await register(of_a_domain, key)).status == 200
    assert (await log_in(of_a_domain, key)).status == 200


@pytest.mark.parametrize(
    ("origin", "rp_id"),
    [
        ("https://id.pods.example", "id.pods.example"),
        ("https://evil.pods.example", "pods.example"),
        ("https://pods.example", "pods.example"),
    ],
)
async def test_a_passkey_of_another_domain_or_page_is_refused(
    of_a_domain: Browser, origin: str, rp_id: str
) -> None:
    """A-115: also of the domain's own, if its pages are not listed."""
    await sign_in(of_a_domain)
    key = SoftAuthenticator(origin, rp_id)
    assert refused(await register(of_a_domain, key), 400, "Verification failed")
    good = SoftAuthenticator("https://id.pods.example", "pods.example")
    assert (await register(of_a_domain, good)).status == 200
    other = replace(good, origin=origin, rp_id=rp_id)
    assert refused(await log_in(of_a_domain, other), 400, "Verification failed")


@pytest.mark.parametrize("query", ["", "?accountId=alice"])
async def test_nobody_completes_what_was_not_verified(
    browser: Browser, app: App, query: str
) -> None:
    """A-118"""
    page = await browser.get(app.request())
    page = await browser.get(f"{page.path}/passkey-complete{query}")
    assert page.status == 403
    assert (await whole_account(browser)).path == "/idp/login"


async def test_a_verified_passkey_is_valid_once_soon_and_in_its_browser(
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    app: App,
    key: SoftAuthenticator,
    clock: FakeClock,
) -> None:
    """A-118"""
    await register(browser, key)
    mine, other = new_browser(), new_browser()
    page = await mine.get(app.request(prompt="consent"))
    url = (await _verified(mine, key, page.path.rpartition("/")[2])).json()["redirectUrl"]
    await other.get("/idp/login")
    assert (await other.get(url)).status == 403
    assert "Allow this application?" in (await mine.get(url)).text
    assert (await mine.get(url)).status == 403
    page = await mine.get(app.request(prompt="login"))
    url = (await _verified(mine, key, page.path.rpartition("/")[2])).json()["redirectUrl"]
    clock.advance(121)
    assert (await mine.get(url)).status == 403


async def test_a_verified_passkey_ends_with_what_a_new_password_ends(
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    app: App,
    key: SoftAuthenticator,
    store: SqliteStore,
    clock: FakeClock,
) -> None:
    """A-76"""
    await register(browser, key)
    other = new_browser()
    page = await other.get(app.request())
    url = (await _verified(other, key, page.path.rpartition("/")[2])).json()["redirectUrl"]
    await _changed_account(store, clock, valid_after_s=clock.now_s() + 1)
    assert (await other.get(url)).status == 403


# --- looking after them -------------------------------------------------------------------------


async def test_the_last_way_in_stays(
    browser: Browser,
    account: Page,
    key: SoftAuthenticator,
    store: SqliteStore,
    clock: FakeClock,
) -> None:
    """A-124: of an account without a password."""
    await register(browser, key)
    await register(browser, SoftAuthenticator(BASE))
    await _changed_account(store, clock, password_hash=None)
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(account)}
    statuses = []
    for each in await listed(browser):
        path = f"/idp/account/passkeys/{each['id']}"
        statuses.append((await browser.ask("DELETE", path, headers=headers)).status)
    assert statuses == [204, 409]
    assert len(await listed(browser)) == 1


async def test_others_passkeys_are_out_of_reach(
    browser: Browser, new_browser: NewBrowser, account: Page, key: SoftAuthenticator
) -> None:
    await register(browser, key)
    [passkey] = await listed(browser)
    other = new_browser()
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(await sign_in(other, "bob"))}
    path = f"/idp/account/passkeys/{passkey['id']}"
    for method in ("GET", "PATCH", "DELETE", "POST"):
        body = None if method == "GET" else b'{"name": "mine now"}'
        assert (await other.ask(method, path, headers=headers, body=body)).status == 404
    assert (await listed(browser)) == [passkey]


@pytest.mark.parametrize(("name", "status"), [("n" * 64, 204), ("n" * 65, 400), (" ", 400)])
async def test_names_are_short(
    browser: Browser, account: Page, key: SoftAuthenticator, name: str, status: int
) -> None:
    """A-121"""
    await register(browser, key)
    [passkey] = await listed(browser)
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(account)}
    path = f"/idp/account/passkeys/{passkey['id']}"
    body = json.dumps({"name": name}).encode()
    assert (await browser.ask("PATCH", path, headers=headers, body=body)).status == status


async def test_changes_need_the_sessions_token(
    browser: Browser, account: Page, key: SoftAuthenticator
) -> None:
    """A-60"""
    await register(browser, key)
    [passkey] = await listed(browser)
    path = f"/idp/account/passkeys/{passkey['id']}"
    for method in ("PATCH", "DELETE", "POST"):
        answer = await browser.ask(method, path, headers=SCRIPT, body=b'{"name": "x"}')
        assert answer.status == 403
    assert (await listed(browser)) == [passkey]


async def test_they_go_with_the_account(
    browser: Browser,
    account: Page,
    key: SoftAuthenticator,
    store: SqliteStore,
    clock: FakeClock,
) -> None:
    """A-97"""
    await register(browser, key)
    page = await browser.get("/idp/account/delete")
    await browser.send(page, "/idp/account/delete", pod="alice")
    assert await PASSKEYS.page(store, now_ms=clock.now_ms()) == []
    assert refused(await log_in(browser, key), 400, "Unknown credential")


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:3000",
        "https://192.0.2.1",
        "https://[2001:db8::1]:8443",
        "http://pods.example",
    ],
)
async def test_where_browsers_know_no_passkeys_none_are_offered(
    start: Start, caplog: pytest.LogCaptureFixture, base_url: str
) -> None:
    """A-115"""
    with caplog.at_level(logging.INFO, "podstead.app"):
        server = await start(idp=True, base_url=base_url)
    assert "use http://localhost:PORT" in caplog.text
    browser = Browser(server.application, base_url)
    page = await browser.get("/idp/login")
    assert page.status == 200
    assert "PublicKeyCredential" not in page.text
    assert "Use a passkey" not in page.text
    account = await sign_in(browser)
    assert account.status == 200
    assert "PublicKeyCredential" not in account.text
    assert "Add a passkey" not in account.text
    assert (await ask(browser, "login/options")).status == 404
