"""Content that is signed is stored if it is what was signed, and leaves nothing if it is not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstead.config import Settings
from podstead.storage.layout import RootLayout
from tests.http.nostr.world import DOC, PLACE, World, assert_refused, prepared
from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.nostr import basic, nostr, tag_set_to, with_tag
from tests.support.rdf import TURTLE

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
