"""No other site does anything here with a visitor's session (A-46, A-60)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, Start, password_of
from tests.support.browser import FORM, Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, csrf_token, register, sign_in, whole_account

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


# --- The headers of every page (A-45, A-192) ---------------------------------------------------


NONCE = re.compile(r"'nonce-([0-9a-f]{32})'")


async def _pages(browser: Browser, app: App) -> list[Page]:
    """Every page, once."""
    pages = [
        await browser.get("/idp/login"),
        await browser.get("/idp/register"),
        await browser.get(app.request()),
        await browser.get("/idp/auth?client_id=nobody"),
        await browser.get(f"/idp/interaction/{'0' * 64}"),
        await browser.get("/idp/session/end"),
        await _after_signing_in(browser, app),
        await browser.get("/idp/account/delete"),
        await browser.get("/idp/session/end"),
        await browser.post("/idp/login", {}, Sec_Fetch_Site="cross-site"),
    ]
    account = await whole_account(browser)
    pages.append(await browser.send(account, "/idp/account/client-credentials"))
    page = await browser.get(app.request(response_mode="form_post", prompt="none"))
    return [*pages, page]


async def _after_signing_in(browser: Browser, app: App) -> Page:
    await sign_in(browser)
    return await browser.get(app.request())


async def test_every_page_has_a_strict_policy_and_is_kept_nowhere(
    browser: Browser, app: App
) -> None:
    """A-45."""
    nonces = []
    for page in await _pages(browser, app):
        answer = page.answer
        assert answer.header("content-type") == "text/html; charset=utf-8"
        assert answer.header("cache-control") == "no-store"
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("referrer-policy") == "no-referrer"
        policy = answer.header("content-security-policy") or ""
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        [nonce] = set(NONCE.findall(policy))
        assert rules.pop("form-action") in {"'self'", "'self' https://app.example"}
        assert rules == {
            "default-src": "'none'",
            "script-src": f"'nonce-{nonce}'",
            "style-src": "'self'",
            "font-src": "'self'",
            "img-src": "'self' data:",
            "connect-src": "'self'",
            "frame-ancestors": "'none'",
            "base-uri": "'none'",
        }
        assert "<style" not in page.text
        assert len(re.findall(r"<script", page.text)) == len(
            re.findall(f'<script nonce="{nonce}">', page.text)
        )
        assert not re.search(r' (?:on[a-z]+|style)="', page.text)
        nonces.append(nonce)
    assert len(set(nonces)) == len(nonces), "each answer has its own"


async def test_a_page_loads_nothing_but_its_style(browser: Browser, app: App) -> None:
    """No third-party requests; the style sheets and the font are files of this server."""
    for page in await _pages(browser, app):
        for link in re.findall(r"<link [^>]*>", page.text):
            assert re.fullmatch(
                r'<link rel="stylesheet" href="/\.pages/assets/[0-9a-f]+/\w+\.css">'
                r'|<link rel="preload" href="/\.pages/assets/[0-9a-f]+/\w+\.woff2" as="font"'
                r' type="font/woff2" crossorigin>',
                link,
            )
        assert not re.search(r"<(?:img|iframe|object|video|audio|source)\b", page.text)
        assert not re.search(r"\bsrc=|@import|url\(", page.text)


async def test_every_route_for_get_also_handles_head(browser: Browser) -> None:
    for path in ("/idp/login", "/idp/register", "/idp/auth", "/idp/session/end"):
        answer = await browser.ask("HEAD", path)
        assert answer.status == 200
        assert answer.body == b""
        assert int(answer.header("content-length") or "") > 0


@pytest.mark.parametrize(
    ("uri", "target"),
    [
        ("https://app.example:8443/callback", "https://app.example:8443"),
        ("http://127.0.0.1:8080/callback", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/callback", "http:"),
        ("com.example.app:/callback", "com.example.app:"),
        ("com.example.app://callback", "com.example.app:"),
    ],
)
async def test_forms_may_lead_to_the_application_only(
    browser: Browser, app: App, uri: str, target: str
) -> None:
    """A-45: what a policy cannot name by its origin it names by its scheme."""
    native = await register(app.server, redirect_uris=[uri], application_type="native")
    page = await browser.get(native.request(redirect_uri=uri))
    policy = page.answer.header("content-security-policy") or ""
    assert f"form-action 'self' {target};" in policy


async def test_over_https_it_stays_so(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock, idp=True, base_url="https://pods.example")
    browser = Browser(server.application, base_url="https://pods.example")
    page = await browser.get("/idp/login")
    assert page.answer.header("strict-transport-security")


async def test_every_answer_of_an_account_is_kept_nowhere(browser: Browser) -> None:
    await sign_in(browser)
    for path in ("", "/sessions", "/grants", "/client-credentials"):
        answer = await browser.ask(
            "GET", f"/idp/account{path}", headers={"Accept": "application/json"}
        )
        assert answer.status == 200
        assert answer.header("cache-control") == "no-store"
        assert BASE not in (answer.header("link") or "")


# --- languages ---------------------------------------------------------------------------------
#
# The pages of the provider have the header, the footer and the languages of all others.


PAGES = ("/idp/login", "/idp/register", "/idp/login?next=/.pages/files/")


@pytest.mark.parametrize("path", PAGES)
async def test_the_language_is_chosen_in_the_footer(browser: Browser, path: str) -> None:
    page = await browser.get(path)
    assert '<a class="brand" href="/">' in page.text
    page = await browser.send(page, "/.pages/language", language="de")
    assert page.url.endswith(path)
    assert '<html lang="de">' in page.text
    assert 'value="de" selected' in page.text


@pytest.mark.parametrize(
    "asked",
    ["https://evil.example/idp/", "//evil.example/idp/", "/idp/..//evil.example"],
)
async def test_the_choice_leads_to_no_other_place(browser: Browser, asked: str) -> None:
    page = await browser.get("/idp/login")
    fields = {**page.form("/.pages/language").fields, "next": asked, "language": "nl"}
    reached = await browser.post("/.pages/language", fields)
    assert reached.url.startswith("http://localhost:3000/")
    assert "evil" not in reached.url


async def test_a_form_that_was_refused_leads_to_itself_in_another_language(
    browser: Browser,
) -> None:
    page = await browser.send(await browser.get("/idp/register"), "/idp/register", username="a b")
    assert page.status == 400
    page = await browser.send(page, "/.pages/language", language="de")
    assert page.url.endswith("/idp/register")
    assert '<html lang="de">' in page.text
