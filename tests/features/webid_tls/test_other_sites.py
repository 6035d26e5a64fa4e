"""A browser sends a certificate with requests of any page (A-170)."""

from __future__ import annotations

import json

import pytest

from tests.features.webid_tls.world import (
    MISNAMED,
    NO_DOCUMENT,
    NO_KEY,
    PRIVATE,
    PUBLIC,
    TOO_MANY,
    UNREACHABLE,
    World,
    assert_public,
    assert_refused,
    prepared,
)
from tests.support.application import BASE, Start
from tests.support.asgi_sockets import connected
from tests.support.certificates import key_turtle, modulus_hex, numbers, rsa_key
from tests.support.clock import FakeClock
from tests.support.provider import Page, Provider
from tests.support.rdf import JSON_LD, TURTLE

APP = "https://app.example"
OWN = [
    {},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Origin": BASE},
    {"Origin": BASE, "Sec-Fetch-Site": "same-origin"},
    {"Origin": "http://127.0.0.1:3000", "Host": "127.0.0.1:3000"},
]
OTHERS = [
    {"Origin": APP},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": f"{BASE}/"},
    {"Origin": f"{BASE}.example"},
    {"Origin": "http://localhost:3001"},
    {"Origin": "https://localhost:3000"},
    {"Origin": "http://127.0.0.1:3000"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": ""},
    {"Sec-Fetch-Site": "same-origin, cross-site"},
    {"Sec-Fetch-Site": "what-comes-next"},
    {"Origin": BASE, "Sec-Fetch-Site": "cross-site"},
    {"Origin": APP, "Sec-Fetch-Site": "same-origin"},
]


@pytest.mark.parametrize("headers", OWN)
async def test_requests_of_no_other_site_are_the_owners(
    world: World, headers: dict[str, str]
) -> None:
    assert (await world.send(headers=headers)).status == 200


@pytest.mark.parametrize("headers", OTHERS)
async def test_requests_of_another_site_are_the_publics(
    world: World, headers: dict[str, str]
) -> None:
    """A-170: to read and to write, and they are not refused for it."""
    assert_public(await world.send(headers=headers))
    assert_public(await world.send(None, "PUT", headers=headers, body=b"x"))
    answer = await world.send(headers=headers, target=PUBLIC)
    assert (answer.status, answer.header("wac-allow")) == (200, 'user="read",public="read"')
    # Nor does a bad certificate matter, which its owner's browser chose to send.
    assert (
        await world.send(world.holder(ends_s=-1000), headers=headers, target=PUBLIC)
    ).status == 200


@pytest.mark.feature("legacy_notifications")
async def test_a_websocket_is_the_publics(world: World) -> None:
    """A-170: pages of all sites open them, and what they hear is not told to them by CORS."""
    alice = world.holder().pem
    async with connected(world.server.application, protocols=["solid-0.1"], certificate=alice) as s:
        await s.receive()
        await s.send(f"sub {BASE}{PRIVATE}")
        assert await s.receive() == f"err {BASE}{PRIVATE} forbidden"
        await s.send(f"sub {BASE}{PUBLIC}")
        assert await s.receive() == f"ack {BASE}{PUBLIC}"


async def test_an_application_can_be_allowed_to_use_the_certificates_of_its_visitors(
    start: Start, clock: FakeClock
) -> None:
    """A-170: the list is the operator's."""
    world = await prepared(start, clock, client_cert_origins=(APP,))
    for headers in ({"Origin": APP}, {"Origin": APP, "Sec-Fetch-Site": "cross-site"}):
        answer = await world.send(headers=headers)
        assert answer.status == 200
        assert answer.header("access-control-allow-origin") == APP
        assert answer.header("access-control-allow-credentials") == "true"
    for headers in (
        {"Origin": f"{APP}.example"},
        {"Origin": "https://other.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert_public(await world.send(headers=headers))
    assert_refused(
        await world.send(world.holder(ends_s=-1000), headers={"Origin": APP}), "it has expired"
    )
    assert (await world.send(target=PRIVATE)).status == 200


# --- WebIDs whose documents are on other servers (A-162, A-167, A-168) -------------------------


def page(*statements: str) -> Page:
    return Page("".join(statements).encode() or b"<> a <#x>.", TURTLE)


async def test_a_webid_elsewhere_is_accepted_and_fetched_once_in_five_minutes(
    world: World, elsewhere: Provider
) -> None:
    """A-168."""
    web_id = f"{elsewhere.issuer}/carol#me"
    elsewhere.pages["/carol"] = page(key_turtle(world.key))
    await world.let_in(web_id)
    shown = world.holder(web_id)
    for moved, asked in ((0, 1), (299, 1), (1, 2)):
        world.clock.advance(moved)
        assert (await world.send(shown)).status == 200
        assert elsewhere.count("/carol") == asked
    # Another certificate with the same key is the same claim; with another key it is not.
    assert (await world.send(world.holder(web_id, ends_s=9000))).status == 200
    assert elsewhere.count("/carol") == 2
    assert_refused(await world.send(world.holder(web_id, key=rsa_key(1))), NO_KEY)
    assert elsewhere.count("/carol") == 3


async def test_a_key_that_is_not_there_is_looked_for_again_soon(
    world: World, elsewhere: Provider
) -> None:
    """A-168: people add it and try at once."""
    web_id = f"{elsewhere.issuer}/carol#me"
    elsewhere.pages["/carol"] = page(key_turtle(world.key, "#you"))
    await world.let_in(web_id)
    shown = world.holder(web_id)
    for moved, asked in ((0, 1), (29, 1)):
        world.clock.advance(moved)
        assert_refused(await world.send(shown), NO_KEY)
        assert elsewhere.count("/carol") == asked
    # What is a no for one name may be a yes for another.
    you = await world.send(world.holder(f"{elsewhere.issuer}/carol#you"), target=PUBLIC)
    assert you.status == 200
    assert elsewhere.count("/carol") == 1
    elsewhere.pages["/carol"] = page(key_turtle(world.key))
    world.clock.advance(1)
    assert (await world.send(shown)).status == 200


async def test_a_name_without_its_fragment_will_do_elsewhere_too(
    world: World, elsewhere: Provider
) -> None:
    elsewhere.pages["/carol"] = page(key_turtle(world.key))
    await world.let_in(f"{elsewhere.issuer}/carol#me")
    assert (await world.send(world.holder(f"{elsewhere.issuer}/carol"))).status == 200


async def test_a_document_may_be_json_ld_and_may_have_moved(
    world: World, elsewhere: Provider
) -> None:
    """A-167: the subject is compared with the name all the same."""
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    cert = "http://www.w3.org/ns/auth/cert#"
    key = {f"{cert}modulus": modulus_hex(world.key), f"{cert}exponent": numbers(world.key).e}
    document = [{"@id": web_id, f"{cert}key": key}]
    elsewhere.pages["/moved"] = Page(json.dumps(document).encode(), JSON_LD)
    elsewhere.pages["/carol"] = Page.redirect("/moved")
    assert (await world.send(world.holder(web_id))).status == 200
    elsewhere.pages["/dave"] = Page.redirect("/moved-too")
    elsewhere.pages["/moved-too"] = page(key_turtle(world.key))
    assert_refused(await world.send(world.holder(f"{elsewhere.issuer}/dave#me")), NO_KEY)


async def test_a_document_that_is_temporarily_unavailable_makes_no_certificate_invalid(
    world: World, elsewhere: Provider
) -> None:
    """503 with Retry-After, and never a 401."""
    elsewhere.pages["/carol"] = Page(b"", status=500)
    shown = world.holder(f"{elsewhere.issuer}/carol#me")
    for _ in range(2):
        answer = await world.send(shown, target=PUBLIC)
        assert answer.status == 503
        assert int(answer.header("retry-after") or 0) > 0
    elsewhere.pages["/carol"] = page(key_turtle(world.key))
    world.clock.advance(31)
    assert (await world.send(shown, target=PUBLIC)).status == 200


async def test_documents_that_are_unavailable_are_refused(
    world: World, elsewhere: Provider
) -> None:
    """A-167, A-169, A-187, A-189."""
    web_id = f"{elsewhere.issuer}/carol#me"
    shown = world.holder(web_id)
    key = key_turtle(world.key)
    many = "".join(f"<#a> <#b> {each}." for each in range(10_000))
    bad = {
        "gone": (Page(b"", status=404), NO_DOCUMENT),
        "text": (Page(key.encode(), "text/plain"), NO_DOCUMENT),
        "not Turtle": (page("<"), NO_DOCUMENT),
        "huge": (page(key, "#" + "x" * 1024 * 1024), NO_DOCUMENT),
        "many triples": (page(key, many), NO_DOCUMENT),
        "moved to this server": (Page.redirect(f"{BASE}/alice/"), MISNAMED),
        "moved to a private network": (Page.redirect("http://10.0.0.1/"), NO_DOCUMENT),
        "moved to itself": (Page.redirect("/carol"), NO_DOCUMENT),
    }
    for how, (made, reason) in bad.items():
        elsewhere.pages["/carol"] = made
        answer = await world.send(shown, target=PUBLIC)
        assert (how, answer.json()["message"].partition(": ")[2]) == (how, reason)
        assert_refused(answer, reason)
        world.clock.advance(61)
        shown = world.holder(web_id)
    elsewhere.pages["/carol"] = page(key)
    assert (await world.send(shown, target=PUBLIC)).status == 200


async def test_this_server_goes_by_one_name(world: World) -> None:
    """A-190: it never asks itself."""
    shown = world.holder("http://127.0.0.1:3000/alice/#me")
    assert_refused(await world.send(shown, target=PUBLIC), MISNAMED)


async def test_private_networks_get_no_requests(world: World) -> None:
    """A-188."""
    for host in ("10.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "192.168.1.1"):
        shown = world.holder(f"https://{host}/carol#me")
        assert_refused(await world.send(shown, target=PUBLIC), NO_DOCUMENT)


async def test_an_invalid_document_is_not_fetched_with_every_request(
    world: World, elsewhere: Provider
) -> None:
    """A-191."""
    elsewhere.pages["/carol"] = page("<")
    shown = world.holder(f"{elsewhere.issuer}/carol#me")
    for moved, asked in ((0, 1), (0, 1), (29, 1), (1, 2)):
        world.clock.advance(moved)
        assert_refused(await world.send(shown), NO_DOCUMENT)
        assert elsewhere.count("/carol") == asked


async def test_an_address_may_have_strangers_looked_up_so_often_a_minute(
    world: World, elsewhere: Provider
) -> None:
    """A-111: whatever it shows of them; who is known needs no look-up."""
    elsewhere.pages["/carol"] = page(key_turtle(world.key))
    known = world.holder(f"{elsewhere.issuer}/carol#me")

    async def stranger(number: int, peer: str = "192.0.2.1") -> str:
        shown = world.holder(f"http://{number}.localhost:1/#me")
        answer = await world.send(shown, target=PUBLIC, peer=peer)
        assert answer.status == 503
        assert int(answer.header("retry-after") or 0) > 0
        message: str = answer.json()["message"]
        return message

    assert (await world.send(known, target=PUBLIC, peer="192.0.2.1")).status == 200
    reasons = [await stranger(each) for each in range(30)]
    assert reasons == [UNREACHABLE] * 29 + [TOO_MANY]
    assert await stranger(99, "192.0.2.2") == UNREACHABLE
    assert (await world.send(known, target=PUBLIC, peer="192.0.2.1")).status == 200
    assert (await world.send(target=PUBLIC, peer="192.0.2.1")).status == 200
    world.clock.advance(60)
    assert await stranger(100) == UNREACHABLE
    world.clock.advance(240)
    assert TOO_MANY in [await stranger(200 + each) for each in range(31)]
    assert (await world.send(known, target=PUBLIC, peer="192.0.2.1")).status == 200
    assert elsewhere.count("/carol") == 2, "a document that was read before is read again"


async def test_a_document_may_be_a_page_with_data_islands(
    world: World, elsewhere: Provider
) -> None:
    """A-164, A-167: what is a script to browsers, and never one that is a comment or a text."""
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    cert = "http://www.w3.org/ns/auth/cert#"
    numbered = {f"{cert}modulus": modulus_hex(world.key), f"{cert}exponent": 65537}
    link = json.dumps({"@id": "#me", f"{cert}key": {"@id": "#key"}})
    key = json.dumps({"@id": "#key", **numbered})
    start = '<script type="application/ld+json">'
    good = {
        "one": f"<html>{start}[{link}, {key}]</script><p>Carol</p></html>",
        "two": f"<!doctype html>{start}\n{link}\n</script>{start}{key}</script>",
        "attributes": (
            f'<SCRIPT id=x TYPE="application/ld+json; charset=utf-8" async>[{link},{key}]</SCRIPT>'
        ),
        "base": f'<base href="/carol">{start}[{link},{key}]</script>',
    }
    bad = {
        "no island": "<html><p>Carol</p></html>",
        "comment": f"<!-- {start}[{link},{key}]</script> -->",
        "another type": f'<script type="application/json">[{link},{key}]</script>',
        "a module": f'<script type="module">[{link},{key}]</script>',
        "no type": f"<script>[{link},{key}]</script>",
        "two types": f'<script type=x type="application/ld+json">[{link},{key}]</script>',
        "in another script": f"<script>const x = `{start}[{link},{key}]`</script>",
        "never ends": f"{start}[{link},{key}]",
        "another base": f'<base href="/dave">{start}[{link},{key}]</script>',
        "a bad base": f'<base href="http://[">{start}[{link},{key}]</script>',
        "no JSON": f"{start}[{link},{key}</script>",
        "one bad of two": f"{start}[{link},{key}]</script>{start}[</script>",
        "no UTF-8": "\xff".join([f"{start}[{link},{key}]</script>", ""]),
    }
    for how, text in (good | bad).items():
        content = text.encode("latin-1")
        elsewhere.pages["/carol"] = Page(content, "text/html; charset=utf-8")
        answer = await world.send(world.holder(web_id))
        assert (how, answer.status) == (how, 200 if how in good else 401)
        if how == "no island":
            assert_refused(answer, NO_DOCUMENT)
        world.clock.advance(301)


async def test_a_page_of_this_server_is_not_a_profile(world: World) -> None:
    """Whoever may write a page here need not have Control, which statements of identity need."""
    cert = "http://www.w3.org/ns/auth/cert#"
    numbered = {f"{cert}modulus": modulus_hex(world.key), f"{cert}exponent": 65537}
    island = json.dumps({"@id": "#me", f"{cert}key": numbered})
    text = f'<script type="application/ld+json">{island}</script>'
    assert (await world.server.alice.put("/alice/public/page", text, "text/html")).status == 201
    shown = world.holder(f"{BASE}/alice/public/page#me")
    assert_refused(await world.send(shown, target=PUBLIC), NO_DOCUMENT)
