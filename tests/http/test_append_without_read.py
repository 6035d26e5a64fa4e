"""What an agent learns that may append to a document and not read it: nothing that it says."""

from __future__ import annotations

import json

import pytest

from podstead.storage.records import ChangeType
from podstead.storage.sqlite import SqliteStore
from tests.http.test_patch import N3, SPARQL, TURTLE, n3, patch
from tests.support.application import Server
from tests.support.asgi import Answer

PATH = "/alice/private/guestbook.ttl"
STATED = "<#a> <#b> 1 ."
NEW = "<#a> <#b> 2 ."
JSON_LD = "application/ld+json"


async def given(server: Server, *, modes: str = "Append") -> None:
    """A document with one triple, to which Bob may do so much."""
    await server.alice.put(PATH, STATED, TURTLE)
    await server.put_acl(PATH, (f"acl:agent <{server.bob_web_id}>", modes))


def described(answer: Answer) -> tuple[int, list[str], bytes]:
    """An answer without the values that every write renews."""
    renewed = {"etag", "last-modified", "date"}
    shown = [f"{name}: {'' if name in renewed else value}" for name, value in answer.headers]
    return answer.status, shown, answer.body


def inserting(triple: str, kind: str) -> str:
    return n3(inserts=triple) if kind == N3 else f"INSERT DATA {{ {triple} }}"


@pytest.mark.parametrize("kind", [N3, SPARQL])
@pytest.mark.parametrize("modes", ["Append", "Write"])
async def test_no_response_reveals_a_triple_without_read_access(
    server: Server, kind: str, modes: str
) -> None:
    await given(server, modes=modes)
    first = await patch(server.bob, PATH, inserting(NEW, kind), kind)
    again = await patch(server.bob, PATH, inserting(NEW, kind), kind)
    guess = await patch(server.bob, PATH, inserting(STATED, kind), kind)
    assert described(first) == described(again) == described(guess)
    tags = {answer.header("etag") for answer in (first, again, guess)}
    assert len(tags) == 3, "an entity tag that stays tells that nothing changed"
    assert (await server.alice.head(PATH)).header("etag") == guess.header("etag")


async def test_notifications_do_not_reveal_whether_a_triple_existed(
    server: Server, store: SqliteStore
) -> None:
    """What the change log says is all that subscribers can hear."""
    await given(server)
    sequence = await store.newest_sequence()
    for triple in (NEW, NEW, STATED):
        await patch(server.bob, PATH, n3(inserts=triple))
    changes = await store.changes_after(sequence, limit=10)
    assert [(each.change.path, each.change.activity) for each in changes] == [
        (PATH, ChangeType.UPDATE)
    ] * 3


async def test_an_empty_patch_is_tagged_as_any_other_where_its_sender_may_not_read(
    server: Server,
) -> None:
    await given(server)
    before = await patch(server.bob, PATH, n3())
    assert before.status == 204
    assert (await patch(server.bob, PATH, n3())).header("etag") != before.header("etag")


async def test_a_precondition_does_not_reveal_whether_a_triple_existed(server: Server) -> None:
    """A former entity tag no longer matches after a write, whatever it has changed."""
    await given(server)
    tag = (await patch(server.bob, PATH, n3(inserts=NEW))).header("etag") or ""
    assert (await patch(server.bob, PATH, n3(inserts=STATED), if_match=tag)).status == 204
    assert (await patch(server.bob, PATH, n3(inserts=STATED), if_match=tag)).status == 412


async def test_a_patch_without_effect_keeps_the_entity_tag_for_readers(
    server: Server,
) -> None:
    await given(server, modes="Read Append")
    before = (await server.bob.head(PATH)).header("etag")
    assert (await patch(server.bob, PATH, n3(inserts=STATED))).header("etag") == before


async def test_what_was_appended_again_is_there_once(server: Server) -> None:
    await given(server)
    for _ in range(2):
        await patch(server.bob, PATH, n3(inserts=NEW))
    text = (await server.alice.get(PATH, accept="application/n-triples")).text
    assert len(text.strip().splitlines()) == 2


async def test_a_statement_of_identity_needs_control_whether_it_is_there_or_not(
    server: Server,
) -> None:
    """Else the one that is let through is the one that the profile states."""
    profile = "/alice/private/card.ttl"
    stated = "<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <https://idp.example> ."
    await server.alice.put(profile, stated, TURTLE)
    await server.put_acl(profile, (f"acl:agent <{server.bob_web_id}>", "Append"))
    for guess in (stated, stated.replace("idp.example", "other.example")):
        assert (await patch(server.bob, profile, n3(inserts=guess))).status == 403


@pytest.mark.parametrize(
    ("content", "kind", "secret"),
    [
        ("secret", "image/x-secret", "image/x-secret"),
        (
            json.dumps({"@context": "https://secret.example/context", "name": "a"}),
            JSON_LD,
            "secret.example",
        ),
    ],
)
async def test_why_a_patch_fails_is_not_revealed_without_read_access(
    server: Server, content: str, kind: str, secret: str
) -> None:
    await server.alice.put(PATH, content, kind)
    await server.put_acl(PATH, (f"acl:agent <{server.bob_web_id}>", "Append"))
    answer = await patch(server.bob, PATH, n3(inserts=NEW))
    assert answer.status == 409
    assert secret not in answer.text
    assert secret in (await patch(server.alice, PATH, n3(inserts=NEW))).text
