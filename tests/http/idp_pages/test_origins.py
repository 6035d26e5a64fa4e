"""No other site does anything here with a visitor's session (A-46, A-60)."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, password_of
from tests.support.browser import FORM, Browser
from tests.support.idp_pages import App, csrf_token, sign_in, whole_account

CREDENTIALS = {"username": "alice", "password": password_of("alice")}

REFUSED: tuple[Mapping[str, str], ...] = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": ""},
    {"Sec-Fetch-Site": "cross-site", "Origin": BASE},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": f"{BASE}.evil.example"},
    {"Origin": "https://localhost:3000"},
    {"Origin": "http://localhost:3001"},
    {"Origin": ""},
)
TAKEN: tuple[Mapping[str, str], ...] = (
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-origin", "Origin": BASE},
    {"Origin": BASE},
    {},
)


@pytest.mark.parametrize("said", REFUSED, ids=str)
async def test_a_request_of_another_site_does_nothing(
    browser: Browser, app: App, said: Mapping[str, str]
) -> None:
    """Each form, with everything right but where it comes from."""
    account = await sign_in(browser)
    token = csrf_token(account)
    page = await browser.get(app.request())
    session = browser.cookies["podstead-session"]
    for path, fields in (
        ("/idp/login", CREDENTIALS),
        ("/idp/register", {"username": "mallory"}),
        (page.path, CREDENTIALS),
        (f"{page.path}/login", CREDENTIALS),
        (f"{page.path}/confirm", {}),
        (f"{page.path}/abort", {}),
        ("/idp/logout", {"csrf_token": token}),
        ("/idp/session/end/confirm", {"csrf_token": token}),
        ("/idp/account/email", {"csrf_token": token, "email": "m@example.org"}),
        ("/idp/account/password", {"csrf_token": token}),
        ("/idp/account/sessions", {"csrf_token": token}),
        ("/idp/account/client-credentials", {"csrf_token": token}),
        ("/idp/account/delete", {"csrf_token": token, "pod": "alice"}),
    ):
        answer = await _post(browser, path, fields, said)
        assert answer == 403, path
    assert browser.cookies["podstead-session"] == session
    assert (await whole_account(browser)).path == SECURITY
    assert "Allow this application?" in (await browser.get(page.path)).text


@pytest.mark.parametrize("said", TAKEN, ids=str)
async def test_a_request_of_our_own_pages_does(browser: Browser, said: Mapping[str, str]) -> None:
    """A-60: and one of a client that is no browser, with the cookie it began with."""
    await browser.get("/idp/login")
    assert await _post(browser, "/idp/login", CREDENTIALS, said) == 303
    assert "podstead-session" in browser.cookies


async def test_a_client_that_says_nothing_needs_the_cookie_it_began_with(server: Server) -> None:
    """A-60: a session alone is not enough."""
    nobody = Browser(server.application)
    assert await _post(nobody, "/idp/login", CREDENTIALS, {}) == 403
    browser = Browser(server.application)
    page = await sign_in(browser)
    del browser.cookies["podstead-browser"]
    form = {"csrf_token": csrf_token(page)}
    assert await _post(browser, "/idp/logout", form, {}) == 403
    assert await _post(browser, "/idp/logout", form, {"Origin": BASE}) == 303


@pytest.mark.parametrize("token", [None, "", "0" * 64, "é"])
async def test_the_forms_of_an_account_need_the_sessions_token(
    browser: Browser, server: Server, token: str | None
) -> None:
    """A-60: another account's does not do either."""
    account = await sign_in(browser)
    other = Browser(server.application)
    theirs = csrf_token(await sign_in(other, "bob"))
    for path in (
        "/idp/logout",
        "/idp/session/end/confirm",
        "/idp/account/email",
        "/idp/account/password",
        "/idp/account/sessions",
        "/idp/account/sessions/x",
        "/idp/account/grants/x",
        "/idp/account/client-credentials",
        "/idp/account/client-credentials/x",
        "/idp/account/delete",
    ):
        for shown in (token, theirs):
            form = {} if shown is None else {"csrf_token": shown}
            assert await _post(browser, path, form, {"Origin": BASE}) == 403, path
    assert csrf_token(await whole_account(browser)) == csrf_token(account)


@pytest.mark.parametrize(
    "path",
    [
        "/idp/auth",
        "/idp/login",
        "/idp/register",
        "/idp/account",
        "/idp/account/sessions",
        "/idp/session/end",
        f"/idp/interaction/{'0' * 64}",
        f"/idp/auth/{'0' * 64}",
    ],
)
@pytest.mark.parametrize("method", ["OPTIONS", "GET", "POST"])
async def test_no_other_origin_reads_a_page(browser: Browser, path: str, method: str) -> None:
    """A-46."""
    await sign_in(browser)
    headers = {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}
    answer = await browser.ask(method, path, headers=headers)
    assert not [name for name, _ in answer.headers if name.startswith("access-control-")]
    assert "wac-allow" not in {name for name, _ in answer.headers}


async def test_the_cookie_is_nothing_to_resources(browser: Browser) -> None:
    """A-2."""
    await sign_in(browser)
    answer = await browser.ask("GET", "/alice/private/", headers={"Accept": "text/turtle"})
    assert answer.status == 401


@pytest.mark.parametrize("path", ["/idp/x", "/idp/account/x/y/z", "/idp/interaction", "/idp/"])
async def test_nothing_else_is_there(browser: Browser, path: str) -> None:
    """A-13: by exact path and method."""
    answer = await browser.ask("GET", path, headers={"Accept": "application/json"})
    assert answer.status == 404
    answer = await browser.ask("PUT", path, headers={"Accept": "application/json"})
    assert answer.status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/idp/login"), ("DELETE", "/idp/account"), ("GET", "/idp/logout")],
)
async def test_a_method_that_is_not_there_is_refused(
    browser: Browser, method: str, path: str
) -> None:
    """A-13."""
    answer = await browser.ask(method, path)
    assert answer.status == 405
    assert answer.header("allow")


async def _post(
    browser: Browser, path: str, fields: Mapping[str, str], said: Mapping[str, str]
) -> int:
    body = urlencode(fields).encode()
    headers = {"Content-Type": FORM, **said}
    return (await browser.ask("POST", path, headers=headers, body=body)).status
