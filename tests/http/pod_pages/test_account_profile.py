"""The profile: what people type becomes statements that clients read, and nothing else changes."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pyoxigraph
import pytest
from PIL import Image

from podstead.app.operator.administration import open_root
from podstead.config import Settings
from tests.support.application import Server, Start, password_of
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import register, reply_of, whole_account
from tests.support.pod_pages import csrf_token_of, sign_in_by_token, sign_in_to_account

PROFILE = "/.pages/profile"
ME = "http://localhost:3000/alice/#me"
FOAF = "http://xmlns.com/foaf/0.1/"
VCARD = "http://www.w3.org/2006/vcard/ns#"
SEE_ALSO = "http://www.w3.org/2000/01/rdf-schema#seeAlso"
PRIVATE = "/alice/profile/details.ttl"


def png(color: str) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (8, 8), color).save(written, "PNG")
    return written.getvalue()


PNG = png("red")


async def statements(server: Server, path: str = "/alice/") -> set[tuple[str, str]]:
    """What a document says about Alice, as pairs of predicate and object."""
    answer = await server.alice.get(path, accept="text/turtle")
    quads = pyoxigraph.parse(
        answer.body, format=pyoxigraph.RdfFormat.TURTLE, base_iri=f"http://localhost:3000{path}"
    )
    return {
        (quad.predicate.value, getattr(quad.object, "value", ""))
        for quad in quads
        if getattr(quad.subject, "value", "") == ME
    }


async def post_picture(browser: Browser, token: str, content: bytes, **fields: str) -> Page:
    body = b""
    for name, value in {"csrf_token": token, **fields}.items():
        body += f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    body += b'--x\r\nContent-Disposition: form-data; name="picture"; filename="me.png"\r\n\r\n'
    body += content + b"\r\n--x--\r\n"
    headers = {
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "multipart/form-data; boundary=x",
    }
    return await browser.go("POST", f"{PROFILE}/picture", headers=headers, body=body)


async def test_the_form_writes_what_clients_read(server: Server, alice: Browser) -> None:
    before = await statements(server)
    page = await alice.get(PROFILE)
    page = await alice.send(
        page,
        PROFILE,
        name="Alice “A” Smith",
        note="Line one\r\nLine \\two\\",
        links="https://alice.example/\nalice.example/blog",
        public="yes",
    )
    assert page.status == 200
    assert "Your profile is saved." in page.text
    after = await statements(server)
    name, note = "Alice “A” Smith", "Line one\nLine \\two\\"
    assert after - before == {
        (FOAF + "name", name),
        (VCARD + "fn", name),
        (VCARD + "note", note),
        (FOAF + "homepage", "https://alice.example/"),
        (FOAF + "homepage", "https://alice.example/blog"),
    }
    assert before - after == {(FOAF + "name", "alice")}
    again = await alice.send(await alice.get(PROFILE), PROFILE, public="yes", note="", links="")
    assert "Your profile is saved." in again.text
    assert await statements(server) == before - {(FOAF + "name", "alice")} | {
        (FOAF + "name", name),
        (VCARD + "fn", name),
    }


async def test_details_that_are_not_public_are_in_a_document_of_their_own(
    server: Server, alice: Browser
) -> None:
    page = await alice.get(PROFILE)
    fields = {"name": "Alice Smith", "note": "Hello", "links": "https://alice.example/"}
    await alice.send(page, PROFILE, public="no", **fields)
    public = await statements(server)
    assert (FOAF + "name", "alice") in public
    assert (SEE_ALSO, f"http://localhost:3000{PRIVATE}") in public
    assert not {"Alice Smith", "Hello", "https://alice.example/"} & {value for _, value in public}
    assert (await server.bob.get(PRIVATE)).status == 403
    assert (await server.public.get(PRIVATE)).status == 401
    assert (VCARD + "fn", "Alice Smith") in await statements(server, PRIVATE)
    page = await alice.get(PROFILE)
    assert 'value="Alice Smith"' in page.text
    await alice.send(page, PROFILE, public="yes", **fields)
    public = await statements(server)
    assert {(FOAF + "name", "Alice Smith"), (VCARD + "note", "Hello")} <= public
    assert not any(predicate == SEE_ALSO for predicate, _ in public)
    assert not await statements(server, PRIVATE)


@pytest.mark.parametrize("public", ["yes", "no"])
async def test_a_picture_is_as_public_as_the_profile(
    server: Server, alice: Browser, public: str
) -> None:
    page = await alice.get(PROFILE)
    page = await alice.send(page, PROFILE, name="Alice", public=public)
    page = await post_picture(alice, csrf_token_of(page), PNG)
    assert "Your picture is saved." in page.text
    document = "/alice/" if public == "yes" else PRIVATE
    stated = dict(await statements(server, document))
    picture = stated[VCARD + "hasPhoto"]
    assert stated[FOAF + "img"] == picture
    path = picture.removeprefix("http://localhost:3000")
    assert f'src="/.pages/raw{path}"' in page.text
    assert (await server.bob.get(path)).status == (200 if public == "yes" else 403)
    # The other way round, the picture follows.
    other = {"yes": "no", "no": "yes"}[public]
    await alice.send(await alice.get(PROFILE), PROFILE, name="Alice", public=other)
    assert (await server.bob.get(path)).status == (200 if other == "yes" else 403)
    # Another picture replaces it, and removing leaves none.
    page = await post_picture(alice, csrf_token_of(page), png("blue"))
    assert (await server.alice.get(path)).status == 404
    page = await post_picture(alice, csrf_token_of(page), b"", remove="yes")
    assert "Your profile shows no picture any more." in page.text
    assert "/profile/picture-" not in page.text


@pytest.mark.parametrize("content", [b"", b"<svg onload='alert(1)'/>", b"%PDF-1.7"])
async def test_only_pictures_become_pictures(
    server: Server, alice: Browser, content: bytes
) -> None:
    before = await statements(server)
    page = await alice.get(PROFILE)
    page = await post_picture(alice, csrf_token_of(page), content)
    assert "Choose a picture" in page.text
    assert await statements(server) == before


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("name", " "),
        ("name", "x" * 201),
        ("note", "x" * 5001),
        ("links", "javascript://x/%0aalert(1)"),
        ("links", "https://a.example/<b>"),
        ("links", "\n".join(f"https://a.example/{number}" for number in range(21))),
    ],
)
async def test_a_wrong_field_is_marked_and_changes_nothing(
    server: Server, alice: Browser, field: str, typed: str
) -> None:
    before = await statements(server)
    page = await alice.send(await alice.get(PROFILE), PROFILE, **{"public": "yes", field: typed})
    assert page.status == 400
    assert f'id="{field}-error"' in page.text
    assert await statements(server) == before


async def test_what_others_saved_meanwhile_is_not_lost(server: Server, alice: Browser) -> None:
    first = await alice.get(PROFILE)
    await alice.send(await alice.get(PROFILE), PROFILE, name="From elsewhere", public="yes")
    page = await alice.send(first, PROFILE, name="Typed here", public="yes")
    assert page.status == 409
    assert "From elsewhere" in page.text
    assert 'value="Typed here"' in page.text
    assert (FOAF + "name", "From elsewhere") in await statements(server)
    await alice.send(page, PROFILE, public="yes")
    assert (FOAF + "name", "Typed here") in await statements(server)


async def test_only_the_person_can_change_the_profile(
    server: Server, alice: Browser, bob: Browser, browser: Browser
) -> None:
    before = await statements(server)
    assert (await browser.get(PROFILE)).path == "/.pages/sign-in"
    for fields in ({}, {"csrf_token": "0" * 64}):
        page = await alice.post(PROFILE, {"name": "Mallory", "public": "yes", **fields})
        assert page.status == 403
    token = csrf_token_of(await bob.get(PROFILE))
    page = await alice.post(PROFILE, {"name": "Mallory", "public": "yes", "csrf_token": token})
    assert page.status == 403
    assert (await post_picture(alice, token, PNG)).status == 403
    assert await statements(server) == before


async def test_the_profile_of_an_account_keeps_naming_its_provider(start: Start) -> None:
    server = await start(idp=True)
    browser = await sign_in_to_account(server)
    before = await statements(server)
    page = await browser.send(await browser.get(PROFILE), PROFILE, name="Alice S", public="no")
    assert "Your profile is saved." in page.text
    issuer = [each for each in before if each[0].endswith("#oidcIssuer")]
    assert len(issuer) == 1
    assert set(issuer) <= await statements(server)


# --- Applications and security: what acts for a person, and the end of each --------------------


APPS = "/.pages/apps"
SECURITY = "/.pages/security"
BROWSERS = "/.pages/security/browsers"
VIEWS = ("sign-in", "browsers", "programs", "events", "account")


@pytest.fixture
async def account(start: Start) -> Browser:
    """Alice's browser, signed in to her account."""
    return await sign_in_to_account(await start(idp=True))


def list_of(page: Page, section: str) -> str:
    """The text of one section."""
    found = re.search(
        rf'<section[^>]*aria-labelledby="{section}">(.*?)</section>', page.text, re.DOTALL
    )
    assert found is not None, page.text
    return found[1]


@pytest.mark.parametrize("view", ["", *VIEWS, "nonsense"])
async def test_each_part_has_a_page(account: Browser, view: str) -> None:
    page = await account.get(f"{SECURITY}?view={view}" if view else SECURITY)
    assert page.status == 200
    assert 'aria-current="page"' in page.text
    for language in ("de", "es", "nl"):
        translated = await account.get(f"{SECURITY}?view={view}", accept_language=language)
        assert translated.status == 200
        assert f'<html lang="{language}"' in translated.text


async def test_client_credentials_are_created_and_removed(account: Browser) -> None:
    programs = f"{SECURITY}?view=programs"
    page = await account.send(
        await account.get(programs), "/idp/account/client-credentials", name="nightly copy"
    )
    assert "New client credentials" in page.text
    assert f'href="{programs}"' in page.text  # and back
    page = await account.get(programs)
    assert "nightly copy" in list_of(page, "scripts")
    page = await account.send(page, "/idp/account/client-credentials/")
    assert page.url.endswith(programs)
    assert "The client credentials have been removed." in page.text
    assert "nightly copy" not in list_of(page, "scripts")
    page = await account.get(programs)
    assert "The client credentials have been removed." not in page.text  # shown once


async def test_another_browser_is_signed_out(start: Start) -> None:
    server = await start(idp=True)
    browser, other = await sign_in_to_account(server), await sign_in_to_account(server)
    page = await browser.get(f"{SECURITY}?view=browsers")
    ends = [each.action for each in page.forms if each.action.startswith("/idp/account/sessions/")]
    assert len(ends) == 2
    this = page.text.index("this browser")
    theirs = min(ends, key=lambda action: this < page.text.index(action))
    page = await browser.send(page, theirs)
    if page.path == "/idp/login":  # the order is that of the server
        browser, other = other, browser
    else:
        assert page.path == SECURITY
        assert "That browser has been signed out." in page.text
    assert (await other.get(SECURITY)).path == "/idp/login"
    assert (await browser.get(SECURITY)).status == 200


async def test_the_password_is_changed_and_mistakes_are_named(account: Browser) -> None:
    page = await account.get(SECURITY)
    for current, new, confirm, message in (
        ("wrong", "four new words here", "four new words here", "The current password is wrong"),
        (password_of("alice"), "four new words here", "others", "The two passwords differ"),
        (password_of("alice"), "short", "short", "A password must have at least 8 characters"),
    ):
        page = await account.send(
            page, "/idp/account/password", current=current, new=new, confirm=confirm
        )
        assert page.path == SECURITY
        assert message in page.text
    new = "four new words here"
    page = await account.send(
        page, "/idp/account/password", current=password_of("alice"), new=new, confirm=new
    )
    assert page.path == SECURITY
    assert "Your password has been changed." in page.text


async def test_a_change_that_needs_a_new_sign_in_comes_back(start: Start, clock: FakeClock) -> None:
    browser = await sign_in_to_account(await start(idp=True, clock=clock))
    programs = f"{SECURITY}?view=programs"
    page = await browser.get(programs)
    clock.advance(3600)
    page = await browser.send(page, "/idp/account/client-credentials", name="backup")
    assert page.path == "/idp/login"
    page = await browser.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert page.url.endswith(programs)


async def test_the_address_of_the_account_at_the_provider_leads_here(account: Browser) -> None:
    """To the part that it names; programs get JSON, and the whole account has an address."""
    for address, part in (
        ("/idp/account", ""),
        ("/idp/account?view=programs", "?view=programs"),
        ("/idp/account?view=unknown", "?view=sign-in"),
    ):
        answer = await account.ask("GET", address)
        assert (answer.status, answer.header("location")) == (303, SECURITY + part)
    answer = await account.ask("GET", "/idp/account", headers={"Accept": "application/json"})
    assert answer.json()["email"] == "alice@example.org"
    assert (await whole_account(account)).path == SECURITY


async def test_an_action_leads_back_to_pages_of_this_server_only(account: Browser) -> None:
    page = await account.get(f"{SECURITY}?view=programs")
    token = page.form("/idp/account/client-credentials").fields["csrf_token"]
    await account.post("/idp/account/client-credentials", {"csrf_token": token, "name": "x"})
    page = await account.get(f"{SECURITY}?view=programs")
    action = page.form("/idp/account/client-credentials/").action.partition("?")[0]
    for elsewhere in ("https://evil.example/", "//evil.example/", "/alice/", "/idp/logout"):
        page = await account.post(f"{action}?next={elsewhere}", {"csrf_token": token})
        assert page.path in {SECURITY, action}


async def test_applications_are_listed_with_what_they_may_do_and_disconnected(
    start: Start,
) -> None:
    server = await start(idp=True)
    browser = await sign_in_to_account(server)
    page = await browser.get(APPS)
    assert "No application is connected" in page.text
    app = await register(server, client_name="Field <b>Notes</b>")
    page = await browser.get(app.request())
    reply_of(await browser.send(page, page.path + "/confirm"))
    page = await browser.get(APPS)
    assert "Field &lt;b&gt;Notes&lt;/b&gt;" in page.text
    assert "Acts as you" in page.text
    page = await browser.send(page, "/idp/account/grants/")
    assert page.path == APPS
    assert "The application has been disconnected." in page.text
    assert "Acts as you" not in page.text


async def test_who_has_signed_in_by_a_token_sees_that_session_and_its_end(
    server: Server, alice: Browser, browser: Browser
) -> None:
    page = await alice.get(SECURITY)
    assert page.status == 200
    assert "token of your pod" in page.text
    assert "/idp/" not in page.text
    assert 'href="/.pages/zip/alice/"' in page.text
    assert (await alice.get(APPS)).status == 200
    page = await alice.send(page, "/.pages/sign-out")
    assert (await alice.get(SECURITY)).path == "/.pages/sign-in"
    assert (await browser.get(APPS)).path == "/.pages/sign-in"


async def test_browsers_that_signed_in_by_the_token_are_listed_and_signed_out_at_once(
    server: Server, alice: Browser, bob: Browser
) -> None:
    """Only those of the same pod; and the tokens of the pod are listed beside them."""
    other = await sign_in_by_token(server, server.alice)
    page = await alice.get(SECURITY)
    assert page.text.count("this browser") == 1
    ends = [each for each in page.forms if each.action == BROWSERS]
    assert len(ends) == 2
    assert len(re.findall(r"<code>[0-9a-f]{32}</code>", list_of(page, "pod-tokens"))) == 1
    [entry] = [each for each in page.text.split("<li>") if "this browser" in each]
    [theirs] = [each.fields["session"] for each in ends if each.fields["session"] not in entry]
    stranger = await bob.get(SECURITY)
    form = next(each for each in stranger.forms if each.action == BROWSERS)
    await bob.post(BROWSERS, {**form.fields, "session": theirs})
    assert (await other.get(SECURITY)).path == SECURITY  # Bob ends only his own
    form = next(each for each in ends if each.fields["session"] == theirs)
    page = await alice.post(BROWSERS, dict(form.fields))
    assert "That browser has been signed out." in page.text
    assert theirs not in page.text
    assert (await other.get("/.pages/files/alice/private/")).path == "/.pages/sign-in"
    assert (await alice.get(SECURITY)).path == SECURITY


@pytest.mark.parametrize("view", ["", "?view=browsers", "?view=programs"])
async def test_tokens_of_the_operator_are_listed_on_the_page_itself(
    start: Start, settings: Settings, view: str
) -> None:
    """Where the browsers and the programs are, too."""
    server = await start(idp=True)
    async with open_root(replace(settings, simple_tokens=True)) as root:
        await root.tokens.create("alice")
    page = await (await sign_in_to_account(server)).get(SECURITY + view)
    assert (view == "?view=browsers") is ("Tokens of your pod" not in page.text)
    assert (view == "?view=programs") is ("Signed-in browsers" not in page.text)
