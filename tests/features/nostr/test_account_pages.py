"""Linking Nostr keys to accounts, answer by answer (A-126 to A-129)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable

import pytest
from rdflib import FOAF, OWL, BNode, Graph, Literal, URIRef

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.features.nostr.links import MAX_PER_ACCOUNT
from podstead.features.nostr.pages import REQUESTS_PER_MINUTE
from podstead.features.nostr.profile_keys import ProfileKeys
from podstead.features.nostr.records import NOSTR_CHALLENGES, NOSTR_LINKS
from podstead.storage.sqlite import SqliteStore
from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.asgi import Answer, Client
from tests.support.browser import Browser, Page
from tests.support.changed_accounts import change_account
from tests.support.clock import FakeClock
from tests.support.idp_pages import csrf_token, sign_in, whole_account
from tests.support.nostr import (
    NostrKey,
    nostr,
    set_to,
    tag_set_to,
    with_tag,
    without_tag,
)
from tests.support.nostr_pages import (
    KEYS,
    SCRIPT,
    asked,
    challenge,
    keys,
    link,
    send,
    signed,
)
from tests.support.rdf import JSON_LD, TURTLE

pytestmark = pytest.mark.feature("nostr")

NewBrowser = Callable[[], Browser]
RECENT_S = 600
ALICE = f"{BASE}/alice/#me"
PROFILE = "/alice/"


@pytest.fixture
async def account(browser: Browser) -> Page:
    """Alice's account page; she has just signed in by her password."""
    return await sign_in(browser)


@pytest.fixture
def key() -> NostrKey:
    return NostrKey.new()


def error_of(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]


async def names(server: Server) -> set[str]:
    """What Alice's profile says she is the same as, as another library reads it."""
    return {str(each) for each in (await said(server)).objects(URIRef(ALICE), OWL.sameAs)}


async def said(server: Server) -> Graph:
    """What Alice's profile says."""
    answer = await server.public.get(PROFILE, accept=TURTLE)
    assert answer.status == 200, answer.text
    return Graph().parse(data=answer.text, format="turtle", publicID=BASE + PROFILE)


async def state(owner: Client, web_id: str, predicate: str, key: NostrKey) -> None:
    """Have the owner of a profile name the key there."""
    path = web_id.removeprefix(BASE).removesuffix("#me")
    update = f"INSERT DATA {{ <{web_id}> <{predicate}> <{key.did}> }}"
    headers = {"Content-Type": "application/sparql-update"}
    answer = await owner.request("PATCH", path, headers=headers, body=update.encode())
    assert answer.status == 204, answer.text


async def fix(server: Server) -> None:
    """Have Alice take the right to write her profile from herself."""
    rules = acl_turtle(
        PROFILE,
        (f"acl:agent <{ALICE}>", "+Read +Control"),
        ("acl:agentClass foaf:Agent", "Read"),
        owner=False,
    )
    assert (await server.alice.put(f"{PROFILE}.acl", rules, TURTLE)).status == 204


async def document(server: Server, key: NostrKey, suffix: str = "") -> Answer:
    return await server.public.get(f"/.well-known/did/nostr/{key.public}{suffix}")


async def unlink(browser: Browser, account: Page, key: NostrKey) -> Answer:
    headers = SCRIPT | {"X-CSRF-Token": csrf_token(account)}
    return await browser.ask("DELETE", f"{KEYS}/{key.public}", headers=headers)


# --- challenges ---------------------------------------------------------------------------------


async def test_the_required_content_of_an_event(browser: Browser, account: Page) -> None:
    """A-126"""
    members = await asked(browser)
    assert len(bytes.fromhex(members.pop("challenge"))) == 32
    assert members == {
        "u": f"{BASE}/idp/account/nostr",
        "method": "POST",
        "kind": 27235,
        "expires_in": 120,
    }


async def test_a_challenge_to_link_requires_a_recent_sign_in(
    browser: Browser, clock: FakeClock
) -> None:
    """A-86, A-128"""
    assert error_of(await challenge(browser)) == (401, "Unauthorized")
    await sign_in(browser)
    clock.advance(RECENT_S + 1)
    assert error_of(await challenge(browser)) == (403, "Sign in again")


async def test_a_challenge_has_a_known_purpose(browser: Browser) -> None:
    assert error_of(await challenge(browser, "another")) == (400, "Bad Request")


async def test_a_challenge_to_sign_in_is_for_this_browser(browser: Browser) -> None:
    """A-126: it gets the cookie that the challenge is bound to, and keeps it."""
    await asked(browser, "sign-in")
    cookies = dict(browser.cookies)
    assert cookies
    await asked(browser, "sign-in")
    assert browser.cookies == cookies


async def test_challenges_are_kept_as_hashes(
    browser: Browser, account: Page, store: SqliteStore, clock: FakeClock
) -> None:
    """A-185"""
    members = await asked(browser)
    [kept] = await NOSTR_CHALLENGES.page(store, now_ms=clock.now_ms())
    assert members["challenge"] not in str(kept)


# --- linking ------------------------------------------------------------------------------------


async def test_a_key_is_linked_listed_and_published(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-128"""
    answer = await link(browser, clock, key)
    assert (answer.status, answer.json()) == (201, {"pubkey": key.public, "did": key.did})
    [listed] = await keys(browser)
    assert listed.pop("npub").startswith("npub1")
    assert listed == {
        "pubkey": key.public,
        "did": key.did,
        "published": True,
        "linked": "2027-01-15T08:00:00Z",
        "lastUsed": None,
    }
    one = await browser.ask("GET", f"{KEYS}/{key.public}", headers=SCRIPT)
    assert one.json()["pubkey"] == key.public
    assert await names(server) == {key.did}
    assert key.public in (await whole_account(browser)).text


async def test_a_key_can_be_linked_without_being_published(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-128, A-129: and published later."""
    assert (await link(browser, clock, key, sent={"publish": False})).status == 201
    assert await names(server) == set()
    assert (await document(server, key)).status == 404
    clock.advance(1)
    assert (await link(browser, clock, key, sent={"publish": True})).status == 201
    assert await names(server) == {key.did}
    assert [each["published"] for each in await keys(browser)] == [True]
    assert (await document(server, key)).status == 200


async def test_a_key_that_is_linked_again_stays_as_it_is(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    await link(browser, clock, key)
    before = await keys(browser)
    clock.advance(5)
    assert (await link(browser, clock, key, sent={"publish": False})).status == 201
    assert await keys(browser) == before
    assert await names(server) == {key.did}


async def test_an_account_can_have_several_keys(
    server: Server, browser: Browser, account: Page, clock: FakeClock
) -> None:
    two = [NostrKey.new(), NostrKey.new()]
    for each in two:
        assert (await link(browser, clock, each)).status == 201
        clock.advance(1)
    assert [each["pubkey"] for each in await keys(browser)] == [each.public for each in two]
    assert await names(server) == {each.did for each in two}


async def test_a_key_belongs_to_one_account(
    server: Server,
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
) -> None:
    await link(browser, clock, key)
    other = new_browser()
    await sign_in(other, "bob")
    assert error_of(await link(other, clock, key)) == (409, "Key linked elsewhere")
    assert await keys(other) == []
    assert [each["pubkey"] for each in await keys(browser)] == [key.public]
    assert (await document(server, key)).json()["alsoKnownAs"] == [ALICE]


async def test_an_account_has_a_bounded_number_of_keys(
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert MAX_PER_ACCOUNT == 50
    monkeypatch.setattr("podstead.features.nostr.links.MAX_PER_ACCOUNT", 1)
    await link(browser, clock, key)
    assert error_of(await link(browser, clock, NostrKey.new())) == (409, "Conflict")
    assert len(await keys(browser)) == 1


async def test_linking_needs_a_recent_sign_in(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-86, A-128: ten minutes; and a session at all."""
    clock.advance(RECENT_S)
    event = await signed(browser, clock, key)
    clock.advance(1)
    assert error_of(await send(browser, event)) == (403, "Sign in again")
    nobody = Browser(browser.application)
    await nobody.get("/idp/login")
    assert error_of(await send(nobody, event)) == (401, "Unauthorized")
    assert await keys(browser) == []


@pytest.mark.parametrize(
    "change",
    [
        set_to("kind", 22242),
        set_to("created_at", 0),
        tag_set_to("u", f"{BASE}/idp/nostr/login"),
        tag_set_to("method", "GET"),
        without_tag("challenge"),
        with_tag("challenge", "00" * 32),
        with_tag("payload", "00" * 32),
    ],
)
async def test_an_event_for_something_else_links_nothing(
    server: Server,
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    change: Callable[[dict[str, object]], None],
) -> None:
    """The other checks are those of signed requests."""
    answer = await link(browser, clock, key, change)
    assert error_of(answer) == (401, "Event invalid")
    fields = answer.header_lines("www-authenticate")
    assert any(each.startswith("Nostr ") and "invalid_token" in each for each in fields)
    assert (await keys(browser), await names(server)) == ([], set())


async def test_an_event_that_somebody_else_signed_links_nothing(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    event = await signed(browser, clock, key)
    forged = {**event, "sig": NostrKey.new().sign(bytes.fromhex(event["id"])).hex()}
    assert error_of(await send(browser, forged)) == (401, "Event invalid")
    assert await keys(browser) == []


async def test_an_event_and_its_challenge_count_once(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    event = await signed(browser, clock, key)
    assert (await send(browser, event)).status == 201
    assert error_of(await send(browser, event)) == (400, "Challenge expired or invalid")


async def test_a_challenge_ends(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-126"""
    event = await signed(browser, clock, key, set_to("created_at", clock.now_s() + 60))
    clock.advance(120)
    assert error_of(await send(browser, event)) == (400, "Challenge expired or invalid")


async def test_a_challenge_is_of_one_browser_and_one_purpose(
    browser: Browser,
    new_browser: NewBrowser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
) -> None:
    """A-126: also between two browsers of one person."""
    other = new_browser()
    await sign_in(other)
    event = await signed(browser, clock, key)
    assert error_of(await send(other, event)) == (400, "Challenge expired or invalid")
    to_sign_in = await signed(browser, clock, key, tag_set_to("u", BASE + KEYS), purpose="sign-in")
    assert error_of(await send(browser, to_sign_in)) == (400, "Challenge expired or invalid")


async def test_another_sites_page_links_nothing(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-60"""
    event = await signed(browser, clock, key)
    headers = SCRIPT | nostr(event) | {"Sec-Fetch-Site": "cross-site"}
    assert (await browser.ask("POST", KEYS, headers=headers)).status == 403
    assert await keys(browser) == []


async def test_content_that_the_event_names_must_be_it(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-145"""
    sent = {"publish": False}
    digest = hashlib.sha256(json.dumps(sent).encode()).hexdigest()
    tag = with_tag("payload", digest)
    other = await link(browser, clock, key, tag, sent={"publish": True})
    assert other.status == 401
    assert await keys(browser) == []
    assert (await link(browser, clock, key, tag, sent=sent)).status == 201


async def test_publishing_is_a_choice(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    answer = await link(browser, clock, key, sent={"publish": "no"})
    assert error_of(answer) == (400, "Bad Request")
    assert await keys(browser) == []


async def test_requests_are_limited(server: Server, clock: FakeClock) -> None:
    """A-181"""
    browser = Browser(server.application)
    await sign_in(browser)
    key = NostrKey.new()
    assert (await link(browser, clock, key)).status == 201
    for _ in range(REQUESTS_PER_MINUTE - 3):
        assert (await challenge(browser)).status == 200
    event = await signed(browser, clock, key)
    assert error_of(await send(browser, event)) == (429, "Too Many Requests")
    clock.advance(60)
    assert (await challenge(browser)).status == 200


# --- the profile --------------------------------------------------------------------------------


@pytest.mark.parametrize("media_type", [TURTLE, JSON_LD])
async def test_a_profile_keeps_what_its_owner_wrote(
    server: Server,
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    store: SqliteStore,
    media_type: str,
) -> None:
    """A-128: and the form that they gave it."""
    mine = Graph(base=BASE + PROFILE)
    me = URIRef(ALICE)
    mine.add((me, FOAF.nick, Literal("Ali", lang="en")))
    mine.add((me, OWL.sameAs, URIRef("https://alice.example/#i")))
    mine.add((me, URIRef("http://www.w3.org/ns/solid/terms#oidcIssuer"), URIRef(BASE)))
    mine.add((me, FOAF.knows, friend := BNode()))
    mine.add((friend, FOAF.name, Literal("Bob")))
    text = mine.serialize(format=media_type)
    assert (await server.alice.put(PROFILE, text, media_type)).status == 204
    before = await said(server)
    await link(browser, clock, key)
    after = await said(server)
    assert (before + Graph().add((me, OWL.sameAs, URIRef(key.did)))).isomorphic(after)
    await unlink(browser, account, key)
    assert before.isomorphic(await said(server))
    path = ResourcePath(PROFILE)
    metadata = (await store.read_metadata([path]))[path]
    assert metadata is not None
    assert metadata.content_type == media_type


async def test_what_the_owner_wrote_themselves_is_published_as_well(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    await state(server.alice, ALICE, str(OWL.sameAs), key)
    assert (await link(browser, clock, key)).status == 201
    assert await names(server) == {key.did}


async def test_a_key_is_not_linked_if_the_profile_cannot_name_it(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-128: nothing stays of it; without publishing it can be linked."""
    await fix(server)
    assert error_of(await link(browser, clock, key)) == (409, "Profile not changed")
    assert await keys(browser) == []
    clock.advance(1)
    assert (await link(browser, clock, key, sent={"publish": False})).status == 201
    assert [each["published"] for each in await keys(browser)] == [False]


# --- unlinking ----------------------------------------------------------------------------------


async def test_a_key_is_unlinked_and_unpublished(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    await link(browser, clock, key)
    assert (await unlink(browser, account, key)).status == 204
    assert (await keys(browser), await names(server)) == ([], set())
    assert (await document(server, key)).status == 404
    assert error_of(await unlink(browser, account, key)) == (404, "Not Found")


async def test_a_key_is_unlinked_by_a_form(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """Without a script."""
    await link(browser, clock, key)
    page = await whole_account(browser)
    assert "The Nostr key has been linked." in page.text
    page = await browser.send(page, f"{KEYS}/{key.public}")
    assert page.path == SECURITY
    assert "The Nostr key has been unlinked." in page.text
    assert key.public not in page.text
    assert await names(server) == set()


async def test_unlinking_needs_the_sessions_own_form_and_a_recent_sign_in(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-60, A-86"""
    await link(browser, clock, key)
    path = f"{KEYS}/{key.public}"
    assert (await browser.ask("DELETE", path, headers=SCRIPT)).status == 403
    page = await whole_account(browser)
    clock.advance(RECENT_S + 1)
    assert error_of(await unlink(browser, account, key)) == (403, "Sign in again")
    shown = await browser.send(page, path)
    assert (shown.path, "again=nostr" in shown.url) == ("/idp/login", True)
    assert len(await keys(browser)) == 1


async def test_nobody_unlinks_the_key_of_somebody_else(
    browser: Browser, new_browser: NewBrowser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    await link(browser, clock, key)
    other = new_browser()
    page = await sign_in(other, "bob")
    assert error_of(await unlink(other, page, key)) == (404, "Not Found")
    one = await other.ask("GET", f"{KEYS}/{key.public}", headers=SCRIPT)
    assert error_of(one) == (404, "Not Found")
    assert len(await keys(browser)) == 1


async def test_a_key_that_the_profile_still_names_is_reported(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """Here in a way that is its owner's."""
    await state(server.alice, ALICE, "https://schema.org/sameAs", key)
    await link(browser, clock, key)
    answer = await unlink(browser, account, key)
    assert (answer.status, answer.json()) == (200, {"inProfile": True})
    assert (await keys(browser), await names(server)) == ([], set())


async def test_a_key_is_unlinked_also_if_the_profile_cannot_be_changed(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    await link(browser, clock, key)
    await fix(server)
    page = await browser.send(await whole_account(browser), f"{KEYS}/{key.public}")
    assert "your profile still names it" in page.text
    assert (await keys(browser), await names(server)) == ([], {key.did})


async def test_a_profile_that_cannot_be_read_may_name_the_key(
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trouble is never taken for absence."""
    await link(browser, clock, key)

    async def states(*_: object) -> bool:
        raise StorageError("The disk is gone")

    monkeypatch.setattr(ProfileKeys, "states", states)
    answer = await unlink(browser, account, key)
    assert (answer.status, answer.json()) == (200, {"inProfile": True})


async def test_the_only_way_to_sign_in_stays(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey, store: SqliteStore
) -> None:
    """A-124"""
    await link(browser, clock, key)
    await change_account(store, password_hash=None)
    assert error_of(await unlink(browser, account, key)) == (409, "Conflict")
    assert len(await keys(browser)) == 1
    clock.advance(1)
    await link(browser, clock, NostrKey.new())
    assert (await unlink(browser, account, key)).status == 204


async def test_the_keys_of_an_account_go_with_it(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-97: and may be linked to another account."""
    await link(browser, clock, key)
    page = await browser.get("/idp/account/delete")
    await browser.send(page, "/idp/account/delete", pod="alice")
    assert (await document(server, key)).status == 404
    await sign_in(browser, "bob")
    clock.advance(1)
    assert (await link(browser, clock, key)).status == 201


async def test_changes_of_keys_are_recorded(
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A-184; and no challenge or signature with it (A-183)."""
    with caplog.at_level(logging.INFO, logger="podstead.audit"):
        event = await signed(browser, clock, key)
        await send(browser, event)
        await unlink(browser, account, key)
    noted = [record.getMessage() for record in caplog.records]
    assert noted == ["Nostr key linked", "Nostr key unlinked"]
    assert {vars(record)["key"] for record in caplog.records} == {key.public}
    assert event["sig"] not in caplog.text


# --- DID documents ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".json", ".jsonld"])
async def test_the_document_of_a_published_key(
    server: Server,
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    suffix: str,
) -> None:
    """A-129"""
    await link(browser, clock, key)
    answer = await document(server, key, suffix)
    assert (answer.status, answer.header("content-type")) == (200, "application/did+json")
    assert answer.json() == {
        "@context": ["https://www.w3.org/ns/cid/v1", "https://w3id.org/nostr/context"],
        "id": key.did,
        "type": "DIDNostr",
        "alsoKnownAs": [ALICE],
        "verificationMethod": [
            {
                "id": f"{key.did}#key1",
                "type": "Multikey",
                "controller": key.did,
                "publicKeyMultibase": f"fe70102{key.public}",
            }
        ],
        "authentication": ["#key1"],
        "assertionMethod": ["#key1"],
    }


async def test_anybody_may_ask_for_a_document(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A-129: pages of other origins too; and again only if it is another one."""
    await link(browser, clock, key)
    path = f"/.well-known/did/nostr/{key.public}.json"
    answer = await server.public.request("GET", path, headers={"Origin": "https://app.example"})
    assert answer.header("access-control-allow-origin") == "*"
    assert answer.header("access-control-allow-credentials") is None
    head = await server.public.request("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == str(len(answer.body))
    tag = answer.header("etag") or ""
    again = await server.public.request("GET", path, headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")
    assert (await server.public.request("PUT", path, body=b"{}")).status == 405


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("x", 400),
        ("A" * 64, 400),
        ("a" * 63, 400),
        ("a" * 65, 400),
        ("a" * 64 + ".ttl", 400),
        ("a" * 64 + ".json.json", 400),
        ("a" * 64, 404),
        ("a" * 64 + ".json", 404),
        ("a" * 64 + "/more", 404),
    ],
)
async def test_other_keys_have_no_document(server: Server, name: str, status: int) -> None:
    """A-129"""
    assert (await server.public.get(f"/.well-known/did/nostr/{name}")).status == status


async def test_the_keys_of_a_disabled_account_have_no_document(
    server: Server,
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    store: SqliteStore,
) -> None:
    await link(browser, clock, key)
    await change_account(store, disabled=True)
    assert (await document(server, key)).status == 404


async def test_a_server_without_accounts_has_no_documents(start: Start) -> None:
    server = await start()
    assert (await document(server, NostrKey.new())).status == 404


# --- signed requests ----------------------------------------------------------------------------


async def get_signed(server: Server, clock: FakeClock, key: NostrKey, path: str) -> Answer:
    event = key.event("GET", BASE + path, clock.now_s())
    return await server.public.request("GET", path, headers=nostr(event))


@pytest.mark.parametrize("named", ["the WebID", "the key"])
async def test_rules_may_name_the_webid_or_the_key(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey, named: str
) -> None:
    """A-149: the key acts as the WebID once it is linked, and as itself before and after."""
    place = "/bob/shared/"
    await server.bob.put(f"{place}doc", "text", "text/plain")
    agent = ALICE if named == "the WebID" else key.did
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
        f"[] a acl:Authorization; acl:agent <{server.bob_web_id}>; acl:accessTo <{BASE}{place}>;"
        f" acl:default <{BASE}{place}>; acl:mode acl:Read, acl:Write, acl:Control.\n"
        f"[] a acl:Authorization; acl:agent <{agent}>; acl:default <{BASE}{place}>;"
        " acl:mode acl:Read."
    )
    assert (await server.bob.put(f"{place}.acl", rules, TURTLE)).status == 201
    before = await get_signed(server, clock, key, f"{place}doc")
    assert before.status == (403 if named == "the WebID" else 200)
    await link(browser, clock, key, sent={"publish": False})
    assert (await get_signed(server, clock, key, f"{place}doc")).status == 200
    await unlink(browser, account, key)
    after = await get_signed(server, clock, key, f"{place}doc")
    assert after.status == before.status


async def test_a_key_that_only_the_profile_states_acts_as_the_webid(
    server: Server, clock: FakeClock, key: NostrKey
) -> None:
    """A-149, A-127 (2): of one profile; a key of two is nobody's."""
    assert (await get_signed(server, clock, key, "/alice/private/")).status == 403
    for owner, web_id in ((server.alice, ALICE), (server.bob, server.bob_web_id)):
        await state(owner, web_id, str(OWL.sameAs), key)
        status = (await get_signed(server, clock, key, "/alice/private/")).status
        assert status == (200 if owner is server.alice else 403)


async def test_the_keys_of_a_disabled_account_are_refused(
    server: Server,
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    store: SqliteStore,
) -> None:
    """A-149: for public resources as well (A-5)."""
    await link(browser, clock, key)
    await change_account(store, disabled=True)
    answer = await get_signed(server, clock, key, PROFILE)
    assert answer.status == 401
    assert answer.json()["message"] == "This account is disabled"


@pytest.mark.parametrize("what", ["nothing", "unlinked", "disabled"])
async def test_a_key_that_is_taken_from_the_account_while_a_body_arrives_stores_nothing(
    server: Server,
    browser: Browser,
    account: Page,
    clock: FakeClock,
    key: NostrKey,
    store: SqliteStore,
    what: str,
) -> None:
    """A-149"""
    await link(browser, clock, key)
    path = "/alice/private/new"
    event = key.event("PUT", BASE + path, clock.now_s())

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first "
        if what == "unlinked":
            await unlink(browser, account, key)
        elif what == "disabled":
            await change_account(store, disabled=True)
        clock.advance(10)
        yield b"second"

    sent = {**nostr(event), "Content-Type": "text/plain", "Transfer-Encoding": "chunked"}
    answer = await server.public.request("PUT", path, headers=sent, body=pieces())
    assert answer.status == (201 if what == "nothing" else 401), answer.text
    await change_account(store, disabled=False)
    await link(browser, clock, key)
    stored = await get_signed(server, clock, key, path)
    assert stored.status == (200 if what == "nothing" else 404)


async def test_a_link_is_the_accounts_own(
    browser: Browser, account: Page, clock: FakeClock, key: NostrKey, store: SqliteStore
) -> None:
    """A-97: it is kept as the account's, so it goes with it."""
    await link(browser, clock, key)
    [kept] = await NOSTR_LINKS.page(store, now_ms=clock.now_ms())
    assert kept.owner == kept.value.account_id


async def test_a_linked_key_states_identity_and_one_that_the_profile_names_does_not(
    server: Server, browser: Browser, account: Page, clock: FakeClock, key: NostrKey
) -> None:
    """A key that somebody once wrote into the profile does not add the next one."""

    async def add_name(signer: NostrKey) -> Answer:
        now_s = clock.now_s()
        name = f"did:nostr:{NostrKey.new().public}"
        body = f"INSERT DATA {{ <{ALICE}> <{OWL.sameAs!s}> <{name}> }}".encode()
        event = signer.event("PATCH", f"{BASE}/alice/", now_s, payload=body)
        headers = {"Content-Type": "application/sparql-update", **nostr(event)}
        return await server.public.request("PATCH", PROFILE, headers=headers, body=body)

    await link(browser, clock, key)
    assert (await add_name(key)).status == 204
    named = NostrKey.new()
    await state(server.alice, ALICE, str(OWL.sameAs), named)
    refused = await add_name(named)
    assert refused.status == 403
    assert refused.json()["error"] == "insufficient_scope"
