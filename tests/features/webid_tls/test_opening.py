"""A client certificate gives the access of its WebID (A-160 to A-164)."""

from __future__ import annotations

import json

import pytest
from cryptography import x509

from podstead.config import Settings
from podstead.storage.sqlite.store import SqliteStore
from tests.features.webid_tls.world import (
    DISABLED,
    NO_KEY,
    PRIVATE,
    PROFILE,
    PUBLIC,
    SEVERAL,
    WEB_ID,
    World,
    assert_public,
    assert_refused,
    prepared,
)
from tests.support.application import BASE, Start
from tests.support.certificates import key_turtle, modulus_hex, numbers, rsa_key
from tests.support.changed_accounts import change_account
from tests.support.clock import FakeClock
from tests.support.rdf import JSON_LD, TURTLE

CERT = "http://www.w3.org/ns/auth/cert#"


async def test_the_owner_of_a_key_gets_access_and_others_do_not(world: World) -> None:
    """A-163 (a)."""
    answer = await world.send()
    assert (answer.status, answer.text) == (200, "text")
    assert answer.header("cache-control") == "private, no-cache"
    assert answer.header("wac-allow") == 'user="read write append control",public=""'
    stranger = f"{BASE}/bob/#me"
    answer = await world.server.bob.put("/bob/", key_turtle(rsa_key(1)), TURTLE)
    assert answer.status == 204
    shown = world.holder(stranger, key=rsa_key(1))
    answer = await world.send(shown)
    assert (answer.status, answer.header_lines("www-authenticate")) == (403, [])
    assert (await world.send(shown, target="/bob/private/")).status == 200


async def test_every_method_gets_access(world: World) -> None:
    new = "/alice/private/new"
    for method, target, body, status in (
        ("PUT", new, b"text", 201),
        ("HEAD", new, None, 200),
        ("POST", "/alice/private/", b"text", 201),
        ("DELETE", new, None, 204),
    ):
        assert (await world.send(None, method, target, body=body)).status == status, method


async def test_a_key_that_was_just_added_or_removed_takes_effect_at_once(world: World) -> None:
    """A-168."""
    insert = f"INSERT DATA {{ {key_turtle(world.key)} }}"
    for _ in range(2):
        await world.say()
        assert_refused(await world.send(), NO_KEY)
        answer = await world.server.alice.request(
            "PATCH",
            PROFILE,
            headers={"Content-Type": "application/sparql-update"},
            body=insert.encode(),
        )
        assert answer.status == 204, answer.text
        assert (await world.send()).status == 200


async def test_a_webid_without_its_fragment_means_the_holder_of_the_key(world: World) -> None:
    """A-163 (b): the common recipe loses the fragment."""
    shown = world.holder(f"{BASE}/alice/")
    assert (await world.send(shown)).status == 200
    # Not somebody of another document, whatever this one says.
    await world.say(key_turtle(world.key, f"{BASE}/bob/#me"))
    assert_refused(await world.send(shown), NO_KEY)
    await world.say(key_turtle(world.key), key_turtle(world.key, "#you"))
    assert_refused(await world.send(shown), SEVERAL)
    assert (await world.send()).status == 200
    # Where the document itself has the key, it is the document that is meant.
    await world.say(key_turtle(world.key), key_turtle(world.key, ""))
    await world.let_in(f"{BASE}/alice/")
    answer = await world.send(shown)
    assert (answer.status, answer.header("wac-allow")) == (200, 'user="read",public=""')


async def test_who_only_looks_like_the_webid_is_not_it(world: World) -> None:
    """A-163 (a): the name must be the subject, to the letter."""
    await world.say(key_turtle(world.key, "#you"))
    assert_refused(await world.send(), NO_KEY)
    await world.say(key_turtle(world.key, f"{BASE}/bob/#me"))
    assert_refused(await world.send(), NO_KEY)
    assert_refused(await world.send(world.holder(f"{BASE}/bob/#me")), NO_KEY)
    await world.say(key_turtle(world.key))
    for name in (f"{WEB_ID}e", f"{BASE}/alice/#ME", f"{BASE}/alice/?q#you"):
        assert_refused(await world.send(world.holder(name)), NO_KEY)


async def test_names_are_tried_in_turn(world: World) -> None:
    """A-162: up to five."""
    wrong = [f"{BASE}/alice/#{number}" for number in range(5)]
    other = ["urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "ftp://example.org/"]
    assert (await world.send(world.holder(f"{BASE}/missing#me", WEB_ID))).status == 200
    assert (await world.send(world.holder(*other, *wrong[:4], WEB_ID))).status == 200
    assert_refused(await world.send(world.holder(*wrong, WEB_ID)), NO_KEY)


async def test_a_certificate_without_a_webid_is_the_public(world: World) -> None:
    """A-161: certificates are good for other things."""
    names = [x509.DNSName("example.org"), x509.RFC822Name("alice@example.org")]
    for shown in (
        world.holder("urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        world.holder("mailto:alice@example.org", names=names),
        world.holder("ftp://example.org/", "httpx://example.org/", ends_s=-1000),
    ):
        assert (await world.send(shown, target=PUBLIC)).status == 200
        assert_public(await world.send(shown))
    assert (await world.server.public.get(PUBLIC)).status == 200
    assert_public(await world.server.public.get(PRIVATE))


async def test_an_empty_list_of_names_is_not_a_claim(world: World) -> None:
    shown = world.holder("urn:x", names=())
    assert (await world.send(shown, target=PUBLIC)).status == 200


async def test_the_header_takes_precedence_if_there_is_one(world: World) -> None:
    """A-2, A-172: not even to refuse it."""
    bob = {"Authorization": world.server.bob.authorization}
    assert (await world.send(headers=bob)).status == 403
    alice = {"Authorization": world.server.alice.authorization}
    assert (await world.send(world.holder(ends_s=-1000), headers=alice)).status == 200
    for bad in ("Bearer x.y", "Unknown x", ""):
        answer = await world.send(headers={"Authorization": bad})
        assert answer.status == 401
        assert "certificate" not in answer.text


async def test_a_disabled_account_is_shut_out(
    start: Start, clock: FakeClock, settings: Settings
) -> None:
    """Its document goes on to name the key, which opens nothing, not even what is public."""
    world = await prepared(start, clock, idp=True)
    store = SqliteStore(settings.root)  # another worker's
    await store.open()
    assert (await world.send()).status == 200
    await change_account(store, disabled=True)
    assert_refused(await world.send(), DISABLED)
    assert_refused(await world.send(target=PUBLIC), DISABLED)
    await change_account(store, disabled=False)
    assert (await world.send()).status == 200
    await store.close()


async def test_a_preflight_request_is_nobodys(world: World) -> None:
    """A-1: it is never authenticated."""
    assert (await world.send(world.holder(ends_s=-1000), "OPTIONS")).status == 204


async def test_where_the_method_is_off_certificates_mean_nothing(
    start: Start, clock: FakeClock
) -> None:
    """A-160."""
    world = await prepared(start, clock, webid_tls=False)
    assert_public(await world.send())
    assert (await world.send(world.holder(ends_s=-1000), target=PUBLIC)).status == 200


async def test_a_cached_response_is_sent_to_no_other_agent(world: World) -> None:
    """Answers are kept by what was sent; a certificate is sent beside it."""
    bob = world.holder(f"{BASE}/bob/#me", key=rsa_key(1))
    assert (await world.server.bob.put("/bob/", key_turtle(rsa_key(1)), TURTLE)).status == 204
    for _ in range(2):
        assert_public(await world.server.public.get(PRIVATE))
        assert (await world.send()).status == 200
        assert (await world.send(bob)).status == 403
    for _ in range(2):
        granted = [
            (await world.server.public.get(PUBLIC)).header("wac-allow"),
            (await world.send(target=PUBLIC)).header("wac-allow"),
            (await world.send(bob, target=PUBLIC)).header("wac-allow"),
        ]
        assert granted == [
            'user="read",public="read"',
            'user="read write append control",public="read"',
            'user="read",public="read"',
        ]


async def test_append_access_to_a_profile_adds_no_key(world: World) -> None:
    """An append must not make an owner."""
    await world.say("<> a <#x>.")
    await world.let_in(f"{BASE}/bob/#me", PROFILE)
    answer = await world.server.bob.request(
        "PATCH",
        PROFILE,
        headers={"Content-Type": "application/sparql-update"},
        body=f"INSERT DATA {{ {key_turtle(world.key)} }}".encode(),
    )
    assert answer.status == 403
    assert_refused(await world.send(), NO_KEY)


# --- what profiles are written like -------------------------------------------------------------


def _json_key(world: World, exponent: object) -> dict[str, object]:
    return {f"{CERT}modulus": modulus_hex(world.key), f"{CERT}exponent": exponent}


async def test_profiles_in_json_ld(world: World) -> None:
    """A-164: whatever shape they have."""
    exponent = numbers(world.key).e
    key = _json_key(world, exponent)
    compact = {
        "@context": {"cert": CERT, "key": {"@id": "cert:key", "@type": "@id"}},
        "@id": "#me",
        "key": {"cert:modulus": modulus_hex(world.key), "cert:exponent": str(exponent)},
    }
    apart = [{"@id": "#k", **key}, {"@id": "#me", f"{CERT}key": {"@id": "#k"}}]
    typed = {
        "@id": "#me",
        f"{CERT}key": [
            {
                "@type": [f"{CERT}RSAPublicKey"],
                f"{CERT}modulus": [
                    {
                        "@value": modulus_hex(world.key).lower(),
                        "@type": "http://www.w3.org/2001/XMLSchema#hexBinary",
                    }
                ],
                f"{CERT}exponent": [{"@value": exponent}],
            }
        ],
    }
    for document in (
        {"@id": "#me", f"{CERT}key": key},
        compact,
        apart,
        {"@graph": apart},
        {"@graph": [compact]} | {"@context": compact["@context"]},
        typed,
    ):
        await world.say(json.dumps(document), media_type=JSON_LD)
        assert (await world.send()).status == 200, document
    # A graph with a name of its own is something that the document quotes.
    await world.say(json.dumps({"@id": "#g", "@graph": apart}), media_type=JSON_LD)
    assert_refused(await world.send(), NO_KEY)


@pytest.mark.parametrize("key", ["[ {} ]", "<#key1>. <#key1> {}", "_:k. _:k {}"])
async def test_profiles_in_turtle(world: World, key: str) -> None:
    """A-164: keys without a name, or with one."""
    said = f'<{CERT}modulus> "{modulus_hex(world.key)}"; <{CERT}exponent> {numbers(world.key).e}'
    await world.say(f"<#me> <{CERT}key> {key.format(said)} .")
    assert (await world.send()).status == 200


async def test_a_profile_may_be_any_document_of_the_pod(world: World) -> None:
    card = "/alice/public/card"
    web_id = f"{BASE}{card}#it"
    await world.say(key_turtle(world.key, "#it"), target=card)
    await world.let_in(web_id)
    assert (await world.send(world.holder(web_id))).status == 200
    # Its own rules are not asked: who may read it does not matter.
    await world.say(key_turtle(world.key, "#it"), target="/alice/private/card")
    await world.let_in(f"{BASE}/alice/private/card#it")
    assert (await world.send(world.holder(f"{BASE}/alice/private/card#it"))).status == 200


async def test_the_holder_of_a_certificate_states_identity(world: World) -> None:
    """The certificate is the person's own, and not an application's."""
    sparql = {"Content-Type": "application/sparql-update"}
    stated = f"INSERT DATA {{ <{WEB_ID}> <http://www.w3.org/2002/07/owl#sameAs> <did:x:y> }}"
    answer = await world.send(None, "PATCH", PROFILE, headers=sparql, body=stated.encode())
    assert answer.status == 204, answer.text
