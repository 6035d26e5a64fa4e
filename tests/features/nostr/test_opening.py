"""What a signed request opens: as a key that access rules and groups name (A-4, A-144 ff.)."""

from __future__ import annotations

import base64
import json

import pytest

from tests.support.application import BASE, Start
from tests.support.clock import FakeClock
from tests.support.nostr import (
    NostrKey,
    basic,
    nostr,
    packed,
    set_to,
    tag_set_to,
    with_tag,
    without_tag,
)
from tests.support.nostr_world import DOC, PLACE, TEXT, URL, World, assert_refused, prepared
from tests.support.rdf import TURTLE


async def test_a_key_that_a_rule_names_gets_access_and_another_does_not(world: World) -> None:
    answer = await world.get()
    assert (answer.status, answer.text) == (200, "text")
    assert answer.header("cache-control") == "private, no-cache"
    assert answer.header("wac-allow") == 'user="read write append",public=""'
    stranger = nostr(NostrKey.new().event("GET", URL, world.now_s))
    answer = await world.send(stranger)
    assert (answer.status, answer.header_lines("www-authenticate")) == (403, [])


async def test_every_method_is_signed(world: World) -> None:
    """A-5: one event for each request."""
    new = f"{PLACE}new"
    for method, target, body, status in (
        ("PUT", new, b"<#a> <#b> 1 .", 201),
        ("HEAD", new, None, 200),
        ("PATCH", new, b"INSERT DATA { <#a> <#c> 2 }", 204),
        ("POST", PLACE, b"<#a> <#b> 1 .", 201),
        ("DELETE", new, None, 204),
    ):
        kind = "application/sparql-update" if method == "PATCH" else TURTLE
        event = world.event(method=method, target=target, body=body)
        fields = nostr(event) if body is None else {**nostr(event), "Content-Type": kind}
        assert (await world.send(fields, method, target, body)).status == status, method


@pytest.mark.parametrize("upper", [False, True])
async def test_a_key_is_compared_whatever_the_case_of_its_digits_in_rules(
    world: World, upper: bool
) -> None:
    """A-150."""
    digits = world.key.public.upper() if upper else world.key.public
    await world.let_in((f"acl:agent <did:nostr:{digits}>", "+Read"))
    assert (await world.get()).status == 200
    answer = await world.put(b"other")
    assert answer.status == 403


async def test_a_key_is_a_member_of_a_group(world: World) -> None:
    group = "/alice/private/group"
    member = f"<#g> <http://www.w3.org/2006/vcard/ns#hasMember> <{world.key.did}> ."
    assert (await world.server.alice.put(group, member, TURTLE)).status == 201
    await world.let_in()
    assert (await world.get()).status == 403
    await world.let_in((f"acl:agentGroup <{BASE}{group}#g>", "+Read"))
    assert (await world.get()).status == 200


async def test_a_key_is_an_authenticated_agent(world: World) -> None:
    """A-4."""
    await world.let_in(("acl:agentClass acl:AuthenticatedAgent", "+Read"))
    assert (await world.get()).status == 200
    assert (await world.server.public.get(DOC)).status == 401


async def test_rules_in_json_ld_name_keys_as_well(world: World) -> None:
    """A-150: no relative resolution touches it."""
    acl = "http://www.w3.org/ns/auth/acl#"
    rule = {
        "@id": "#key",
        "@type": f"{acl}Authorization",
        f"{acl}agent": [{"@id": world.key.did}, {"@id": f"{BASE}/alice/#me"}],
        f"{acl}accessTo": {"@id": BASE + PLACE},
        f"{acl}default": {"@id": BASE + PLACE},
        f"{acl}mode": [{"@id": f"{acl}Read"}, {"@id": f"{acl}Control"}],
    }
    answer = await world.server.alice.put(f"{PLACE}.acl", json.dumps(rule), "application/ld+json")
    assert answer.status == 204
    assert (await world.get()).status == 200


async def test_with_a_provider_requests_are_signed_as_well(start: Start, clock: FakeClock) -> None:
    world = await prepared(start, clock, idp=True)
    assert (await world.get()).status == 200
    answer = await world.send(nostr(world.event(target="/idp/me")), target="/idp/me")
    assert answer.status == 401


@pytest.mark.parametrize("scheme", ["nostr", "NOSTR", "Nostr  "])
async def test_a_scheme_in_any_case_and_spaces_are_read(world: World, scheme: str) -> None:
    """A-3."""
    fields = {"Authorization": f"{scheme} {packed(world.event())}"}
    assert (await world.send(fields)).status == 200


async def test_the_url_is_signed_with_its_query_as_it_is_sent(world: World) -> None:
    """A-144."""
    asked = f"{DOC}?a=b%2fc&d"
    assert (await world.send(nostr(world.event(target=asked)), target=asked)).status == 200
    other = nostr(world.event(tag_set_to("u", f"{URL}?a=b%2Fc&d#part")))
    assert (await world.send(other, target=asked)).status == 200
    assert_refused(await world.send(nostr(world.event()), target=asked), OTHER_URL)
    assert_refused(await world.send(nostr(world.event(target=asked))), OTHER_URL)


OTHER_URL = "The event is for another URL"


async def test_a_name_beyond_ascii_is_signed_as_people_write_it(world: World) -> None:
    """A-144."""
    assert (await world.server.alice.put(f"{PLACE}%C3%A9", "é", TEXT)).status == 201
    for sent in (f"{PLACE}%C3%A9", f"{PLACE}%c3%a9"):
        event = world.event(tag_set_to("u", f"{BASE}{PLACE}é"))
        assert (await world.send(nostr(event), target=sent)).status == 200


async def test_another_name_of_this_machine_is_the_one_to_sign(world: World) -> None:
    """A-11."""
    other = tag_set_to("u", f"http://127.0.0.1:3000{DOC}")
    by_address = {"Host": "127.0.0.1:3000"}
    assert (await world.send({**nostr(world.event(other)), **by_address})).status == 200
    assert_refused(await world.send(nostr(world.event(other, set_to("content", "2")))), OTHER_URL)
    assert_refused(await world.send({**nostr(world.event()), **by_address}), OTHER_URL)


async def test_no_header_of_a_stranger_changes_what_is_to_be_signed(world: World) -> None:
    """A-12."""
    evil = tag_set_to("u", f"http://evil.example{DOC}")
    assert (await world.send({**nostr(world.event(evil)), "Host": "evil.example"})).status == 421
    forwarded = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    assert_refused(await world.send({**nostr(world.event(evil)), **forwarded}), OTHER_URL)


async def test_on_plain_http_between_machines_no_request_is_signed(
    start: Start, clock: FakeClock
) -> None:
    """A-148: nor is it offered."""
    base = "http://pod.example"
    server = await start(clock=clock, base_url=base)
    event = NostrKey.new().event("GET", f"{base}/alice/", clock.now_s())
    answer = await server.public.request("GET", "/alice/", headers=nostr(event))
    assert (answer.status, answer.json()["message"]) == (401, "Signed requests require https")
    assert not [each for each in answer.header_lines("www-authenticate") if "Nostr" in each]


async def test_on_https_requests_are_signed_for_https(start: Start, clock: FakeClock) -> None:
    """A-148, A-11: behind a proxy that ends TLS."""
    base = "https://pod.example"
    server = await start(clock=clock, base_url=base)
    now_s = clock.now_s()
    for signed, status in ((f"{base}/alice/", 200), ("http://pod.example/alice/", 401)):
        event = NostrKey.new().event("GET", signed, now_s)
        answer = await server.public.request("GET", "/alice/", headers=nostr(event))
        assert answer.status == status


async def test_a_slash_is_not_corrected_since_the_event_is_for_one_url(world: World) -> None:
    """A-102."""
    answer = await world.send(nostr(world.event(target=f"{DOC}/")), target=f"{DOC}/")
    assert (answer.status, answer.header("location")) == (404, None)
    moved = await world.server.alice.get(f"{DOC}/")
    assert moved.header("location") is not None


async def test_the_challenge_offers_to_sign_and_asks_nobody_for_a_password(world: World) -> None:
    """A-7: in this order."""
    lines = (await world.server.public.get(DOC)).header_lines("www-authenticate")
    assert [line.partition(" ")[0] for line in lines] == ["DPoP", "Bearer", "Nostr"]
    assert lines[2] == f'Nostr realm="{BASE}"'


# --- as a password -----------------------------------------------------------------------------


async def test_an_event_may_come_as_a_password(world: World) -> None:
    """A-146."""
    assert (await world.send(basic(world.event()))).status == 200
    written = basic(world.event(method="PUT", body=b"new"))
    assert (await world.send(written, "PUT", body=b"new")).status == 204
    assert await world.stored() == (200, "new")


async def test_the_event_of_a_git_helper_reads_and_does_not_write(world: World) -> None:
    """A-146: signed for the host and any method."""
    helper = (tag_set_to("u", f"{BASE}/"), tag_set_to("method", "*"))
    for number, method in enumerate(("GET", "HEAD")):
        event = world.event(*helper, set_to("content", str(number)))
        assert (await world.send(basic(event), method)).status == 200
    for method in ("PUT", "DELETE"):
        answer = await world.send(basic(world.event(*helper, set_to("content", method))), method)
        assert answer.status == 401
        assert answer.json()["message"] == "The event is for another method"
    assert await world.stored() == (200, "text")
    assert_refused(await world.send(nostr(world.event(*helper))), "The event is for another method")


async def test_the_operator_decides_what_a_password_is_good_for(
    start: Start, clock: FakeClock
) -> None:
    """A-146."""
    world = await prepared(start, clock, nostr_basic="any")
    helper = (tag_set_to("u", f"{BASE}/alice"), tag_set_to("method", "*"))
    assert (await world.send(basic(world.event(*helper)), "DELETE")).status == 204


async def test_the_operator_may_refuse_passwords(start: Start, clock: FakeClock) -> None:
    """A-146."""
    world = await prepared(start, clock, nostr_basic="off")
    answer = await world.send(basic(world.event()))
    assert (answer.status, answer.json()["message"]) == (
        401,
        "Send the event with the Nostr scheme",
    )
    assert (await world.get()).status == 200


async def test_a_password_of_somebody_else_is_not_a_credential(world: World) -> None:
    """A-3: the user-id is `nostr`, and no other has a password."""
    shown = [basic(world.event(), name=name) for name in ("alice", "", "Nostr", "nostr:nostr")]
    rubbish = ["", "*", "a", "abc", "nostr:"]
    decoded = (b"nostr", b"", b":", b"\xff:\xff", packed(world.event()).encode())
    rubbish += [base64.b64encode(each).decode() for each in decoded]
    shown += [{"Authorization": f"Basic {each}"} for each in rubbish]
    for fields in shown:
        answer = await world.send(fields)
        assert answer.status == 401, fields
        assert not [each for each in answer.header_lines("www-authenticate") if "error=" in each]


async def test_with_a_tag_more_the_event_is_as_good(world: World) -> None:
    """A-141: podkey adds some."""
    assert (await world.get(with_tag("client", "podkey"))).status == 200
    assert (await world.get(without_tag("payload"), set_to("content", "hello"))).status == 200
