"""One thing made wrong in a request that is good is refused."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstead.config import Settings
from podstead.storage.layout import RootLayout
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
from tests.support.nostr_world import DOC, PLACE, URL, World, assert_refused, prepared
from tests.support.rdf import TURTLE

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


# --- content -----------------------------------------------------------------------------------
#
# Content that is signed is stored if it is what was signed, and leaves nothing if it is not.


OTHER = "The event was signed for different content"
LARGE = bytes(range(256)) * 4096
"""A mebibyte, which is not kept in the database."""
NEW = f"{PLACE}new"


def files(settings: Settings) -> list[Path]:
    """Every file of the root but the database's own."""
    layout = RootLayout(settings.root)
    return sorted(
        path
        for path in settings.root.rglob("*")
        if path.is_file() and not path.name.startswith(layout.database.name)
    )


@pytest.mark.parametrize("body", [b"new", b"", LARGE], ids=["small", "empty", "large"])
async def test_content_that_is_what_was_signed_is_stored(world: World, body: bytes) -> None:
    assert (await world.put(body, target=NEW, signed=body)).status == 201
    answer = await world.server.alice.get(NEW)
    assert answer.status == 200
    assert answer.file_path is not None or answer.body == body


@pytest.mark.parametrize("body", [b"new", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("target", [NEW, DOC], ids=["new", "there"])
async def test_altered_content_is_refused_and_nothing_is_stored(
    world: World, settings: Settings, body: bytes, target: str
) -> None:
    """A-5, A-145: neither a resource nor a file."""
    before, there = await world.stored(target), files(settings)
    members = (await world.server.alice.get(PLACE)).text
    answer = await world.put(body[:-1] + b"!", target=target, signed=body)
    assert_refused(answer, OTHER)
    assert await world.stored(target) == before
    assert (await world.server.alice.get(PLACE)).text == members
    assert files(settings) == there


@pytest.mark.parametrize(
    ("method", "target", "kind", "body"),
    [
        ("POST", PLACE, "text/plain", b"posted"),
        ("POST", PLACE, TURTLE, b"<#a> <#b> 1 ."),
        ("PUT", NEW, TURTLE, b"<#a> <#b> 1 ."),
        ("PUT", f"{PLACE}new/", TURTLE, b"<#a> <#b> 1 ."),
        ("PUT", f"{DOC}.meta", TURTLE, b"<#a> <#b> 1 ."),
        ("PATCH", NEW, "application/sparql-update", b"INSERT DATA { <#a> <#b> 1 }"),
    ],
)
async def test_no_method_believes_altered_content(
    world: World, method: str, target: str, kind: str, body: bytes
) -> None:
    members = (await world.server.alice.get(PLACE)).text
    for signed, status in ((body + b" ", 401), (body, 201)):
        event = world.event(method=method, target=target, body=signed)
        fields = {**nostr(event), "Content-Type": kind}
        answer = await world.send(fields, method, target, body)
        assert answer.status == status, answer.text
        if status == 401:
            assert (await world.server.alice.get(PLACE)).text == members
            assert (await world.stored(NEW))[0] == 404


async def test_a_pod_is_not_made_of_altered_content(world: World) -> None:
    """A-145: nor does any service believe it."""
    body = b'{"name": "carol"}'
    for signed, status in ((b"{}", 401), (body, 201)):
        event = world.event(method="POST", target="/.pods", body=signed)
        fields = {**nostr(event), "Content-Type": "application/json"}
        assert (await world.send(fields, "POST", "/.pods", body)).status == status


async def test_content_in_pieces_of_no_announced_length_is_hashed(world: World) -> None:
    pieces = [LARGE[start : start + 10_000] for start in range(0, len(LARGE), 10_000)]
    for signed, status in ((LARGE + b"!", 401), (LARGE, 201)):
        event = world.event(method="PUT", target=NEW, body=signed)
        fields = {**nostr(event), "Transfer-Encoding": "chunked"}
        assert (await world.send(fields, "PUT", NEW, pieces)).status == status


async def test_a_hash_in_upper_case_will_do(world: World) -> None:
    digest = hashlib.sha256(b"new").hexdigest().upper()
    assert (await world.put(b"new", with_tag("payload", digest))).status == 204


async def test_content_that_is_not_named_is_taken_unless_the_operator_says_otherwise(
    world: World, start: Start, clock: FakeClock, settings: Settings
) -> None:
    """A-145."""
    assert (await world.put(b"new")).status == 204
    root = settings.root.with_name("strict")
    strict = await prepared(start, clock, nostr_require_payload=True, root=root)
    assert_refused(
        await strict.put(b"new"), "The event has no payload tag with the hash of the content"
    )
    assert (await strict.put(b"new", signed=b"new")).status == 204
    assert (await strict.get()).status == 200


async def test_the_hash_of_a_request_without_content_is_that_of_nothing(world: World) -> None:
    """A-145."""
    event = world.event(method="DELETE", body=b"x")
    assert_refused(await world.send(nostr(event), "DELETE"), OTHER)
    assert await world.stored() == (200, "text")
    event = world.event(method="DELETE", body=b"")
    assert (await world.send(nostr(event), "DELETE")).status == 204


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_content_that_the_method_makes_no_use_of_is_checked_too(
    world: World, method: str
) -> None:
    """A-145."""
    event = world.event(method=method, body=b"signed")
    assert_refused(await world.send(nostr(event), method, body=b"other!"), OTHER)
    assert await world.stored() == (200, "text")
    event = world.event(tag_set_to("x"), method=method, body=b"signed")
    answer = await world.send(nostr(event), method, body=b"signed")
    assert answer.status in {200, 204}


async def test_an_upload_that_is_cut_off_leaves_no_resource(
    world: World, settings: Settings
) -> None:
    there = files(settings)
    event = world.event(method="PUT", target=NEW, body=LARGE)
    for length in (len(LARGE), None):
        chunked = {} if length is not None else {"Transfer-Encoding": "chunked"}
        answer = await world.server.public.request(
            "PUT",
            NEW,
            headers={**nostr(event), "Content-Type": "text/plain", **chunked},
            body=_pieces(LARGE[:300_000]),
            content_length=length,
            disconnect=True,
        )
        assert answer.status == 400
        event = world.event(tag_set_to("x"), method="PUT", target=NEW, body=LARGE)
    assert (await world.stored(NEW))[0] == 404
    assert files(settings) == there


async def test_altered_content_is_reported_in_the_challenge_of_the_scheme_used(
    world: World,
) -> None:
    """A-8: a password has none of its own."""
    event = world.event(method="PUT", body=b"signed")
    answer = await world.send(basic(event), "PUT", body=b"other!")
    assert (answer.status, answer.json()["message"]) == (401, OTHER)
    assert not [each for each in answer.header_lines("www-authenticate") if "error=" in each]


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]
