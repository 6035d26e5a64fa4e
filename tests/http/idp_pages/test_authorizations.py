"""An application sends a person here, and they come back with a code (A-52 to A-60)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from tests.support.application import BASE, Server, password_of
from tests.support.browser import FORM, Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import REDIRECT_URI, App, go_on, register, reply_of, sign_in

NewBrowser = Callable[[], Browser]


async def test_signing_in_on_a_page_that_names_the_application_is_enough(
    browser: Browser, app: App
) -> None:
    """A-54, A-56, A-57: but not for lasting access, which nobody was asked about."""
    page = await browser.get(app.request())
    assert re.fullmatch(r"/idp/interaction/[0-9a-f]{64}", page.path)
    assert "Notes" in page.text
    assert "app.example" in page.text
    page = await _sign_in_here(browser, page)
    reply = reply_of(page)
    assert reply.keys() == {"code", "state", "iss"}
    assert reply["state"] == ["the state"]
    assert reply["iss"] == [BASE]
    tokens = await app.tokens(page)
    assert tokens["scope"] == "openid webid"
    assert "refresh_token" not in tokens


async def test_lasting_access_needs_the_page_that_says_so(browser: Browser, app: App) -> None:
    """A-56."""
    page = await browser.get(app.request(prompt="consent"))
    page = await _sign_in_here(browser, page)
    assert "Stay connected" in page.text
    page = await _confirm(browser, page)
    tokens = await app.tokens(page)
    assert tokens["scope"] == "openid webid offline_access"
    assert await app.refresh(tokens["refresh_token"]) == 200


async def test_consent_is_remembered(browser: Browser, app: App) -> None:
    """A-55, A-56: also for ``prompt=none``."""
    page = await browser.get(app.request(prompt="consent"))
    await _confirm(browser, await _sign_in_here(browser, page))
    assert "code" in reply_of(await browser.get(app.request()))
    assert "code" in reply_of(await browser.get(app.request(prompt="none")))


async def test_a_session_alone_gives_no_application_anything(
    server: Server, browser: Browser, app: App
) -> None:
    """A-56."""
    await sign_in(browser)
    refused = reply_of(go_on(await browser.get(app.request(prompt="none"))))
    assert refused["error"] == ["consent_required"]
    await _confirm(browser, await browser.get(app.request()))
    second = await register(server, client_name="Another")
    refused = reply_of(go_on(await browser.get(second.request(prompt="none"))))
    assert refused == {
        "error": ["consent_required"],
        "error_description": refused["error_description"],
        "state": ["the state"],
        "iss": [BASE],
    }
    page = await browser.get(second.request())
    assert "Allow this application?" in page.text


async def test_without_a_session_nothing_is_asked_where_nothing_may_be(
    browser: Browser, app: App
) -> None:
    """A-55."""
    reply = reply_of(go_on(await browser.get(app.request(prompt="none"))))
    assert reply["error"] == ["login_required"]


async def test_declining_returns_to_the_application_with_an_error(
    browser: Browser, app: App
) -> None:
    """A-59: from either page."""
    page = await browser.get(app.request())
    page = await browser.send(page, f"{page.path}/abort")
    assert reply_of(page)["error"] == ["access_denied"]
    await sign_in(browser)
    page = await browser.get(app.request())
    page = await browser.send(page, f"{page.path}/abort")
    assert reply_of(page)["error"] == ["access_denied"]


async def test_the_page_of_consent_says_what_and_to_whom(browser: Browser, app: App) -> None:
    """A-51, A-56."""
    await sign_in(browser)
    page = await browser.get(app.request(scope="openid webid profile email offline_access"))
    for said in (
        "Notes",
        "registered itself",
        "<strong>app.example</strong>",
        f"{BASE}/alice/#me",
        "alice@example.org",
        "read, change and delete",
        "up to 90 days",
        "See your name",
    ):
        assert said in page.text, said
    page = await browser.get(app.request(scope="openid webid"))
    for unsaid in ("alice@example.org", "Stay connected", "See your name"):
        assert unsaid not in page.text, unsaid


async def test_an_applications_name_is_text(browser: Browser, server: Server) -> None:
    hostile = await register(server, client_name="<script>alert(1)</script>")
    page = await browser.get(hostile.request())
    assert "<script>" not in page.text
    assert "&lt;script&gt;" in page.text


# --- consent is asked by the server --------------------------------------------------------------

NEVER_ALLOWED: dict[str, tuple[dict[str, object], dict[str, str]]] = {
    "prompt=login": ({}, {"prompt": "login"}),
    "prompt=select_account": ({}, {"prompt": "select_account"}),
    "max_age=0": ({}, {"max_age": "0"}),
    "an ID token of nobody": ({}, {"id_token_hint": "x"}),
    "profile": ({}, {"scope": "openid webid profile"}),
    "email": ({}, {"scope": "openid webid email"}),
    "a scheme of its own": (
        {"application_type": "native", "redirect_uris": ["org.example.app:/back"]},
        {"redirect_uri": "org.example.app:/back"},
    ),
    "a loopback address": (
        {"application_type": "native", "redirect_uris": ["http://127.0.0.1/back"]},
        {"redirect_uri": "http://127.0.0.1:54321/back"},
    ),
}


@pytest.mark.parametrize(("metadata", "changes"), NEVER_ALLOWED.values(), ids=NEVER_ALLOWED)
@pytest.mark.parametrize("signed_in", [True, False], ids=["with a session", "without a session"])
async def test_no_request_gets_around_the_page_for_consent(
    server: Server,
    browser: Browser,
    metadata: dict[str, object],
    changes: dict[str, str],
    signed_in: bool,
) -> None:
    """Signing in is consent only where nothing that the client chose shows that page instead."""
    app = await register(server, **metadata)
    if signed_in:
        await sign_in(browser)
    clock_dependent = {"max_age", "id_token_hint"} & changes.keys()
    page = await browser.get(app.request(**changes))
    assert page.path.startswith("/idp/interaction/")
    if 'type="password"' in page.text:
        page = await _sign_in_here(browser, page)
    if clock_dependent and not signed_in:
        assert "code" in reply_of(page), "who has no session would have signed in anyway"
        return
    assert "Allow this application?" in page.text
    page = await _confirm(browser, page)
    assert "code=" in page.url


async def test_the_page_to_sign_in_on_names_all_that_signing_in_gives(
    server: Server, browser: Browser
) -> None:
    app = await register(server)
    page = await browser.get(app.request(scope="openid webid"))
    text = " ".join(page.text.split())
    for said in (
        "If you sign in here, this application can:",
        "your name and your address",
        "read, change and",
    ):
        assert said in text
    assert "trust <strong>app.example</strong>" in text
    page = await browser.get(app.request(scope="openid webid email"))
    assert "If you sign in here" not in page.text
    assert "you will be asked next" in " ".join(page.text.split())


async def test_each_datum_is_named_before_it_is_given(browser: Browser, app: App) -> None:
    page = await browser.get(app.request(scope="openid profile email"))
    page = await _sign_in_here(browser, page)
    for said in ("name</strong>, which is the name of your pod: alice", "alice@example.org"):
        assert said in page.text
    assert "no access to your pod" in page.text
    assert "read, change and delete" not in page.text
    tokens = await app.tokens(await _confirm(browser, page))
    answer = await app.server.public.get(
        "/idp/me", Authorization=f"Bearer {tokens['access_token']}"
    )
    assert answer.json().keys() == {"sub", "name", "email", "email_verified"}


async def test_nothing_is_given_silently_but_what_was_allowed_at_this_address(
    server: Server, browser: Browser
) -> None:
    """A host is shared by many; a consent is to one registered redirect URI and its scopes."""
    other = "https://app.example/somebody-else"
    app = await register(server, redirect_uris=[REDIRECT_URI, other])
    await sign_in(browser)
    await _confirm(browser, await browser.get(app.request(scope="openid webid")))
    silent = {"prompt": "none", "scope": "openid webid"}
    assert "code" in reply_of(await browser.get(app.request(**silent)))
    for changes in ({"redirect_uri": other}, {"scope": "openid webid email"}):
        page = await browser.get(app.request(**{**silent, **changes}))
        assert "code=" not in page.url
        assert "consent_required" in page.text or "consent_required" in page.url


ON_THIS_DEVICE = {
    "any port": ("http://127.0.0.1/back", "http://127.0.0.1:50001/back"),
    "its port": ("http://127.0.0.1:50001/back", "http://127.0.0.1:50001/back"),
    "localhost": ("http://localhost:50001/back", "http://localhost:50001/back"),
    "a private scheme": ("com.example.notes:/back", "com.example.notes:/back"),
}


@pytest.mark.parametrize(
    ("registered", "redirect_uri"), ON_THIS_DEVICE.values(), ids=ON_THIS_DEVICE
)
async def test_no_program_on_the_device_gets_a_code_without_a_page(
    server: Server, browser: Browser, registered: str, redirect_uri: str
) -> None:
    """A-56, RFC 8252 section 8.6: any of them may send the request of another, and receive the
    response at this port or another one. Also if the person has to sign in."""
    app = await register(server, application_type="native", redirect_uris=[registered])
    await sign_in(browser)
    scope = "openid webid"
    page = await browser.get(app.request(redirect_uri=redirect_uri, scope=scope))
    assert "That is a program on your own device" in page.text
    page = await _confirm(browser, page)
    assert page.url.startswith(f"{redirect_uri}?code=")
    for uri in (redirect_uri, redirect_uri.replace(":50001", ":50002")):
        page = await browser.get(app.request(redirect_uri=uri, scope=scope, prompt="none"))
        known = uri == redirect_uri or registered == "http://127.0.0.1/back"
        assert "code=" not in page.url
        assert not known or page.url.startswith(f"{uri}?error=consent_required")
        page = await browser.get(app.request(redirect_uri=uri, scope=scope))
        assert not known or "Allow this application?" in page.text
    other = Browser(server.application)
    page = await other.get(app.request(redirect_uri=redirect_uri, scope=scope))
    assert "Allow this application?" in (await _sign_in_here(other, page)).text


async def test_a_program_with_a_secret_is_known_at_the_address_that_it_has_registered(
    server: Server, browser: Browser
) -> None:
    app = await register(
        server,
        application_type="native",
        redirect_uris=["http://127.0.0.1:50001/back"],
        token_endpoint_auth_method="client_secret_basic",
    )
    await sign_in(browser)
    asked = {"redirect_uri": "http://127.0.0.1:50001/back", "scope": "openid webid"}
    await _confirm(browser, await browser.get(app.request(**asked)))
    page = await browser.get(app.request(**asked, prompt="none"))
    assert page.url.startswith("http://127.0.0.1:50001/back?code=")
    asked["redirect_uri"] = "http://127.0.0.1:50002/back"
    page = await browser.get(app.request(**asked, prompt="none"))
    assert page.url.startswith("http://127.0.0.1:50002/back?error=consent_required")
    page = await browser.get(app.request(**asked))
    assert "Allow this application?" in page.text


async def test_the_consent_of_one_person_is_not_that_of_the_next(
    browser: Browser, app: App
) -> None:
    """Who has agreed, and then uses another account in the same sign-in, is asked again."""
    await sign_in(browser)
    page = await browser.get(app.request())
    uid = page.path.rpartition("/")[2]
    agreed = await browser.ask(
        "POST", f"{page.path}/confirm", headers={"Sec-Fetch-Site": "same-origin"}
    )
    assert agreed.status == 303
    page = await browser.get(f"/idp/interaction/{uid}?switch=1")
    page = await _sign_in_here(browser, page, "bob")
    assert "Allow this application?" in page.text


# --- no open redirects ---------------------------------------------------------------------------

STRANGE: dict[str, dict[str, str]] = {
    "prompt=none": {"prompt": "none"},
    "an invalid scope": {"scope": "nonsense"},
    "another response type": {"response_type": "token"},
    "no PKCE": {"code_challenge": ""},
    "an unknown prompt": {"prompt": "x"},
    "a form": {"prompt": "none", "response_mode": "form_post"},
    "a fragment": {"prompt": "none", "response_mode": "fragment"},
}


@pytest.mark.parametrize("changes", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("signed_in", [True, False], ids=["with a session", "without a session"])
async def test_an_error_leads_nobody_to_a_site_they_do_not_know(
    browser: Browser, app: App, changes: dict[str, str], signed_in: bool
) -> None:
    """RFC 9700 section 4.11.2: anybody can register an application, so an error that goes there by
    itself would be an open redirect. A page names the host, and the answer is in its link."""
    if signed_in:
        await sign_in(browser)
    page = await browser.get(app.request(**changes))
    assert (page.status, page.path) == (200, "/idp/auth")
    assert "<strong>app.example</strong>" in page.text
    assert "<script" not in page.text
    if changes.get("response_mode") == "form_post":
        [form] = [each for each in page.forms if each.action == REDIRECT_URI]
        assert "error" in form.fields
    else:
        assert "error" in reply_of(go_on(page))


async def test_an_error_goes_at_once_to_where_the_person_has_been(
    browser: Browser, app: App
) -> None:
    """Who has allowed the application is not stopped on the way back to it."""
    await sign_in(browser)
    await _confirm(browser, await browser.get(app.request()))
    for changes in ({"prompt": "none", "scope": "openid email"}, {"scope": "nonsense"}):
        assert "error" in reply_of(await browser.get(app.request(**changes)))


@pytest.mark.parametrize(
    "headers",
    [
        {"Accept": "application/json"},
        {"Sec-Fetch-Dest": "iframe"},
        {"Referer": "https://app.example/notes", "Sec-Fetch-Dest": "document"},
        {"Referer": "https://app.example/"},
    ],
    ids=["a program", "a frame", "the application", "an older browser at the application"],
)
async def test_an_error_goes_at_once_where_it_leads_nobody_away(
    browser: Browser, app: App, headers: dict[str, str]
) -> None:
    """A program, the hidden frame in which an application asks whether somebody is signed in, and
    the page of the application itself, which does so when it is loaded again (OpenID Connect Core
    section 3.1.2.6)."""
    page = await browser.get(app.request(prompt="none"), **headers)
    assert reply_of(page)["error"] == ["login_required"]


@pytest.mark.parametrize("site", ["https://mail.example/", f"{BASE}/bob/", "null", ""])
async def test_a_link_of_another_site_leads_to_the_page(
    browser: Browser, app: App, site: str
) -> None:
    page = await browser.get(app.request(prompt="none"), Referer=site)
    assert (page.status, page.path) == (200, "/idp/auth")


async def test_another_account_can_be_used(browser: Browser, app: App) -> None:
    await sign_in(browser)
    page = await browser.get(app.request())
    page = await browser.get(f"{page.path}?switch=1")
    page = await _confirm(browser, await _sign_in_here(browser, page, "bob"))
    tokens = await app.tokens(page)
    answer = await app.server.public.get(
        "/idp/me", Authorization=f"Bearer {tokens['access_token']}"
    )
    assert answer.json()["webid"] == f"{BASE}/bob/#me"


async def test_consent_is_of_who_signed_in_for_it(
    browser: Browser, app: App, new_browser: NewBrowser
) -> None:
    """In another tab somebody else signs in meanwhile: they are asked to sign in, not taken."""
    await sign_in(browser)
    page = await browser.get(app.request())
    await browser.send(
        await browser.get("/idp/login?again=delete"),
        "/idp/login",
        username="bob",
        password=password_of("bob"),
    )
    refused = await browser.send(page, f"{page.path}/confirm")
    assert refused.status == 403
    page = await browser.get(page.path)
    assert "Sign in" in page.text
    assert "Allow this application?" not in page.text


@pytest.mark.parametrize("prompt", ["login", "select_account", "create"])
async def test_a_prompt_can_require_a_new_sign_in(browser: Browser, app: App, prompt: str) -> None:
    await sign_in(browser)
    page = await browser.get(app.request(prompt=prompt))
    assert page.form(page.path).fields["username"] == "alice", "the name is there already"
    page = await _confirm(browser, await _sign_in_here(browser, page))
    assert "code" in reply_of(page)
    page = await browser.get(app.request(prompt=prompt))
    assert "code" in reply_of(await _sign_in_here(browser, page)), "it was allowed before"


async def test_a_sign_in_that_is_too_old_is_not_taken(
    browser: Browser, app: App, clock: FakeClock
) -> None:
    await sign_in(browser)
    await _confirm(browser, await browser.get(app.request()))
    clock.advance(100)
    assert "code" in reply_of(await browser.get(app.request(max_age="100")))
    page = await browser.get(app.request(max_age="99"))
    assert page.path.startswith("/idp/interaction/")


async def test_a_session_is_taken_for_the_person_of_the_hint_alone(
    browser: Browser, app: App, new_browser: NewBrowser
) -> None:
    """OpenID Connect Core 3.1.2.1: by an ID token of ours; an access token is none."""
    await sign_in(browser)
    tokens = await app.tokens(await _confirm(browser, await browser.get(app.request())))
    bob = new_browser()
    await sign_in(bob, "bob")
    of_bob = await app.tokens(await _confirm(bob, await bob.get(app.request())))
    for hint, worked in (
        (tokens["id_token"], True),
        (of_bob["id_token"], False),
        (tokens["access_token"], False),
        ("rubbish", False),
    ):
        reply = reply_of(await browser.get(app.request(prompt="none", id_token_hint=hint)))
        assert ("code" in reply) is worked
        assert worked or reply["error"] == ["login_required"]


async def test_a_hint_fills_in_the_name(browser: Browser, app: App) -> None:
    page = await browser.get(app.request(login_hint='"><b>bob'))
    assert page.form(page.path).fields["username"] == '"><b>bob'


# --- how the application is answered ------------------------------------------------------------


async def test_the_answer_comes_in_the_fragment_if_that_is_wanted(
    browser: Browser, app: App
) -> None:
    page = await browser.get(app.request(response_mode="fragment"))
    page = await _sign_in_here(browser, page)
    assert page.url.startswith(f"{REDIRECT_URI}#code=")


async def test_the_answer_comes_as_a_form_if_that_is_wanted(browser: Browser, app: App) -> None:
    """A page that sends itself, under a policy that lets it, and that has a button."""
    page = await browser.get(app.request(response_mode="form_post"))
    page = await _sign_in_here(browser, page)
    [form] = page.forms
    assert (form.method, form.action) == ("post", REDIRECT_URI)
    assert form.fields.keys() == {"code", "state", "iss"}
    assert len(form.buttons) == 1
    policy = page.answer.header("content-security-policy") or ""
    [nonce] = re.findall(r'<script nonce="([0-9a-f]{32})">', page.text)
    assert f"script-src 'nonce-{nonce}';" in policy
    assert "form-action 'self' https://app.example;" in policy


async def test_what_the_application_registered_in_its_query_stays(server: Server) -> None:
    browser = Browser(server.application)
    app = await register(server, redirect_uris=[f"{REDIRECT_URI}?a=b"])
    page = await browser.get(app.request(redirect_uri=f"{REDIRECT_URI}?a=b"))
    page = await _sign_in_here(browser, page)
    assert reply_of(page).keys() == {"a", "code", "state", "iss"}


async def test_the_request_may_come_as_a_form_of_another_site(browser: Browser, app: App) -> None:
    """OpenID Connect Core 3.1.2.1: browsers send no cookies with it, so it goes on by GET."""
    await sign_in(browser)
    kept = dict(browser.cookies)
    browser.cookies.clear()
    path, _, query = app.request().partition("?")
    answer = await browser.ask(
        "POST",
        path,
        headers={"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site", **AS_FORM},
        body=query.encode(),
    )
    assert answer.status == 303
    assert answer.header_lines("set-cookie") == []
    browser.cookies.update(kept)
    page = await browser.get(answer.header("location") or "")
    assert "Allow this application?" in page.text


AS_FORM = {"Content-Type": FORM}


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "nobody"},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": f"{REDIRECT_URI}/"},
        {"redirect_uri": ""},
    ],
)
async def test_a_person_is_told_about_an_unusable_client(
    browser: Browser, app: App, changes: dict[str, str]
) -> None:
    """A-50, A-53: a page, never a redirect."""
    page = await browser.get(app.request(**changes), Accept="application/json")
    assert page.status == 400
    assert page.answer.header("content-type") == "text/html; charset=utf-8"
    assert page.answer.header("location") is None


async def test_the_error_for_an_unknown_client_says_what_helps(browser: Browser) -> None:
    """A-50."""
    page = await browser.get("/idp/auth?client_id=nobody&redirect_uri=https://app.example/")
    assert "clear the data that your browser stores for the application" in page.text


@pytest.mark.parametrize("path", ["", "/login", "/confirm", "/abort"])
async def test_an_interaction_is_of_the_browser_that_began_it(
    browser: Browser, new_browser: NewBrowser, app: App, path: str
) -> None:
    """A-57: whatever its address is known to."""
    page = await browser.get(app.request())
    other = new_browser()
    await sign_in(other)
    fields = {"username": "alice", "password": password_of("alice")}
    refused = await other.post(f"{page.path}{path}", fields)
    assert refused.status == 403
    assert refused.answer.header("content-type") == "text/html; charset=utf-8"
    uid = page.path.rpartition("/")[2]
    for address in (page.path, f"/idp/auth/{uid}", f"/idp/register?uid={uid}"):
        assert (await new_browser().get(address)).status == 403
    assert "code" in reply_of(await _sign_in_here(browser, page)), "it is still the first one's"


async def test_a_finished_interaction_gives_nothing_more(browser: Browser, app: App) -> None:
    """A-57."""
    page = await browser.get(app.request())
    uid = page.path.rpartition("/")[2]
    await _sign_in_here(browser, page)
    for again in (
        await browser.get(page.path),
        await browser.get(f"/idp/auth/{uid}"),
        await browser.send(page, f"{page.path}/abort"),
        await _sign_in_here(browser, page),
    ):
        assert again.status == 400
        assert "This sign-in is finished" in again.text


@pytest.mark.parametrize("path", ["/idp/interaction/", "/idp/auth/", "/idp/register?uid="])
async def test_an_expired_or_unknown_interaction_is_reported(
    browser: Browser, app: App, clock: FakeClock, path: str
) -> None:
    """A-57."""
    page = await browser.get(app.request())
    uid = page.path.rpartition("/")[2]
    assert (await browser.get(f"{path}{uid}")).status == 200
    clock.advance(3600)
    for gone in (uid, "0" * 64, "x"):
        page = await browser.get(f"{path}{gone}", Accept="*/*")
        assert page.status == 404
        assert "This sign-in has expired" in page.text
    answer = await browser.ask("GET", f"{path}{uid}", headers={"Accept": "application/json"})
    assert answer.json()["error"] == "Not Found"


async def test_consent_cannot_come_before_signing_in(browser: Browser, app: App) -> None:
    page = await browser.get(app.request(prompt="consent"))
    refused = await browser.post(f"{page.path}/confirm", {})
    assert refused.status == 403
    assert "Sign in" in (await browser.get(page.path)).text


async def test_an_interaction_survives_a_wrong_password(browser: Browser, app: App) -> None:
    """A-58: back to the same page by GET, which still names the application."""
    page = await browser.get(app.request())
    again = await browser.send(page, page.path, username="alice", password="wrong")
    assert (again.status, again.path) == (200, page.path)
    assert "The name or the password is wrong" in again.text
    assert "Notes" in again.text
    assert "code" in reply_of(await _sign_in_here(browser, again))


# --- programs that walk through the pages -------------------------------------------------------


@pytest.mark.parametrize("field", ["email", "username"])
@pytest.mark.parametrize("suffix", ["", "/login"])
async def test_the_conformance_harness_gets_through(
    server: Server, field: str, suffix: str
) -> None:
    """A-58: it knows the form when it sees one, posts to the same address with its
    cookies and nothing that browsers say, and reads the way on in the body or the header."""
    app = await register(
        server,
        client_id=None,
        client_secret=None,
        redirect_uris=["https://tester"],
        application_type="web",
        token_endpoint_auth_method="client_secret_basic",
    )
    harness = Browser(server.application)
    request = app.request(redirect_uri="https://tester", scope="openid", state="")
    answer = await harness.ask("GET", request, headers={"Accept": "text/html"})
    assert answer.status == 303
    path = answer.header("location") or ""
    answer = await harness.ask("GET", path, headers={"Accept": "text/html"})
    assert answer.status == 200
    assert re.search(r'<form[^>]* method="post"', answer.text, re.IGNORECASE)
    body = urlencode({field: "alice@example.org", "password": password_of("alice")}).encode()
    plain = {"Accept": "", **AS_FORM}
    answer = await harness.ask("POST", path + suffix, headers=plain, body=body)
    assert answer.status == 200
    [location] = re.findall(r'"location":"([^"]+)"', answer.text)
    assert location == answer.header("location")
    assert location.startswith(f"{BASE}/idp/auth/")
    answer = await harness.ask("GET", location, headers={"Accept": "text/html"})
    assert answer.status == 303
    assert (answer.header("location") or "").startswith("https://tester?code=")


async def test_a_program_with_a_wrong_password_gets_an_error(browser: Browser, app: App) -> None:
    """A-58."""
    page = await browser.get(app.request())
    headers = {"Accept": "*/*", "Content-Type": "application/json"}
    body = json.dumps({"username": "alice", "password": "wrong"}).encode()
    answer = await browser.ask("POST", page.path, headers=headers, body=body)
    assert answer.status == 401
    assert answer.json()["error"] == "invalid_grant"


async def test_a_program_can_consent(browser: Browser, app: App) -> None:
    """A-59: the same by JSON."""
    await sign_in(browser)
    page = await browser.get(app.request())
    headers = {"Accept": "application/json"}
    answer = await browser.ask("POST", f"{page.path}/confirm", headers=headers)
    assert answer.status == 200
    page = await browser.get(answer.json()["location"])
    assert "code" in reply_of(page)


async def _sign_in_here(browser: Browser, page: Page, name: str = "alice") -> Page:
    uid_path = page.path
    return await browser.send(page, uid_path, username=name, password=password_of(name))


async def _confirm(browser: Browser, page: Page) -> Page:
    return await browser.send(page, f"{page.path}/confirm")
