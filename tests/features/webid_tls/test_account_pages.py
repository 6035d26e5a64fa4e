"""Client certificates on the account page: creating them and removing their keys (A-160)."""

from __future__ import annotations

import base64
import json
import logging
import re

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12

from tests.support.application import BASE, Server, Start, acl_turtle, password_of
from tests.support.asgi import Answer
from tests.support.browser import Browser, Page
from tests.support.certificates import holder, key_turtle, modulus_hex, numbers, rsa_key
from tests.support.clock import FakeClock
from tests.support.idp_pages import csrf_token, sign_in, whole_account
from tests.support.rdf import JSON_LD, TURTLE

PATH = "/idp/account/certificates"
PRIVATE = "/alice/private/"
WEB_ID = f"{BASE}/alice/#me"
JSON = {"Accept": "application/json", "Content-Type": "application/json"}
CERT = "http://www.w3.org/ns/auth/cert#"


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock, idp=True, webid_tls=True, invalid_credentials_per_minute=0)


@pytest.fixture
async def account(browser: Browser) -> Page:
    return await sign_in(browser)


async def ask(browser: Browser, account: Page, method: str, path: str = PATH) -> Answer:
    """What a program gets that is signed in."""
    headers = {**JSON, "X-CSRF-Token": csrf_token(account), "Sec-Fetch-Site": "same-origin"}
    return await browser.ask(method, path, headers=headers, body=b"{}")


async def shown(server: Server, pem: str) -> int:
    """The status of a private place for who shows the certificate."""
    return (await server.public.with_certificate(pem).get(PRIVATE)).status


def saved(page: Page, kind: str) -> bytes:
    """What the link for a kind of files saves."""
    [text] = re.findall(rf'href="data:{kind};base64,([^"]*)"', page.text)
    return base64.b64decode(text, validate=True)


def certificate_in(pem: bytes) -> str:
    return pem[pem.index(b"-----BEGIN CERTIFICATE") :].decode()


async def profile(server: Server) -> str:
    """Without the time at which it was changed."""
    text = (await server.public.get("/alice/", Accept="application/n-triples")).text
    lines = (line for line in text.splitlines() if "modified" not in line and "mtime" not in line)
    return "\n".join(sorted(lines))


async def test_a_certificate_is_made_and_acts_for_its_owner_until_it_is_removed(
    server: Server, browser: Browser, account: Page, caplog: pytest.LogCaptureFixture
) -> None:
    """A-163, A-168, A-184: of the key nothing is kept but that the profile names it."""
    caplog.set_level(logging.INFO, "podstead.audit")
    before = await profile(server)
    page = await browser.send(account, PATH)
    assert (page.status, page.answer.header("cache-control")) == (200, "no-store")
    pem = saved(page, "application/x-pem-file")
    certificate = x509.load_pem_x509_certificate(certificate_in(pem).encode())
    assert load_pem_private_key(pem, None).public_key() == certificate.public_key()
    [password] = re.findall(r'role="group">([0-9a-f]{16})</code>', page.text)
    key_store = saved(page, "application/x-pkcs12")
    key, inside, _ = pkcs12.load_key_and_certificates(key_store, password.encode())
    assert inside == certificate
    assert key is not None
    with pytest.raises(ValueError, match="password"):
        pkcs12.load_key_and_certificates(key_store, b"")
    assert await shown(server, certificate_in(pem)) == 200
    assert set(before.splitlines()) < set((await profile(server)).splitlines())
    page = await whole_account(browser)
    assert "PRIVATE KEY" not in page.text
    mark = _marks(page)[0]
    assert mark in page.text
    page = await browser.send(page, f"{PATH}/{mark}")
    assert "The key has been removed from your profile" in page.text
    assert await shown(server, certificate_in(pem)) == 401
    assert await profile(server) == before
    noted = [each.getMessage() for each in caplog.records if each.name == "podstead.audit"]
    assert noted == ["client certificate made", "key of a client certificate removed"]
    assert "BEGIN" not in "".join(str(each.__dict__) for each in caplog.records)


def _marks(page: Page) -> list[str]:
    return re.findall(rf'action="{PATH}/([0-9a-f]{{12}})[?"]', page.text)


async def test_programs_make_list_and_remove_them_too(
    server: Server, browser: Browser, account: Page
) -> None:
    made = [(await ask(browser, account, "POST")).json() for _ in range(2)]
    for each in made:
        assert await shown(server, each["certificate"]) == 200
        assert "PRIVATE KEY" in each["privateKey"]
        assert each["resource"] == f"{BASE}{PATH}/{each['id']}"
    listed = (await ask(browser, account, "GET")).json()
    assert {each["id"] for each in listed["keys"]} == {each["id"] for each in made}
    one = f"{PATH}/{made[0]['id']}"
    assert (await ask(browser, account, "GET", one)).json() == {"id": made[0]["id"], "bits": 2048}
    assert (await ask(browser, account, "DELETE", one)).status == 204
    assert [await shown(server, each["certificate"]) for each in made] == [401, 200]
    for method in ("GET", "DELETE"):
        assert (await ask(browser, account, method, one)).status == 404


@pytest.mark.parametrize("media_type", [TURTLE, JSON_LD])
async def test_keys_that_others_wrote_are_listed_and_removed_as_well(
    server: Server, browser: Browser, account: Page, media_type: str
) -> None:
    """With a name or without, shared or not; nothing else of the profile goes."""
    kept = "<#me> <http://xmlns.com/foaf/0.1/name> 'Alice'.\n"
    other = f"<#you> <{CERT}key> <#shared>.\n"
    shared = (
        f"<#me> <{CERT}key> <#shared>. <#shared> <{CERT}exponent> 3; <{CERT}modulus> 'ABCDEF'.\n"
    )
    said = kept + other + key_turtle(rsa_key()) + shared
    if media_type == JSON_LD:
        said = json.dumps(
            {
                "@graph": [
                    {
                        "@id": "#me",
                        "http://xmlns.com/foaf/0.1/name": "Alice",
                        f"{CERT}key": [
                            {
                                f"{CERT}modulus": modulus_hex(rsa_key()),
                                f"{CERT}exponent": numbers(rsa_key()).e,
                            },
                            {"@id": "#shared"},
                        ],
                    },
                    {"@id": "#you", f"{CERT}key": {"@id": "#shared"}},
                    {"@id": "#shared", f"{CERT}exponent": 3, f"{CERT}modulus": "ABCDEF"},
                ]
            }
        )
    assert (await server.alice.put("/alice/", said, media_type)).status == 204
    pem = holder(WEB_ID, now_s=1_800_000_000).pem
    assert await shown(server, pem) == 200
    marks = _marks(await whole_account(browser))
    assert len(marks) == 2
    for mark in marks:
        assert (await ask(browser, account, "DELETE", f"{PATH}/{mark}")).status == 204
    assert await shown(server, pem) == 401
    assert _marks(await whole_account(browser)) == []
    text = await profile(server)
    assert "Alice" in text
    assert f"<{BASE}/alice/#you> <{CERT}key> <{BASE}/alice/#shared>" in text
    assert "ABCDEF" in text
    assert modulus_hex(rsa_key()) not in text
    assert f"<{WEB_ID}> <{CERT}key>" not in text


async def test_an_old_session_requires_a_new_sign_in_first(
    server: Server, browser: Browser, account: Page, clock: FakeClock
) -> None:
    """A-86: a certificate outlasts the session and a new password."""
    made = (await ask(browser, account, "POST")).json()
    clock.advance(601)
    before = await profile(server)
    for method, path in (("POST", PATH), ("DELETE", f"{PATH}/{made['id']}")):
        answer = await ask(browser, account, method, path)
        assert (answer.status, "Sign in again" in answer.text) == (403, True)
    account = await whole_account(browser)
    for action in (PATH, f"{PATH}/{made['id']}"):
        page = await browser.send(account, action)
        assert page.path == "/idp/login"
        assert "before you create or remove a certificate" in page.text
    assert await profile(server) == before
    page = await browser.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert page.url.endswith("/.pages/security?view=programs")
    page = await browser.send(await whole_account(browser), PATH)
    assert "New client certificate" in page.text


async def test_nobody_else_makes_one(server: Server, browser: Browser, account: Page) -> None:
    """A-57: not without a session, nor by a page of another site, nor without the form's token."""
    stranger = Browser(browser.application)
    assert (await ask(stranger, account, "POST")).status == 401
    assert (await ask(stranger, account, "GET")).status == 401
    for headers in (
        {**JSON, "Sec-Fetch-Site": "same-origin"},
        {**JSON, "X-CSRF-Token": "x", "Sec-Fetch-Site": "same-origin"},
        {
            **JSON,
            "X-CSRF-Token": csrf_token(account),
            "Sec-Fetch-Site": "cross-site",
            "Origin": "https://evil.example",
        },
    ):
        answer = await browser.ask("POST", PATH, headers=headers, body=b"{}")
        assert answer.status == 403, headers
    assert (await ask(browser, account, "GET")).json() == {"keys": []}


async def test_an_owner_whom_access_rules_forbid_to_write_the_profile_is_refused(
    server: Server, browser: Browser, account: Page
) -> None:
    """The account page goes the way of every other change."""
    public, bob = "acl:agentClass foaf:Agent", f"acl:agent <{BASE}/bob/#me>"
    rules = acl_turtle("/alice/", (public, "Read"), (bob, "Control"), owner=False)
    assert (await server.alice.put("/alice/.acl", rules, TURTLE)).status == 204
    before = await profile(server)
    assert (await ask(browser, account, "POST")).status == 403
    assert (await browser.send(account, PATH)).status == 403
    assert await profile(server) == before


async def test_a_profile_that_cannot_be_read_spoils_nothing_else(
    server: Server, browser: Browser, account: Page
) -> None:
    many = "".join(f"<#a> <#b> {each}." for each in range(10_001))
    assert (await server.alice.put("/alice/", many, TURTLE)).status == 204
    page = await whole_account(browser)
    assert page.status == 200
    assert "Your profile cannot be read" in page.text
    for method in ("GET", "POST"):
        assert (await ask(browser, account, method)).status == 409


async def test_there_are_only_so_many(server: Server, browser: Browser, account: Page) -> None:
    keys = "".join(
        f"<#me> <{CERT}key> [ <{CERT}exponent> 3; <{CERT}modulus> '{each:04X}' ]."
        for each in range(0x1000, 0x1000 + 49)
    )
    assert (await server.alice.put("/alice/", keys, TURTLE)).status == 204
    assert [(await ask(browser, account, "POST")).status for _ in range(2)] == [201, 409]


async def test_where_certificates_mean_nothing_the_page_offers_none(
    start: Start, clock: FakeClock
) -> None:
    server = await start(clock=clock, idp=True)
    browser = Browser(server.application)
    page = await sign_in(browser)
    assert "certificate" not in page.text
    assert (await ask(browser, page, "GET")).status == 404
    assert (await ask(browser, page, "POST")).status == 404
