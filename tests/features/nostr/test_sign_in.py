"""Signing in with a Nostr key, answer by answer (A-125 to A-127, A-130, A-131).

Each refusal changes one thing in a sign-in that works.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from podstead.app.adapters.system import SystemRandomness
from podstead.config import Settings
from podstead.features.nostr.links import PROVEN_S
from podstead.features.nostr.pages import REQUESTS_PER_MINUTE
from podstead.features.nostr.records import NOSTR_LINKS, NostrLink
from podstead.idp.authorizations import VERIFIED_S
from podstead.idp.records import ACCOUNTS, SESSIONS
from podstead.storage.record_store import RecordStore
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Server, Start, running
from tests.support.asgi import Answer
from tests.support.browser import Browser, Page
from tests.support.changed_accounts import change_account
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, csrf_token, reply_of, sign_in, whole_account
from tests.support.nostr import (
    Change,
    NostrKey,
    basic,
    nostr,
    set_to,
    tag_set_to,
    with_tag,
    without_tag,
)
from tests.support.nostr_pages import LOGIN, SCRIPT, challenge, link, log_in, signed
from tests.support.signing import decoded

NewBrowser = Callable[[], Browser]
NO_ACCOUNT = (
    "No account here has this key. If you have an account, sign in to it in another way, and link "
    "the key there"
)
UNKNOWN = (403, NO_ACCOUNT)
ALICE = {"username": "alice"}
SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"


@pytest.fixture
def key() -> NostrKey:
    return NostrKey.new()


@pytest.fixture
async def linked(new_browser: NewBrowser, clock: FakeClock, key: NostrKey) -> NostrKey:
    """The key, which Alice has linked to her account, without telling anybody."""
    other = new_browser()
    await sign_in(other)
    assert (await link(other, clock, key, sent={"publish": False})).status == 201
    return key


async def stated(server: Server, key: NostrKey, *names: str) -> None:
    """Have profiles state the key, as their owners can."""
    for name in names:
        update = f"INSERT DATA {{ <{BASE}/{name}/#me> <{SAME_AS}> <{key.did}> }}"
        answered = await getattr(server, name).request(
            "PATCH",
            f"/{name}/",
            headers={"Content-Type": "application/sparql-update"},
            body=update.encode(),
        )
        assert answered.status < 300, answered.text


async def unstated(server: Server, key: NostrKey) -> None:
    """Have Alice's profile name the key no more."""
    update = f"DELETE DATA {{ <{BASE}/alice/#me> <{SAME_AS}> <{key.did}> }}"
    headers = {"Content-Type": "application/sparql-update"}
    answered = await server.alice.request("PATCH", "/alice/", headers=headers, body=update.encode())
    assert answered.status < 300, answered.text


async def allowed(server: Server, owner: Browser, key: NostrKey, *, name: str = "alice") -> None:
    """Have a profile name the key, and its owner allow the key to sign in."""
    await stated(server, key, name)
    page = await sign_in(owner, name)
    page = await owner.send(page, "/idp/account/profile-keys", key=key.public)
    assert "You can now sign in with this key of your profile" in page.text


async def _status_of(app: App, tokens: dict[str, Any]) -> int:
    """Whether the access token of an application is accepted."""
    token = {"Authorization": f"Bearer {tokens['access_token']}"}
    return (await app.server.public.get("/idp/me", **token)).status


async def _allow(browser: Browser, token: str, named: str) -> Answer:
    body = json.dumps({"key": named}).encode()
    headers = SCRIPT | {"X-CSRF-Token": token}
    return await browser.ask("POST", "/idp/account/profile-keys", headers=headers, body=body)


async def log_in_to(
    browser: Browser,
    page: Page,
    clock: FakeClock,
    key: NostrKey,
    *changes: Change,
    sent: object = None,
) -> Answer:
    """Sign in, in the interaction of a page."""
    path = f"{page.path}/schnorr-login"
    event = key.event("POST", BASE + path, clock.now_s(), *changes)
    headers = {k: v for k, v in SCRIPT.items() if k != "Content-Type" or sent} | nostr(event)
    body = None if sent is None else json.dumps(sent).encode()
    return await browser.ask("POST", path, headers=headers, body=body)


def error_of(answered: Answer) -> tuple[int, str]:
    """The status of a refusal in the shape of A-125, and what it says."""
    body = answered.json()
    assert body["success"] is False
    return answered.status, body["error"]


async def account_of(browser: Browser) -> str | None:
    """The WebID that a browser is signed in as."""
    answered = await browser.ask("GET", "/idp/account", headers={"Accept": "application/json"})
    return answered.json()["webId"] if answered.status == 200 else None


# --- without an application -----------------------------------------------------------------------


async def test_a_linked_key_signs_in(
    browser: Browser, clock: FakeClock, linked: NostrKey, caplog: pytest.LogCaptureFixture
) -> None:
    """A-126, A-184"""
    with caplog.at_level(logging.INFO):
        answered = await log_in(browser, clock, linked)
    assert answered.status == 200, answered.text
    assert answered.json() == {"success": True, "redirectUrl": "/idp/account"}
    assert await account_of(browser) == f"{BASE}/alice/#me"
    [noted] = [each for each in caplog.records if each.message == "signed in"]
    assert noted.__dict__["factor"] == "nostr"


async def test_the_last_use_of_a_link_is_noted(
    browser: Browser, clock: FakeClock, linked: NostrKey, store: SqliteStore
) -> None:
    await log_in(browser, clock, linked)
    kept = await NOSTR_LINKS.read(store, linked.public, now_ms=0)
    assert kept is not None
    assert kept.value.last_used_s == clock.now_s()


async def test_a_person_who_chooses_so_stays_signed_in(
    browser: Browser, new_browser: NewBrowser, clock: FakeClock, linked: NostrKey
) -> None:
    other = new_browser()
    await log_in(browser, clock, linked, sent={"remember": True})
    await log_in(other, clock, linked, sent={"remember": False})
    clock.advance(13 * 3600)
    assert await account_of(browser) is not None
    assert await account_of(other) is None


async def test_an_unlinked_key_signs_nobody_in(
    browser: Browser, clock: FakeClock, key: NostrKey, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answered = await log_in(browser, clock, key)
    assert error_of(answered) == UNKNOWN
    assert await account_of(browser) is None
    assert "sign-in failed" in caplog.text


WRONG = [
    pytest.param(set_to("kind", 22242), id="of a relay"),
    pytest.param(set_to("kind", 1), id="a note"),
    pytest.param(tag_set_to("u", BASE + "/idp/account/nostr"), id="for another address"),
    pytest.param(tag_set_to("u", BASE + "/idp/nostr/login/"), id="with a slash"),
    pytest.param(tag_set_to("u", BASE + "/idp/nostr/login?a"), id="with a query"),
    pytest.param(tag_set_to("u", "https://pod.example/idp/nostr/login"), id="for another server"),
    pytest.param(tag_set_to("method", "GET"), id="for another method"),
    pytest.param(set_to("created_at", 1_799_999_939), id="stale"),
    pytest.param(set_to("created_at", 1_800_000_061), id="from the future"),
    pytest.param(without_tag("challenge"), id="without a challenge"),
]


@pytest.mark.parametrize("change", WRONG)
async def test_an_event_for_anything_else_signs_nobody_in(
    browser: Browser, clock: FakeClock, linked: NostrKey, change: Change
) -> None:
    answered = await log_in(browser, clock, linked, change)
    assert error_of(answered)[0] == 401
    assert answered.header("www-authenticate") == f'Nostr realm="{BASE}"'
    assert await account_of(browser) is None


async def test_an_event_that_another_key_signed_signs_nobody_in(
    browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    event = await signed(browser, clock, linked, purpose="sign-in")
    forged = {**event, "sig": NostrKey.new().sign(bytes.fromhex(event["id"])).hex()}
    answered = await browser.ask("POST", LOGIN, headers=SCRIPT | nostr(forged))
    assert error_of(answered)[0] == 401
    assert await account_of(browser) is None


async def test_only_an_event_signs_anybody_in(
    browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    event = await signed(browser, clock, linked, purpose="sign-in")
    await browser.get("/idp/login")
    for headers in ({}, basic(event), {"Authorization": "Nostr"}, {"Authorization": "Bearer x"}):
        answered = await browser.ask("POST", LOGIN, headers=SCRIPT | headers)
        assert error_of(answered)[0] == 401, headers
    assert await account_of(browser) is None


async def test_an_event_signs_in_once(
    browser: Browser, new_browser: NewBrowser, clock: FakeClock, linked: NostrKey
) -> None:
    event = await signed(browser, clock, linked, purpose="sign-in")
    first = await browser.ask("POST", LOGIN, headers=SCRIPT | nostr(event))
    assert first.status == 200
    again = await browser.ask("POST", LOGIN, headers=SCRIPT | nostr(event))
    assert error_of(again)[0] == 400


async def test_content_that_the_event_names_is_that_content(
    browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    """A-145"""
    named = hashlib.sha256(b'{"again": true}').hexdigest()
    for sent, status in (({"again": False}, 401), ({"again": True}, 200)):
        answered = await log_in(browser, clock, linked, with_tag("payload", named), sent=sent)
        assert answered.status == status, answered.text


@pytest.mark.parametrize("of", ["another browser", "another purpose", "nobody"])
async def test_a_challenge_is_of_one_browser_and_purpose(
    browser: Browser, new_browser: NewBrowser, clock: FakeClock, linked: NostrKey, of: str
) -> None:
    """A-126"""
    other = new_browser()
    await other.get("/idp/login")
    if of == "another browser":
        members = (await challenge(other, "sign-in")).json()
    elif of == "another purpose":
        await sign_in(browser, "bob")
        members = (await challenge(browser, "link")).json()
    else:
        members = {"challenge": "0" * 64}
    answered = await log_in(
        browser,
        clock,
        linked,
        without_tag("challenge"),
        with_tag("challenge", members["challenge"]),
    )
    assert error_of(answered)[0] == 400
    assert await account_of(browser) != f"{BASE}/alice/#me"


async def test_a_challenge_has_its_time(
    browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    members = (await challenge(browser, "sign-in")).json()
    clock.advance(members["expires_in"])
    tag = with_tag("challenge", members["challenge"])
    event = linked.event("POST", BASE + LOGIN, clock.now_s(), tag)
    answered = await browser.ask("POST", LOGIN, headers=SCRIPT | nostr(event))
    assert error_of(answered)[0] == 400


async def test_a_disabled_account_is_closed_to_its_keys(
    browser: Browser, clock: FakeClock, linked: NostrKey, store: SqliteStore
) -> None:
    await change_account(store, disabled=True)
    status, error = error_of(await log_in(browser, clock, linked))
    assert status == 401
    assert "disabled" in error
    assert await account_of(browser) is None


async def test_an_address_may_ask_so_often(server: Server, clock: FakeClock) -> None:
    """A-181"""
    browser, key = Browser(server.application), NostrKey.new()
    for _ in range(REQUESTS_PER_MINUTE // 2):
        assert error_of(await log_in(browser, clock, key))[0] == 403
    answered = await browser.ask("POST", LOGIN, headers=SCRIPT)
    assert error_of(answered)[0] == 429
    assert answered.header("retry-after") == str(answered.json()["retryAfter"])


async def test_other_sites_sign_nobody_in(
    browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    """A-60"""
    event = await signed(browser, clock, linked, purpose="sign-in")
    headers = SCRIPT | nostr(event) | {"Sec-Fetch-Site": "cross-site", "Origin": "https://b.ex"}
    assert (await browser.ask("POST", LOGIN, headers=headers)).status == 403
    assert await account_of(browser) is None


async def test_over_plain_http_no_event_is_requested(start: Start) -> None:
    """A-148"""
    server = await start(idp=True, base_url="http://pods.example")
    browser = Browser(server.application, "http://pods.example")
    assert "schnorrBtn" not in (await browser.get("/idp/login")).text
    assert (await browser.ask("POST", LOGIN, headers=SCRIPT)).status == 404


# --- in an interaction ----------------------------------------------------------------------------


async def test_an_application_gets_tokens_by_a_linked_key(
    browser: Browser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    """A-125"""
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, linked)
    assert answered.status == 200, answered.text
    there = f"{page.path}/schnorr-complete"
    assert answered.json() == {"success": True, "redirectUrl": there}
    assert await account_of(browser) is None
    completed = await browser.ask("GET", there)
    assert completed.status == 303
    assert completed.header("location") == page.path.replace("/idp/interaction/", "/idp/auth/")
    page = await browser.get(completed.header("location") or "")
    assert reply_of(page)["state"] == ["the state"]
    [_, claims, _] = (await app.tokens(page))["id_token"].split(".")
    assert decoded(claims)["amr"] == ["pop"]
    assert await account_of(browser) == f"{BASE}/alice/#me"


async def test_a_later_request_of_an_application_sees_the_key(
    browser: Browser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    """RFC 8176"""
    assert (await log_in(browser, clock, linked)).status == 200
    page = await browser.get(app.request(scope="openid"))
    page = await browser.send(page, f"{page.path}/confirm")
    [_, claims, _] = (await app.tokens(page))["id_token"].split(".")
    assert decoded(claims)["amr"] == ["pop"]


async def test_without_a_sign_in_there_is_nothing_to_complete(
    browser: Browser, app: App, linked: NostrKey
) -> None:
    """A-118"""
    page = await browser.get(app.request())
    answered = await browser.ask("GET", f"{page.path}/schnorr-complete")
    assert answered.status == 403
    assert await account_of(browser) is None


@pytest.mark.feature("passkeys")
async def test_a_sign_in_is_completed_once_in_time_by_its_way_and_browser(
    browser: Browser, new_browser: NewBrowser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    """A-118"""
    page = await browser.get(app.request())
    assert (await log_in_to(browser, page, clock, linked)).status == 200
    other = new_browser()
    await other.get("/idp/login")
    assert (await other.ask("GET", f"{page.path}/schnorr-complete")).status == 403
    assert (await browser.ask("GET", f"{page.path}/passkey-complete")).status == 403
    clock.advance(VERIFIED_S + 1)
    assert (await browser.ask("GET", f"{page.path}/schnorr-complete")).status == 403
    assert (await log_in_to(browser, page, clock, linked)).status == 200
    assert (await browser.ask("GET", f"{page.path}/schnorr-complete")).status == 303
    assert (await browser.ask("GET", f"{page.path}/schnorr-complete")).status == 403


async def test_an_account_that_was_changed_meanwhile_is_not_signed_in_to(
    browser: Browser, app: App, clock: FakeClock, linked: NostrKey, store: SqliteStore
) -> None:
    page = await browser.get(app.request())
    assert (await log_in_to(browser, page, clock, linked)).status == 200
    await change_account(store, valid_after_s=clock.now_s() + 1)
    assert (await browser.ask("GET", f"{page.path}/schnorr-complete")).status == 403
    assert await account_of(browser) is None


async def test_an_unlinked_key_leaves_the_interaction_as_it_is(
    browser: Browser, app: App, clock: FakeClock, key: NostrKey
) -> None:
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, key)
    assert error_of(answered) == UNKNOWN
    uid = page.path.rpartition("/")[2]
    assert answered.json()["registerUrl"] == f"/idp/register?uid={uid}"
    assert (await browser.ask("GET", f"{page.path}/schnorr-complete")).status == 403


async def test_an_event_is_for_one_interaction(
    browser: Browser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    """For another uid, for signing in without an application, and the other way round."""
    page, other = await browser.get(app.request()), await browser.get(app.request())
    for url in (f"{other.path}/schnorr-login", LOGIN, page.path, f"{page.path}/schnorr-login/"):
        answered = await log_in_to(browser, page, clock, linked, tag_set_to("u", BASE + url))
        assert error_of(answered)[0] == 401, url
    answered = await log_in(
        browser, clock, linked, tag_set_to("u", f"{BASE}{page.path}/schnorr-login")
    )
    assert error_of(answered)[0] == 401


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(set_to("kind", 22242), id="of a relay"),
        pytest.param(tag_set_to("method", "GET"), id="for another method"),
        pytest.param(set_to("created_at", 1_799_999_939), id="stale"),
        pytest.param(set_to("created_at", 1_800_000_061), id="from the future"),
        pytest.param(tag_set_to("u", "https://pod.example/"), id="for another server"),
    ],
)
async def test_a_wrong_event_changes_nothing_in_an_interaction(
    browser: Browser, app: App, clock: FakeClock, linked: NostrKey, change: Change
) -> None:
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, linked, change)
    assert error_of(answered)[0] == 401
    assert (await browser.ask("GET", f"{page.path}/schnorr-complete")).status == 403


async def test_an_event_is_valid_once_in_an_interaction(
    browser: Browser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    page = await browser.get(app.request())
    path = f"{page.path}/schnorr-login"
    event = linked.event("POST", BASE + path, clock.now_s())
    statuses = [
        (await browser.ask("POST", path, headers=SCRIPT | nostr(event))).status for _ in range(2)
    ]
    assert statuses == [200, 401]


async def test_an_interaction_is_of_one_browser_and_has_an_end(
    browser: Browser, new_browser: NewBrowser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    """A-57"""
    page = await browser.get(app.request())
    other = new_browser()
    await other.get("/idp/login")
    assert error_of(await log_in_to(other, page, clock, linked))[0] == 403
    clock.advance(3600)
    assert error_of(await log_in_to(browser, page, clock, linked))[0] == 404


async def test_a_finished_interaction_takes_no_key(
    browser: Browser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    """A-57"""
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, linked)
    await browser.get(answered.json()["redirectUrl"])
    assert error_of(await log_in_to(browser, page, clock, linked))[0] == 400


# --- by what profiles say -------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "alice", "alice@example.org"])
async def test_a_key_that_only_the_profile_names_signs_nobody_in(
    server: Server,
    browser: Browser,
    app: App,
    clock: FakeClock,
    key: NostrKey,
    caplog: pytest.LogCaptureFixture,
    name: str | None,
) -> None:
    """Whoever may write the profile could name a key of their own, as an application may."""
    await stated(server, key, "alice")
    sent = {"username": name} if name else None
    with caplog.at_level(logging.INFO):
        assert error_of(await log_in(browser, clock, key, sent=sent)) == UNKNOWN
    assert "sign-in failed" in caplog.text
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, key, sent=sent)
    assert error_of(answered)[0] == 403
    assert (await browser.ask("GET", f"{page.path}/schnorr-complete")).status == 403
    assert await account_of(browser) is None


@pytest.mark.feature("nostr")
async def test_a_key_that_the_profile_names_still_authenticates_requests(
    server: Server, clock: FakeClock, key: NostrKey
) -> None:
    """NIP-98, and nothing more."""
    await stated(server, key, "alice")
    event = key.event("GET", f"{BASE}/alice/private/", clock.now_s())
    answer = await server.public.request("GET", "/alice/private/", headers=nostr(event))
    assert answer.status == 200, answer.text


async def test_an_allowed_key_signs_in_to_the_account_that_is_named(
    server: Server,
    browser: Browser,
    new_browser: NewBrowser,
    app: App,
    clock: FakeClock,
    key: NostrKey,
) -> None:
    await allowed(server, new_browser(), key)
    assert error_of(await log_in(browser, clock, key)) == UNKNOWN
    assert error_of(await log_in(browser, clock, key, sent={"username": "bob"})) == UNKNOWN
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, key, sent=ALICE)
    assert answered.status == 200, answered.text
    page = await browser.get(answered.json()["redirectUrl"])
    assert (await app.tokens(page))["id_token"]
    assert await account_of(browser) == f"{BASE}/alice/#me"


async def test_who_names_the_key_of_somebody_else_does_not_have_them_sign_in_to_the_wrong_account(
    server: Server, browser: Browser, new_browser: NewBrowser, clock: FakeClock, key: NostrKey
) -> None:
    """Not even by allowing it: whoever signs in says which account they want."""
    await allowed(server, new_browser(), key, name="bob")
    for sent in (None, ALICE, {"username": ""}):
        assert error_of(await log_in(browser, clock, key, sent=sent)) == UNKNOWN
    other = new_browser()
    await sign_in(other)
    assert (await link(other, clock, key)).status == 201
    assert (await log_in(browser, clock, key, sent={"username": "bob"})).status == 200
    assert await account_of(browser) == f"{BASE}/alice/#me"


async def test_an_allowed_key_signs_in_only_while_the_profile_names_it(
    server: Server, browser: Browser, new_browser: NewBrowser, clock: FakeClock, key: NostrKey
) -> None:
    """And what it has signed in ends with that, with the owner told."""
    owner = new_browser()
    await allowed(server, owner, key)
    assert (await log_in(browser, clock, key, sent=ALICE)).status == 200
    await unstated(server, key)
    assert await account_of(browser) is None
    assert error_of(await log_in(browser, clock, key, sent=ALICE)) == UNKNOWN
    page = await whole_account(owner)
    assert "no longer signs in" in page.text
    assert "a change of the profile" in page.text
    await stated(server, key, "alice")
    assert error_of(await log_in(browser, clock, key, sent=ALICE)) == UNKNOWN


async def test_the_owner_sees_an_allowed_key_and_ends_it(
    server: Server,
    browser: Browser,
    new_browser: NewBrowser,
    app: App,
    clock: FakeClock,
    key: NostrKey,
) -> None:
    owner = new_browser()
    await allowed(server, owner, key)
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, key, sent=ALICE)
    tokens = await app.tokens(await browser.get(answered.json()["redirectUrl"]))
    assert await _status_of(app, tokens) == 200
    clock.advance(601)  # ending needs no new sign-in
    page = await whole_account(owner)
    assert "can sign in" in page.text
    page = await owner.send(page, f"/idp/account/profile-keys/{key.public}")
    assert "You can no longer sign in with this key" in page.text
    assert "can sign in</span>" not in page.text
    assert await account_of(browser) is None
    assert await _status_of(app, tokens) == 401
    assert error_of(await log_in(browser, clock, key, sent=ALICE)) == UNKNOWN


@pytest.mark.parametrize("named", ["0" * 64, "x", ""])
async def test_only_keys_of_the_profile_can_be_allowed(browser: Browser, named: str) -> None:
    page = await sign_in(browser)
    answered = await _allow(browser, csrf_token(page), named)
    assert answered.status == 404


async def test_allowing_a_key_needs_a_fresh_sign_in(
    server: Server, browser: Browser, clock: FakeClock, key: NostrKey
) -> None:
    await stated(server, key, "alice")
    page = await sign_in(browser)
    clock.advance(601)
    assert (await _allow(browser, csrf_token(page), key.public)).status == 403
    page = await browser.send(
        await whole_account(browser), "/idp/account/profile-keys", key=key.public
    )
    assert page.path == "/idp/login"


async def test_programs_read_which_keys_sign_in(
    server: Server, browser: Browser, clock: FakeClock, key: NostrKey
) -> None:
    await stated(server, key, "alice")
    page = await sign_in(browser)
    path = "/idp/account/profile-keys"
    [listed] = (await browser.ask("GET", path, headers=SCRIPT)).json()["keys"]
    assert (listed["pubkey"], listed["inProfile"]) == (key.public, True)
    assert listed["signsInSince"] is None
    assert (await _allow(browser, csrf_token(page), key.public)).status == 204
    one = (await browser.ask("GET", f"{path}/{key.public}", headers=SCRIPT)).json()
    assert one["signsInSince"] == "2027-01-15T08:00:00Z"
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(page)}
    ended = [
        (await browser.ask("DELETE", f"{path}/{key.public}", headers=headers)).status
        for _ in range(2)
    ]
    assert ended == [204, 404]


async def test_a_session_that_such_a_key_began_in_an_earlier_version_is_over(
    browser: Browser, store: SqliteStore, clock: FakeClock
) -> None:
    await sign_in(browser)
    [kept] = await SESSIONS.page(store, now_ms=clock.now_ms())
    changed = msgspec.structs.replace(kept.value, factor="nostr", restricted=True)
    record = SESSIONS.replace(kept, changed)
    await RecordStore(store, clock, SystemRandomness()).commit([record])
    assert await account_of(browser) is None


async def test_the_link_comes_before_what_profiles_say(
    server: Server, browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    """A-127: the table is authoritative, so nobody else can stand in the way of a linked key."""
    await stated(server, linked, "bob")
    assert (await log_in(browser, clock, linked)).status == 200
    assert await account_of(browser) == f"{BASE}/alice/#me"


async def test_a_disabled_account_is_closed_to_the_keys_of_its_profile(
    server: Server,
    browser: Browser,
    new_browser: NewBrowser,
    clock: FakeClock,
    key: NostrKey,
    store: SqliteStore,
) -> None:
    await allowed(server, new_browser(), key)
    await change_account(store, disabled=True)
    assert error_of(await log_in(browser, clock, key, sent=ALICE))[0] == 401


# --- when a linked key goes -----------------------------------------------------------------------


async def test_unlinking_a_key_ends_what_it_has_signed_in(
    browser: Browser, new_browser: NewBrowser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    """Browsers, and what applications got in them; other sessions go on."""
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, linked)
    tokens = await app.tokens(await browser.get(answered.json()["redirectUrl"]))
    owner = new_browser()
    page = await sign_in(owner)
    page = await owner.send(page, f"/idp/account/nostr/{linked.public}")
    assert "The Nostr key has been unlinked" in page.text
    assert await account_of(browser) is None
    assert await _status_of(app, tokens) == 401
    assert await account_of(owner) is not None


async def test_unlinking_the_key_of_the_session_signs_out(
    browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    assert (await log_in(browser, clock, linked)).status == 200
    page = await whole_account(browser)
    page = await browser.send(page, f"/idp/account/nostr/{linked.public}")
    assert page.path == "/idp/login"
    assert "this browser is signed out as well" in page.text


async def test_a_key_that_is_unlinked_during_a_sign_in_signs_nobody_in(
    browser: Browser, new_browser: NewBrowser, app: App, clock: FakeClock, linked: NostrKey
) -> None:
    page = await browser.get(app.request())
    assert (await log_in_to(browser, page, clock, linked)).status == 200
    owner = new_browser()
    await owner.send(await sign_in(owner), f"/idp/account/nostr/{linked.public}")
    assert (await browser.ask("GET", f"{page.path}/schnorr-complete")).status == 403
    assert await account_of(browser) is None


# --- what only a linked key may do ----------------------------------------------------------------


async def _asks(browser: Browser, clock: FakeClock, token: str) -> dict[str, int]:
    """What becomes of each change of how the account is signed in to, and of its end."""
    csrf = {"X-CSRF-Token": token}
    other = NostrKey.new()

    async def ask(method: str, path: str, **sent: str) -> int:
        body = json.dumps(sent).encode()
        return (await browser.ask(method, path, headers=SCRIPT | csrf, body=body)).status

    statuses = {
        "challenge": (await challenge(browser, "link")).status,
        "passkey": await ask("POST", "/idp/passkey/register/options"),
        "credentials": await ask("POST", "/idp/account/client-credentials", name="x"),
        "password": await ask("POST", "/idp/account/password", new="a new password"),
        "email": await ask("POST", "/idp/account/email", email="new@a.example"),
    }
    event = other.event("POST", f"{BASE}/idp/account/nostr", clock.now_s())
    linking = await browser.ask("POST", "/idp/account/nostr", headers=SCRIPT | nostr(event))
    statuses["link"] = linking.status
    statuses["delete"] = await ask("POST", "/idp/account/delete", pod="alice")
    return statuses


@pytest.mark.feature("passkeys")
async def test_a_key_that_only_the_profile_names_changes_nothing_about_the_account(
    server: Server, browser: Browser, new_browser: NewBrowser, clock: FakeClock, key: NostrKey
) -> None:
    """A-130: whoever holds it has proven nothing to the account's owner."""
    await allowed(server, new_browser(), key)
    assert (await log_in(browser, clock, key, sent=ALICE)).status == 200
    page = await whole_account(browser)
    refused = await _asks(browser, clock, csrf_token(page))
    for asks_for_the_password in ("password", "email"):
        assert refused.pop(asks_for_the_password) == 401
    assert set(refused.values()) == {403}, refused
    assert await account_of(browser) == f"{BASE}/alice/#me"


@pytest.mark.feature("passkeys")
async def test_a_linked_key_changes_what_others_may(
    browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    """The same requests, which are refused to the key of a profile."""
    assert (await log_in(browser, clock, linked)).status == 200
    page = await whole_account(browser)
    statuses = await _asks(browser, clock, csrf_token(page))
    for allowed in ("challenge", "passkey", "credentials", "delete"):
        assert statuses[allowed] < 300, statuses


async def test_signing_in_again_needs_more_than_the_profile(
    server: Server, browser: Browser, new_browser: NewBrowser, clock: FakeClock, key: NostrKey
) -> None:
    """And says so, instead of asking for it over and over."""
    await allowed(server, new_browser(), key)
    status, error = error_of(await log_in(browser, clock, key, sent={"again": True} | ALICE))
    assert status == 403
    assert "profile" in error
    assert await account_of(browser) is None


async def test_a_linked_key_is_enough_to_sign_in_again(
    browser: Browser, clock: FakeClock, linked: NostrKey
) -> None:
    assert (await log_in(browser, clock, linked, sent={"again": True})).status == 200


@pytest.mark.feature("passkeys")
async def test_an_interaction_gives_no_more_to_the_key_of_a_profile(
    server: Server,
    browser: Browser,
    new_browser: NewBrowser,
    app: App,
    clock: FakeClock,
    key: NostrKey,
) -> None:
    await allowed(server, new_browser(), key)
    page = await browser.get(app.request())
    answered = await log_in_to(browser, page, clock, key, sent=ALICE)
    await browser.get(answered.json()["redirectUrl"])
    answered = await browser.ask("POST", "/idp/passkey/register/options", headers=SCRIPT)
    assert answered.status == 403


# --- making an account ----------------------------------------------------------------------------


def _typed(**typed: str) -> dict[str, str]:
    return {
        "username": "carol",
        "password": "a long password",
        "confirmPassword": "a long password",
    } | typed


async def test_a_key_without_an_account_can_get_one(
    browser: Browser, app: App, clock: FakeClock, key: NostrKey, store: SqliteStore
) -> None:
    """A-131: the account has the key from its first moment on."""
    page = await browser.get(app.request())
    refused = await log_in_to(browser, page, clock, key)
    form = await browser.get(refused.json()["registerUrl"])
    assert "npub1" in form.text
    page = await browser.send(form, "/idp/register", **_typed())
    assert reply_of(page)["state"] == ["the state"]
    kept = await NOSTR_LINKS.read(store, key.public, now_ms=0)
    assert kept is not None
    account = await ACCOUNTS.read(store, kept.value.account_id, now_ms=0)
    assert account is not None
    assert account.value.pod == "carol"
    browser.cookies.clear()
    assert (await log_in(browser, clock, key)).status == 200
    assert await account_of(browser) == f"{BASE}/carol/#me"


async def test_the_offer_is_for_the_browser_that_holds_the_key(
    browser: Browser, new_browser: NewBrowser, clock: FakeClock, key: NostrKey
) -> None:
    """A-131"""
    assert (await log_in(browser, clock, key)).json()["registerUrl"] == "/idp/register"
    other = new_browser()
    form = await other.get("/idp/register")
    assert "npub1" not in form.text
    page = await other.send(form, "/idp/register", **_typed(nostrKey=key.public))
    assert page.status == 409
    assert error_of(await log_in(other, clock, key))[0] == 403


async def test_the_offer_ends(browser: Browser, clock: FakeClock, key: NostrKey) -> None:
    await log_in(browser, clock, key)
    form = await browser.get("/idp/register")
    clock.advance(PROVEN_S)
    page = await browser.send(form, "/idp/register", **_typed())
    assert page.status == 409
    assert "not linked" in page.text
    page = await browser.send(page, "/idp/register", **_typed())
    assert page.path == "/.pages/welcome"


async def test_an_account_can_be_made_without_the_key(
    browser: Browser, clock: FakeClock, key: NostrKey
) -> None:
    await log_in(browser, clock, key)
    form = await browser.get("/idp/register")
    page = await browser.send(form, "/idp/register", **_typed(nostrKey=""))
    assert page.path == "/.pages/welcome"
    browser.cookies.clear()
    assert error_of(await log_in(browser, clock, key))[0] == 403


async def test_another_key_than_the_proven_one_is_not_linked(
    browser: Browser, clock: FakeClock, key: NostrKey
) -> None:
    """The form shows one key and links that one, or none."""
    await log_in(browser, clock, key)
    form = await browser.get("/idp/register")
    page = await browser.send(form, "/idp/register", **_typed(nostrKey=NostrKey.new().public))
    assert page.status == 409


async def test_a_key_that_was_linked_meanwhile_is_not_linked_again(
    browser: Browser, clock: FakeClock, key: NostrKey, store: SqliteStore
) -> None:
    """A-131: the account, its pod and the link come in one write, or none of them."""
    await log_in(browser, clock, key)
    form = await browser.get("/idp/register")
    record = NOSTR_LINKS.put(key.public, NostrLink(key.public, "other", created_s=1))
    await RecordStore(store, clock, SystemRandomness()).commit([record])
    page = await browser.send(form, "/idp/register", **_typed())
    assert page.status == 409
    assert await store.read_pod("carol") is None
    kept = await NOSTR_LINKS.read(store, key.public, now_ms=0)
    assert kept is not None
    assert kept.value.account_id == "other"


async def test_an_offer_is_taken_once(
    browser: Browser, clock: FakeClock, key: NostrKey, store: SqliteStore
) -> None:
    await log_in(browser, clock, key)
    form = await browser.get("/idp/register")
    await browser.send(form, "/idp/register", **_typed())
    assert "npub1" not in (await browser.get("/idp/register")).text
    page = await browser.send(form, "/idp/register", **_typed(username="dora"))
    assert page.status == 409
    assert await store.read_pod("dora") is None


async def test_where_only_the_operator_makes_accounts_none_is_offered(
    server: Server, settings: Settings, clock: FakeClock, key: NostrKey
) -> None:
    """A-96"""
    closed = replace(settings, idp=True, registration="closed")
    async with running(closed, clock=clock) as application:
        answered = await log_in(Browser(application), clock, key)
    assert error_of(answered) == UNKNOWN
    assert "registerUrl" not in answered.json()
