"""Signing in without an application, and out again (A-52, A-58, A-61)."""

from __future__ import annotations

import logging

import pytest

from podstead.app.accounts import build_accounts
from podstead.app.adapters.system import SystemRandomness
from podstead.config import Settings
from podstead.idp import sessions
from podstead.idp.sign_in import MARK_S
from podstead.storage.sqlite import SqliteStore
from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, Start, password_of
from tests.support.asgi import Answer
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.idp_pages import csrf_token, sign_in, whole_account

DAY_S = 24 * 3600
JSON = "application/json"


@pytest.mark.parametrize("path", ["/idp/auth", "/idp/login"])
async def test_without_an_application_there_is_a_page_to_sign_in(
    browser: Browser, path: str
) -> None:
    """A-52."""
    page = await browser.get(path)
    assert (page.status, page.path) == (200, path)
    assert page.form("/idp/login").fields.keys() == {"username", "password"}
    assert "/idp/register" in page.text


@pytest.mark.parametrize("login", ["alice", "ALICE", "alice@example.org", "Alice@Example.org"])
async def test_the_name_of_the_pod_and_the_email_address_sign_in(
    browser: Browser, login: str
) -> None:
    page = await browser.get("/idp/login")
    page = await browser.send(page, "/idp/login", username=login, password=password_of("alice"))
    assert (page.status, page.path) == (200, "/.pages/security")
    assert f"{BASE}/alice/#me" in page.text


@pytest.mark.parametrize(("login", "password"), [("alice", "wrong"), ("nobody", "wrong")])
async def test_a_wrong_password_and_an_unknown_name_get_the_same_page(
    browser: Browser, login: str, password: str
) -> None:
    """A-58, A-182: back on the page, with the name still there and the password not."""
    page = await browser.get("/idp/login")
    page = await browser.send(page, "/idp/login", username=login, password=password)
    assert (page.status, page.path) == (200, "/idp/login")
    assert "The name or the password is wrong" in page.text
    assert page.form("/idp/login").fields == {"username": login, "password": ""}
    assert "podstead-session" not in browser.cookies
    page = await browser.get("/idp/login")
    assert "is wrong" not in page.text, "it is said once"


async def test_a_program_signs_in_with_json(server: Server) -> None:
    """A-58: the address to go on to, in the body and the header."""
    browser = Browser(server.application)
    await browser.get("/idp/login")
    headers = {"Accept": "*/*", "Content-Type": JSON}
    body = b'{"email": "alice@example.org", "password": "the password of alice"}'
    answer = await browser.ask("POST", "/idp/login", headers=headers, body=body)
    assert answer.status == 200
    assert answer.json() == {"location": f"{BASE}/idp/account"}
    assert answer.header("location") == f"{BASE}/idp/account"
    refused = await browser.ask("POST", "/idp/login", headers=headers, body=b'{"email": "alice"}')
    assert refused.status == 401
    assert refused.json() == {
        "error": "invalid_grant",
        "error_description": "Invalid username or password",
    }


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        (JSON, b"[]", 400),
        (JSON, b"{", 400),
        (JSON, b'{"username": 1, "password": "x"}', 400),
        ("application/x-www-form-urlencoded", b"username=a&username=b&password=c", 400),
        ("application/x-www-form-urlencoded", b"username=%ff", 400),
        ("text/plain", b"username=alice", 415),
        ("application/x-www-form-urlencoded", b"a" * 70_000, 413),
    ],
)
async def test_an_invalid_form_is_refused(
    browser: Browser, content_type: str, body: bytes, status: int
) -> None:
    await browser.get("/idp/login")
    headers = {"Accept": "*/*", "Content-Type": content_type}
    answer = await browser.ask("POST", "/idp/login", headers=headers, body=body)
    assert answer.status == status
    assert answer.json()["message"]


async def test_the_cookies_are_for_this_server_and_out_of_the_reach_of_scripts(
    server: Server,
) -> None:
    """A-61: on plain http without Secure, which no client would send back."""
    browser = Browser(server.application)
    page = await browser.get("/idp/login")
    [line] = page.answer.header_lines("set-cookie")
    assert line == f"podstead-browser={browser.cookies['podstead-browser']}; {PLAIN}"
    assert len(browser.cookies["podstead-browser"]) == 64
    answer = await _log_in(browser)
    [line, known] = answer.header_lines("set-cookie")
    assert line == f"podstead-session={browser.cookies['podstead-session']}; {PLAIN}"
    marks = browser.cookies["podstead-known"]
    assert known == f"podstead-known={marks}; {PLAIN}; Max-Age={MARK_S}"


PLAIN = "Path=/; HttpOnly; SameSite=Lax"


async def test_over_https_the_cookies_are_bound_to_the_host(start: Start, clock: FakeClock) -> None:
    """A-61."""
    server = await start(clock=clock, idp=True, base_url="https://pods.example")
    browser = Browser(server.application, base_url="https://pods.example")
    page = await browser.get("/idp/login")
    [line] = page.answer.header_lines("set-cookie")
    assert line.startswith("__Host-podstead-browser=")
    assert line.endswith(f"{PLAIN}; Secure")
    answer = await _log_in(browser)
    [line, known] = answer.header_lines("set-cookie")
    assert line.startswith("__Host-podstead-session=")
    assert line.endswith(f"{PLAIN}; Secure")
    assert known.startswith("__Host-podstead-known=")
    assert known.endswith(f"{PLAIN}; Secure; Max-Age={MARK_S}")
    assert (await whole_account(browser)).status == 200
    plain = {name.removeprefix("__Host-"): value for name, value in browser.cookies.items()}
    other = Browser(server.application, "https://pods.example", cookies=plain)
    assert (await whole_account(other)).path == "/idp/login", "the plain name means nothing"


async def test_signing_in_makes_a_new_session_and_ends_the_one_before(browser: Browser) -> None:
    """A-60, A-61: a session that somebody planted is never the one that is signed in."""
    await sign_in(browser)
    before = browser.cookies["podstead-session"]
    page = await browser.get("/idp/login?again=delete")
    await browser.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert browser.cookies["podstead-session"] != before
    old = Browser(browser.application, cookies={"podstead-session": before})
    assert (await whole_account(old)).path == "/idp/login"


async def test_a_secret_that_a_browser_invents_is_not_a_session(browser: Browser) -> None:
    for invented in ("0" * 64, "x", "", "../", "a" * 5000):
        browser.cookies["podstead-session"] = invented
        assert (await whole_account(browser)).path == "/idp/login"


@pytest.mark.parametrize(
    ("lasting", "pauses_s", "still_in"),
    [
        (False, [12 * 3600 - 1], True),
        (False, [12 * 3600], False),
        (False, [6 * 3600, 6 * 3600], False),
        (True, [14 * DAY_S - 1], True),
        (True, [14 * DAY_S], False),
        (True, [13 * DAY_S] * 6, True),
        (True, [13 * DAY_S] * 7, False),
        (True, [2 * DAY_S, 13 * DAY_S], True),
    ],
)
async def test_a_session_ends_by_itself(
    browser: Browser, clock: FakeClock, lasting: bool, pauses_s: list[int], still_in: bool
) -> None:
    """A-61: 12 hours; or 14 days without use, and 90 days in all."""
    await sign_in(browser, **({"remember": "yes"} if lasting else {}))
    page = None
    for pause_s in pauses_s:
        clock.advance(pause_s)
        page = await whole_account(browser)
    assert page is not None
    assert (page.path == SECURITY) is still_in


@pytest.mark.parametrize("lasting", [False, True])
async def test_only_who_wants_to_stay_signed_in_is_after_the_browser_closes(
    browser: Browser, lasting: bool
) -> None:
    """A-61."""
    await browser.get("/idp/login")
    answer = await _log_in(browser, **({"remember": "yes"} if lasting else {}))
    [line, _] = answer.header_lines("set-cookie")
    assert ("Max-Age=7776000" in line) is lasting


@pytest.mark.parametrize(("name", "still_in"), [("alice", True), ("bob", False)])
async def test_signing_in_again_does_not_shorten_a_session(
    browser: Browser, clock: FakeClock, name: str, still_in: bool
) -> None:
    """Of the same person; another one has asked for nothing."""
    await sign_in(browser, remember="yes")
    page = await browser.get("/idp/login?again=delete")
    await browser.send(page, "/idp/login", username=name, password=password_of(name))
    clock.advance(13 * 3600)
    assert ((await whole_account(browser)).path == SECURITY) is still_in


async def test_a_signed_in_person_is_sent_to_the_account(browser: Browser) -> None:
    await sign_in(browser)
    assert (await browser.get("/idp/login")).path == "/.pages/security"
    assert (await browser.get("/idp/auth")).path == "/.pages/security"


async def test_a_person_who_is_not_signed_in_is_sent_to_the_sign_in_page(browser: Browser) -> None:
    page = await whole_account(browser)
    assert (page.status, page.path) == (200, "/idp/login")
    assert "Sign in to see this page" in page.text
    answer = await browser.ask("GET", "/idp/account", headers={"Accept": JSON})
    assert answer.status == 401
    assert answer.json()["error"] == "Unauthorized"


async def test_signing_out_ends_the_session_and_its_cookie(browser: Browser) -> None:
    page = await sign_in(browser)
    secret = browser.cookies["podstead-session"]
    page = await browser.send(page, "/.pages/sign-out")
    assert "You are signed out" in page.text
    assert "podstead-session" not in browser.cookies
    again = Browser(browser.application, cookies={"podstead-session": secret})
    assert (await whole_account(again)).path == "/idp/login"
    page = await browser.post("/idp/logout", {})
    assert page.path == "/idp/login", "signing out twice is no error"


async def test_the_oldest_sessions_make_room(
    server: Server, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that signs in again and again fills nothing up; the newest stay."""
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    browsers = []
    for _ in range(5):
        browsers.append(Browser(server.application))
        await sign_in(browsers[-1])
        clock.advance(1)
    paths = [(await whole_account(browser)).path for browser in browsers]
    assert paths == ["/idp/login"] * 2 + [SECURITY] * 3


async def test_a_disabled_account_has_no_sessions(
    server: Server, browser: Browser, settings: Settings, clock: FakeClock
) -> None:
    await sign_in(browser)
    store = SqliteStore(settings.root)
    await store.open()
    services = build_accounts(settings, store=store, clock=clock, randomness=SystemRandomness())
    found = await services.accounts.find("alice")
    assert found is not None
    await services.accounts.disable(found.value.account_id)
    assert (await whole_account(browser)).path == "/idp/login"
    page = await browser.send(
        await browser.get("/idp/login"),
        "/idp/login",
        username="alice",
        password=password_of("alice"),
    )
    assert "This account is disabled" in page.text
    await services.accounts.enable(found.value.account_id)
    assert (await whole_account(browser)).path == "/idp/login", "the session is gone for good"
    await store.close()


async def test_too_many_failures_are_reported_with_a_time(
    browser: Browser, clock: FakeClock
) -> None:
    """A-181: a page for people, JSON for programs; and the right password waits as well."""
    page = await browser.get("/idp/login")
    for _ in range(5):
        await browser.send(page, "/idp/login", username="alice", password="wrong")
    page = await browser.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert page.status == 429
    assert "Too many attempts" in page.text
    assert int(page.answer.header("retry-after") or "") > 0
    answer = await browser.ask(
        "POST",
        "/idp/login",
        headers={"Accept": "*/*", "Content-Type": JSON},
        body=b'{"username": "alice", "password": "wrong"}',
    )
    assert answer.status == 429
    assert answer.json()["retryAfter"] > 0
    clock.advance(answer.json()["retryAfter"])
    assert (await sign_in(browser)).path == SECURITY


async def test_events_are_recorded_without_what_was_typed(
    browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """A-183, A-184."""
    caplog.set_level(logging.DEBUG)
    page = await browser.get("/idp/login")
    await browser.send(page, "/idp/login", username="alice@example.org", password="secret-typo")
    page = await sign_in(browser)
    token = csrf_token(page)
    secrets = [*browser.cookies.values(), token, "secret-typo", password_of("alice")]
    await browser.send(page, "/.pages/sign-out")
    audited = [each.getMessage() for each in caplog.records if each.name == "podstead.audit"]
    assert audited == ["sign-in failed", "signed in", "signed out"]
    told = "".join(f"{each.getMessage()}{each.__dict__}" for each in caplog.records)
    assert not [secret for secret in secrets if secret in told]
    assert "alice@example.org" not in told


async def _log_in(browser: Browser, **typed: str) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    more = "".join(f"&{name}={value}" for name, value in typed.items())
    body = f"username=alice&password=the+password+of+alice{more}".encode()
    answer = await browser.ask("POST", "/idp/login", headers=headers, body=body)
    assert answer.status == 303
    return answer
