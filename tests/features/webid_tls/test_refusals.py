"""Certificates that prove nothing: each test changes one thing in a valid one."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtensionOID

from tests.features.webid_tls.world import (
    EARLY,
    EXPIRED,
    NO_CERTIFICATE,
    NO_DOCUMENT,
    NO_KEY,
    NO_NAME,
    PRIVATE,
    PROFILE,
    PUBLIC,
    SHORT,
    TEXT,
    UNSUPPORTED,
    WEB_ID,
    World,
    assert_public,
    assert_refused,
    prepared,
)
from tests.support.application import BASE, Start
from tests.support.asgi import Answer, Client
from tests.support.certificates import Holder, key_turtle, modulus_hex, numbers, rsa_key
from tests.support.clock import FakeClock
from tests.support.rdf import TURTLE

Make = Callable[[World], Holder]
LONG = f"{BASE}/alice/#{'x' * 2048}"

BAD: dict[str, tuple[Make, str]] = {
    "another key": (lambda w: w.holder(key=rsa_key(1)), NO_KEY),
    "expired": (lambda w: w.holder(ends_s=-60), EXPIRED),
    "not valid yet": (lambda w: w.holder(starts_s=61), EARLY),
    "EC key": (lambda w: w.holder(key=ec.generate_private_key(ec.SECP256R1())), UNSUPPORTED),
    "Ed25519 key": (lambda w: w.holder(key=ed25519.Ed25519PrivateKey.generate()), UNSUPPORTED),
    "short key": (lambda w: w.holder(key=rsa_key(2, bits=1024)), SHORT),
    "a document that is not there": (lambda w: w.holder(f"{BASE}/alice/missing#me"), NO_KEY),
    "a document that is no RDF": (lambda w: w.holder(f"{BASE}{PUBLIC}#me"), NO_DOCUMENT),
    "a path that is none": (lambda w: w.holder(f"{BASE}/alice/%zz#me"), NO_DOCUMENT),
    "plain http elsewhere": (lambda w: w.holder("http://example.org/#me"), NO_NAME),
    "a user name": (lambda w: w.holder(WEB_ID.replace("//", "//alice@")), NO_NAME),
    "an empty user name": (lambda w: w.holder(WEB_ID.replace("//", "//@")), NO_NAME),
    "a long name": (lambda w: w.holder(LONG), NO_NAME),
    "a NUL": (lambda w: w.holder(f"{WEB_ID}\0.example.org"), NO_NAME),
    "a control character": (lambda w: w.holder(f"{WEB_ID}\x7f"), NO_NAME),
    "a line end": (lambda w: w.holder(f"{WEB_ID}\n"), NO_NAME),
    "a space": (lambda w: w.holder(f"{WEB_ID} "), NO_NAME),
    "no host": (lambda w: w.holder("https:///alice/#me"), NO_NAME),
    "no slashes": (lambda w: w.holder("https:alice"), NO_NAME),
    "an address in brackets that is none": (lambda w: w.holder("https://[x/#me"), NO_NAME),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_certificate_that_proves_nothing_is_refused(world: World, case: str) -> None:
    """A-162, A-165, A-166, A-169: on public resources as well."""
    make, reason = BAD[case]
    assert (await world.send()).status == 200
    for target in (PRIVATE, PUBLIC, "/", "/alice/missing"):
        assert_refused(await world.send(make(world), target=target), reason)


async def test_nothing_is_stored_for_a_certificate_that_proves_nothing(world: World) -> None:
    """A-5."""
    shown = world.holder(ends_s=-1000)
    assert_refused(await world.send(shown, "PUT", "/alice/private/new", body=b"x"), EXPIRED)
    assert_refused(await world.send(shown, "DELETE"), EXPIRED)
    assert_refused(await world.send(shown, "POST", "/.pods", body=b"{}"), EXPIRED)
    assert (await world.server.alice.get("/alice/private/new")).status == 404
    assert (await world.server.alice.get(PRIVATE)).status == 200


async def test_clocks_may_differ_by_a_minute(world: World) -> None:
    """A-166."""
    for starts_s, ends_s, status in (
        (-1000, -59, 200),
        (-1000, -60, 401),
        (60, 1000, 200),
        (61, 1000, 401),
    ):
        answer = await world.send(world.holder(starts_s=starts_s, ends_s=ends_s))
        assert answer.status == status, (starts_s, ends_s)


async def test_a_certificate_that_was_good_ends_with_its_time(
    world: World, clock: FakeClock
) -> None:
    """A-166: what was read once is looked at again."""
    shown = world.holder(ends_s=100)
    for moved, status in ((0, 200), (159, 200), (1, 401)):
        clock.advance(moved)
        assert (await world.send(shown)).status == status


@pytest.mark.parametrize("bits", [2048, 3072, 4096])
async def test_long_keys_are_taken(world: World, bits: int) -> None:
    key = rsa_key(3, bits=bits, exponent=3)
    await world.say(key_turtle(key))
    assert (await world.send(world.holder(key=key))).status == 200


async def test_a_key_of_other_numbers_is_another_key(world: World) -> None:
    """A-164: both numbers count, and belong together."""
    cert = "http://www.w3.org/ns/auth/cert#"
    modulus, exponent = modulus_hex(world.key), numbers(world.key).e
    other = modulus_hex(rsa_key(1))
    for said in (
        f'[ <{cert}modulus> "{modulus}"; <{cert}exponent> 3 ]',
        f'[ <{cert}modulus> "{modulus}0"; <{cert}exponent> {exponent} ]',
        f'[ <{cert}modulus> "{modulus[2:]}"; <{cert}exponent> {exponent} ]',
        f'[ <{cert}modulus> "{modulus}" ]',
        f"[ <{cert}exponent> {exponent} ]",
        (
            f'[ <{cert}modulus> "{modulus}"; <{cert}exponent> 3 ], '
            f'[ <{cert}modulus> "{other}"; <{cert}exponent> {exponent} ]'
        ),
        f'"{modulus}"',
    ):
        await world.say(f"<#me> <{cert}key> {said} .")
        assert_refused(await world.send(), NO_KEY)
    await world.say(f'<#me> <{cert}key> [ <{cert}modulus> "{modulus}"; <{cert}exponent> 65537 ] .')
    assert (await world.send()).status == 200


async def test_invalid_documents_are_refused(world: World) -> None:
    """A-111."""
    key = key_turtle(world.key)
    many = "".join(f"<#a> <#b> {each}." for each in range(10_000))
    keys = "".join(key_turtle(world.key, f"#k{each}") for each in range(257))
    for extra in (many, "#" + "x" * 1024 * 1024, keys):
        await world.say(key, "\n", extra)
        assert_refused(await world.send(), NO_DOCUMENT)
    await world.say(key, "\n", "#" + "x" * 1024)
    assert (await world.send()).status == 200


async def test_an_invalid_certificate_is_refused(world: World) -> None:
    """The connection would not bring it; a proxy might."""
    good = world.holder()
    two_names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(WEB_ID)])
    assert two_names.public_bytes() in good.der
    # The name, of the same length and no longer in ASCII.
    garbled = good.der.replace(b"/alice/#me", b"/alice/#m\xe9")
    assert garbled != good.der
    # An extension that the library knows, with a value that it does not (RFC 7633 section 4).
    feature = x509.UnrecognizedExtension(ExtensionOID.TLS_FEATURE, b"\x30\x03\x02\x01\x63")
    odd = world.holder(extensions=[feature]).der
    for der in (b"", b"x", good.der[:-1], good.der + b"x", b"\x30" * 40_000, garbled, odd):
        text = base64.encodebytes(der).decode()
        pem = f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"
        client: Client = world.server.public.with_certificate(pem)
        answer: Answer = await client.get(PRIVATE)
        reason = NO_CERTIFICATE if der else "the proxy did not forward it in the configured form"
        assert_refused(answer, reason)


async def test_refused_certificates_count_to_the_limit_of_their_address(
    start: Start, clock: FakeClock
) -> None:
    """A-181."""
    world = await prepared(start, clock, invalid_credentials_per_minute=3)
    bad = world.holder(ends_s=-1000)
    statuses = [(await world.send(bad, peer="192.0.2.1")).status for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert (await world.send(bad, peer="192.0.2.2")).status == 401
    assert (await world.send(peer="192.0.2.1")).status == 200
    unnamed = world.holder("urn:x")
    for _ in range(5):
        assert_public(await world.send(unnamed, peer="192.0.2.3"))


async def test_a_deleted_profile_invalidates_its_certificates(
    world: World,
) -> None:
    card = "/alice/public/card"
    web_id = f"{BASE}{card}#it"
    assert (await world.server.alice.put(card, key_turtle(world.key, "#it"), TURTLE)).status == 201
    shown = world.holder(web_id)
    assert (await world.send(shown, target=PUBLIC)).status == 200
    assert (await world.server.alice.delete(card)).status == 204
    assert_refused(await world.send(shown, target=PUBLIC), NO_KEY)
    assert (await world.send(target=PROFILE)).status == 200


# --- A key that is removed while a body arrives cannot be used to store it (A-168) -------------


NEW = "/alice/private/new"


async def upload(world: World, meanwhile: Callable[[], Awaitable[None]], *names: str) -> Answer:
    """PUT a new resource of Alice's by a certificate with her name, or these; ``meanwhile`` happens
    before its second half."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first "
        await meanwhile()
        yield b"second"

    client = world.server.public.with_certificate(world.holder(*names).pem)
    headers = {"Content-Type": TEXT, "Transfer-Encoding": "chunked"}
    return await client.request("PUT", NEW, headers=headers, body=pieces())


async def test_a_key_that_is_removed_meanwhile_stores_nothing(world: World) -> None:
    async def removed() -> None:
        world.clock.advance(10)
        await world.say()

    assert_refused(await upload(world, removed), NO_KEY)
    assert (await world.server.alice.get(NEW)).status == 404


async def test_a_certificate_that_only_expires_meanwhile_is_good_for_it(world: World) -> None:
    """The request came in time."""

    async def expired() -> None:
        world.clock.advance(24 * 3600)

    assert (await upload(world, expired)).status == 201
    assert (await world.server.alice.get(NEW)).text == "first second"


async def test_a_second_webid_with_the_key_does_not_replace_the_first(
    world: World,
) -> None:
    """A-162: the request is the first one's. Who stole a key can make such a certificate."""
    card = "/alice/public/card"
    await world.server.alice.put(card, key_turtle(world.key, "#thief"), TURTLE)

    async def removed() -> None:
        world.clock.advance(10)
        await world.say()

    assert_refused(await upload(world, removed, WEB_ID, f"{BASE}{card}#thief"), NO_KEY)
    assert (await world.server.alice.get(NEW)).status == 404
