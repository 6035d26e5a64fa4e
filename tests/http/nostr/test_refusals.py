"""One thing made wrong in a request that is good is refused."""

from __future__ import annotations

import base64
import json

import pytest

from tests.http.nostr.world import DOC, URL, World, assert_refused, prepared
from tests.support.application import BASE, Start
from tests.support.clock import FakeClock
from tests.support.nostr import (
    Change,
    NostrKey,
    basic,
    nostr,
    packed,
    set_to,
    tag_set_to,
    with_tag,
    without_tag,
)

KIND = "The event has the wrong kind"
TIME = "The event is too old or from the future"
METHOD = "The event is for another method"
ADDRESS = "The event is for another URL"
FORM = "A member of the event is missing or has the wrong type"
UNSIGNED = "The event has no valid signature"
OTHER_ID = "The id of the event does not match its content"
NO_EVENT = "The event is not the base64 of a JSON object"
USED = "The event has already been used"


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (tag_set_to("u", f"{URL}/"), ADDRESS),
        (tag_set_to("u", f"{BASE}/alice/private/shared/"), ADDRESS),
        (tag_set_to("u", BASE), ADDRESS),
        (tag_set_to("u", f"http://localhost:3001{DOC}"), ADDRESS),
        (tag_set_to("u", f"https://localhost:3000{DOC}"), ADDRESS),
        (tag_set_to("u", DOC), ADDRESS),
        (tag_set_to("method", "*"), METHOD),
        (tag_set_to("method", "PUT"), METHOD),
        (without_tag("u"), "The event must have exactly one u tag"),
        (with_tag("u", URL), "The event must have exactly one u tag"),
        (tag_set_to("u"), "The event must have exactly one u tag"),
        (without_tag("method"), "The event must have exactly one method tag"),
        (with_tag("method", "GET"), "The event must have exactly one method tag"),
        (tag_set_to("method"), "The event must have exactly one method tag"),
        (
            with_tag("payload"),
            "The event must have at most one payload tag, which must be a SHA-256 hash",
        ),
        (with_tag("payload", "0" * 64), "The event was signed for different content"),
        (with_tag("t", 1), FORM),
        (set_to("tags", [["u", URL], "method"]), FORM),
        (set_to("kind", 22242), KIND),
        (set_to("kind", 1), KIND),
        (set_to("kind", "27235"), FORM),
        (set_to("created_at", "1800000000"), FORM),
        (set_to("created_at", 1800000000.0), FORM),
        (set_to("created_at", True), FORM),
        (set_to("created_at", 1800000000 - 61), TIME),
        (set_to("created_at", 1800000000 + 61), TIME),
        (set_to("content", None), FORM),
        (set_to("content", "\ud800"), NO_EVENT),
    ],
)
async def test_an_event_that_says_something_else_is_refused(
    world: World, change: Change, phrase: str
) -> None:
    """Though it is signed."""
    assert_refused(await world.get(change), phrase)
    assert (await world.get()).status == 200


async def test_an_event_that_is_not_signed_by_its_key_is_refused(world: World) -> None:
    event = world.event()
    other = NostrKey.new()
    for sig, phrase in (
        (other.sign(bytes.fromhex(event["id"])).hex(), UNSIGNED),
        (world.event(set_to("content", "other"))["sig"], UNSIGNED),
        ("0" * 128, UNSIGNED),
        (event["sig"][:-2], FORM),
    ):
        assert_refused(await world.send(nostr({**event, "sig": sig})), phrase)
    assert (await world.send(nostr(event))).status == 200


async def test_an_event_of_a_key_that_is_none_is_refused(world: World) -> None:
    """A-141: no point of the curve has this x."""
    nobody = "eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34"
    assert_refused(await world.get(set_to("pubkey", nobody)), UNSIGNED)


async def test_an_event_in_the_name_of_somebody_else_is_refused(world: World) -> None:
    stranger = NostrKey.new()
    event = stranger.event("GET", URL, world.now_s, set_to("pubkey", world.key.public))
    assert_refused(await world.send(nostr(event)), UNSIGNED)
    event = stranger.event("GET", URL, world.now_s)
    assert_refused(await world.send(nostr({**event, "pubkey": world.key.public})), OTHER_ID)


async def test_another_id_none_or_a_key_in_upper_case_is_refused(world: World) -> None:
    event = world.event()
    without_id = {name: value for name, value in event.items() if name != "id"}
    assert_refused(await world.send(nostr(without_id)), FORM)
    assert_refused(await world.send(nostr({**event, "id": "0" * 64})), OTHER_ID)
    assert_refused(await world.get(set_to("pubkey", world.key.public.upper())), FORM)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{", b"\xff", b'{"a":1,"a":1}', b"[" * 5000]
)
async def test_an_invalid_event_is_refused(world: World, content: bytes) -> None:
    fields = {"Authorization": f"Nostr {base64.b64encode(content).decode() or '='}"}
    answer = await world.send(fields)
    assert_refused(answer, NO_EVENT if content else "Invalid token")


@pytest.mark.parametrize("token", ["", " ", "é", "a b", "a,b", '"a"', "{}"])
async def test_text_that_cannot_be_a_token_is_refused(world: World, token: str) -> None:
    """A-3."""
    assert_refused(await world.send({"Authorization": f"Nostr {token}"}), "Invalid token")


async def test_a_header_of_more_than_16_kibibytes_is_too_large(world: World) -> None:
    """A-140."""
    for size, status in ((16 * 1024 - 6, 401), (16 * 1024 - 5, 431)):
        answer = await world.send({"Authorization": f"Nostr {'a' * size}"})
        assert answer.status == status, size


async def test_an_event_is_used_once(world: World) -> None:
    """A-147: in whatever form, and by whatever spelling."""
    event = world.event()
    assert (await world.send(nostr(event))).status == 200
    assert_refused(await world.send(nostr(event)), USED)
    unpadded = {"Authorization": f"Nostr {packed(event).rstrip('=')}"}
    assert_refused(await world.send(unpadded), USED)
    respaced = base64.b64encode(json.dumps({**event, "x": 1}, indent=1).encode()).decode()
    assert_refused(await world.send({"Authorization": f"Nostr {respaced}"}), USED)
    in_upper_case = {**event, "sig": event["sig"].upper()}
    assert_refused(await world.send(nostr(in_upper_case)), USED)
    answer = await world.send(basic(event))
    assert (answer.status, answer.json()["message"]) == (401, USED)


async def test_two_requests_of_one_second_that_say_the_same_are_two(world: World) -> None:
    """A-147: their events have one id, and each was signed on its own."""
    first, second = world.event(), world.event()
    assert first["id"] == second["id"]
    assert first["sig"] != second["sig"]
    assert (await world.send(nostr(first))).status == 200
    assert (await world.send(nostr(second))).status == 200
    assert_refused(await world.send(nostr(second)), USED)


async def test_an_event_is_remembered_for_as_long_as_it_would_be_taken(world: World) -> None:
    """A-147: also one from the future, whose time comes."""
    event = world.event(set_to("created_at", world.now_s + 60))
    assert (await world.send(nostr(event))).status == 200
    for moved_s, phrase in ((60, USED), (60, USED), (1, TIME)):
        world.clock.advance(moved_s)
        assert_refused(await world.send(nostr(event)), phrase)


async def test_who_guesses_at_an_event_does_not_use_it_up(world: World) -> None:
    event = world.event()
    assert_refused(await world.send(nostr({**event, "sig": "0" * 128})), UNSIGNED)
    assert (await world.send(nostr(event))).status == 200


async def test_a_refused_event_is_refused_where_all_may_read(world: World) -> None:
    """A-5."""
    assert (await world.server.public.get("/alice/")).status == 200
    assert_refused(await world.send(nostr(world.event()), target="/alice/"), ADDRESS)


async def test_two_credentials_are_a_bad_request(world: World) -> None:
    """A-6."""
    good = f"Nostr {packed(world.event())}"
    twice = [("Authorization", good), ("Authorization", good)]
    answer = await world.server.public.request("GET", DOC, headers=twice)
    assert answer.status == 400
    for merged in (f"{good}, Bearer abc", f"Bearer abc, {good}"):
        assert (await world.send({"Authorization": merged})).status == 400


async def test_refused_events_are_limited_by_address(start: Start, clock: FakeClock) -> None:
    """A-181."""
    world = await prepared(start, clock, invalid_credentials_per_minute=3)
    statuses = [(await world.get(set_to("kind", 1))).status for _ in range(4)]
    assert statuses == [401, 401, 401, 429]


async def test_an_answer_to_a_signed_request_is_not_kept_for_another(world: World) -> None:
    """A-147: what was answered a moment ago answers no replay, nor an event that is not signed."""
    await world.let_in(("acl:agentClass foaf:Agent", "+Read"))
    event = world.event()
    assert (await world.send(nostr(event))).status == 200
    assert_refused(await world.send(nostr(event)), USED)
    helper = world.event(set_to("content", "x"))
    assert (await world.send(basic(helper))).status == 200
    assert (await world.send(basic(helper))).status == 401
