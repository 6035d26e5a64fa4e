"""Does the index over access rules say what a scan of all ACLs finds, whatever is written?

The oracle reads every ACL with another RDF library.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import apsw
import msgspec
import pytest
from rdflib import RDF, Graph, Namespace, URIRef
from rdflib.namespace import FOAF
from rdflib.term import Node

from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.services import Services
from podstead.core.identifiers import ResourcePath
from podstead.resources.sharing.rules_index import (
    ACLS_AT_ONCE,
    BUILDING,
    REST,
    RulesIndex,
    RulesIndexBuilder,
    is_index_complete,
)
from podstead.storage.open_body import whole_body
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodRemoval, Version
from podstead.storage.sqlite import SqliteStore
from podstead.wac.sharing.index import (
    ACLS,
    LISTED_OF_MANY,
    MANY,
    MAX_NAMED,
    MENTIONS,
    agent_prefix,
    group_prefix,
)
from tests.support.application import BASE, Server, acl_turtle
from tests.support.asgi import Answer

ACL = Namespace("http://www.w3.org/ns/auth/acl#")
TURTLE = "text/turtle"
NOW_MS = 1_000
CAROL = "https://carol.example/profile#me"
TEAM = f"{BASE}/bob/groups.ttl#team"
WHO = [
    f"acl:agent <{BASE}/bob/#me>",
    f"acl:agent <{CAROL}>",
    f"acl:agent <{BASE}/bob/#me>, <{CAROL}>",
    f"acl:agentGroup <{TEAM}>",
    "acl:agentClass foaf:Agent",
    "acl:agentClass acl:AuthenticatedAgent",
    "acl:origin <https://app.example>",
]
MODES = ["Read", "+Read", "+Read Append", "Read +Write", "+Control", "Other"]

Indexed = dict[str, object]


@pytest.fixture
def records(store: SqliteStore) -> RecordStore:
    return RecordStore(store, SystemClock(), SystemRandomness())


@pytest.fixture
def builder(parts: Services, records: RecordStore) -> RulesIndexBuilder:
    index = RulesIndex(records, base_url=BASE)
    return RulesIndexBuilder(index=index, documents=parts.documents, records=records)


async def in_index(store: SqliteStore) -> tuple[Indexed, set[str]]:
    """The records of ACLs, and the keys of mentions."""
    acls = await ACLS.page(store, now_ms=NOW_MS, limit=10_000)
    mentions = await MENTIONS.page(store, now_ms=NOW_MS, limit=10_000)
    values = {each.key: msgspec.json.decode(msgspec.json.encode(each.value)) for each in acls}
    return values, {each.key for each in mentions}


async def by_scan(store: SqliteStore) -> tuple[Indexed, set[str]]:
    """The same from all ACLs of the store."""
    acls: Indexed = {}
    mentions: set[str] = set()
    for metadata in await store.list_acls(limit=10_000):
        body = await store.open_body(metadata)
        assert body is not None
        path = metadata.path
        graph = Graph().parse(
            data=(await whole_body(body)).decode(), format="turtle", publicID=BASE + path
        )
        subject = URIRef(BASE + path.removesuffix(".acl"))
        granted = _granted(graph, subject)
        if not granted:
            continue
        ordered = sorted(granted, key=lambda each: (_ORDER.index(each[0]), each[1]))
        acls[path] = {
            "grantees": [
                [kind, iri, *("".join(sorted(part)) for part in granted[kind, iri]), None]
                for kind, iri in ordered
            ],
            "total": len(ordered),
        }
        mentions |= {agent_prefix(iri) + path for kind, iri in ordered if kind == "agent"}
        mentions |= {group_prefix(iri) + path for kind, iri in ordered if kind == "group"}
    return acls, mentions


_ORDER = ["everyone", "authenticated", "group", "agent"]
_LETTERS: dict[Node, str] = {ACL.Read: "r", ACL.Append: "a", ACL.Write: "aw", ACL.Control: "c"}


def _granted(graph: Graph, subject: URIRef) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    granted: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for rule in graph.subjects(RDF.type, ACL.Authorization):
        letters = {
            letter for mode in graph.objects(rule, ACL.mode) for letter in _LETTERS.get(mode, "")
        }
        here = (rule, ACL.accessTo, subject) in graph
        inside = (rule, ACL.default, subject) in graph and str(subject).endswith("/")
        if not letters or not (here or inside):
            continue
        for named in _named(graph, rule):
            parts = granted.setdefault(named, (set(), set()))
            parts[0].update(letters if here else ())
            parts[1].update(letters if inside else ())
    return granted


def _named(graph: Graph, rule: Node) -> Sequence[tuple[str, str]]:
    classes = set(graph.objects(rule, ACL.agentClass))
    return [
        *([("everyone", "")] if FOAF.Agent in classes else []),
        *([("authenticated", "")] if ACL.AuthenticatedAgent in classes else []),
        *(("group", str(each)) for each in graph.objects(rule, ACL.agentGroup)),
        *(("agent", str(each)) for each in graph.objects(rule, ACL.agent)),
    ]


class Writer:
    """Writes at random, as the owner of a pod."""

    def __init__(self, server: Server, seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)

    async def write(self) -> Answer:
        alice, chance = self._server.alice, self._random
        container = chance.choice(["/alice/", "/alice/a/", "/alice/a/b/", "/alice/c/"])
        subject = container + chance.choice(["", "", "x.txt", "y.ttl"])
        match chance.choice(["rules"] * 5 + ["patch", "document", "delete", "move", "copy"]):
            case "rules":
                rules = [
                    (chance.choice(WHO), chance.choice(MODES)) for _ in range(chance.randint(0, 3))
                ]
                return await alice.put(f"{subject}.acl", acl_turtle(subject, *rules), TURTLE)
            case "patch":
                update = (
                    "PREFIX acl: <http://www.w3.org/ns/auth/acl#> INSERT DATA { <#new> "
                    f"a acl:Authorization; acl:agent <{CAROL}>; acl:mode acl:Read; "
                    f"acl:accessTo <{BASE}{subject}> }}"
                )
                headers = {"Content-Type": "application/sparql-update"}
                return await alice.request(
                    "PATCH", f"{subject}.acl", headers=headers, body=update.encode()
                )
            case "document":
                return await alice.put(f"{container}x.txt", "text", "text/plain")
            case "delete":
                target = chance.choice([f"{subject}.acl", subject])
                whole = target.endswith("/") and chance.random() < 0.5
                headers = {"Depth": "infinity"} if whole else {}
                return await alice.delete(target, **headers)
            case method:
                target = chance.choice(["/alice/d/", "/alice/a/", "/alice/a/b/", "/alice/e.txt"])
                return await alice.request(
                    method.upper(), subject, headers={"Destination": BASE + target}
                )


@pytest.mark.parametrize("seed", range(6))
async def test_the_index_is_what_a_scan_finds_after_any_writes(
    server: Server, store: SqliteStore, seed: int
) -> None:
    writer = Writer(server, seed)
    done = set()
    for _ in range(60):
        answer = await writer.write()
        done.add(answer.status // 100)
        assert answer.status < 500, answer.text
        assert await in_index(store) == await by_scan(store)
    assert done >= {2, 4}


async def test_a_new_pod_is_in_the_index(server: Server, store: SqliteStore) -> None:
    acls, mentions = await in_index(store)
    assert acls == (await by_scan(store))[0]
    assert "/alice/.acl" in acls
    assert agent_prefix(server.alice_web_id) + "/alice/private/.acl" in mentions


async def test_the_index_forgets_a_removed_pod(server: Server, store: SqliteStore) -> None:
    await server.put_acl("/alice/private/", (f"acl:agent <{CAROL}>", "Read"))
    assert await store.remove_pod(PodRemoval("alice", Version("0" * 16), NOW_MS))
    acls, mentions = await in_index(store)
    assert not [key for key in {*acls, *mentions} if "/alice/" in key]
    assert acls


async def test_an_acl_that_names_very_many_costs_one_mention(
    server: Server, store: SqliteStore
) -> None:
    agents = ", ".join(f"<https://p.example/{number}#me>" for number in range(MAX_NAMED))
    answer = await server.put_acl("/alice/private/", (f"acl:agent {agents}", "Read"))
    assert answer.status < 300
    acls, mentions = await in_index(store)
    recorded = acls["/alice/private/.acl"]
    assert isinstance(recorded, dict)
    assert len(recorded["grantees"]) == LISTED_OF_MANY
    assert recorded["total"] == MAX_NAMED + 1
    assert [key for key in mentions if key.endswith("/alice/private/.acl")] == [
        f"{MANY}/alice/private/.acl"
    ]
    await server.put_acl("/alice/private/", (f"acl:agent <{CAROL}>", "Read"))
    assert await in_index(store) == await by_scan(store)


# --- building it for a root that is older ----------------------------------------------------


async def forget(records: RecordStore) -> None:
    """Bring the store into the state that a version without the index has left."""
    acls = await ACLS.page(records.store, now_ms=NOW_MS, limit=10_000)
    mentions = await MENTIONS.page(records.store, now_ms=NOW_MS, limit=10_000)
    await records.commit(
        [
            *(ACLS.drop(each.key) for each in acls),
            *(MENTIONS.drop(each.key) for each in mentions),
            BUILDING.drop("rules"),
        ]
    )
    assert await in_index(records.store) == ({}, set())  # type: ignore[arg-type]


async def shared_folders(server: Server, number: int) -> None:
    for each in range(number):
        subject = f"/alice/private/{each:03}.txt"
        await server.alice.put(subject, "text", "text/plain")
        await server.put_acl(subject, (f"acl:agent <{CAROL}>", "Read"))


async def test_an_older_root_is_indexed_in_steps_that_can_be_interrupted(
    server: Server, store: SqliteStore, records: RecordStore, builder: RulesIndexBuilder
) -> None:
    await shared_folders(server, ACLS_AT_ONCE)
    await forget(records)
    assert not await is_index_complete(records)
    assert not await builder.step()
    acls, _mentions = await in_index(store)
    assert len(acls) == ACLS_AT_ONCE
    await builder.run()
    assert await is_index_complete(records)
    assert await in_index(store) == await by_scan(store)


async def test_the_building_of_the_index_leaves_the_worker_to_requests(
    server: Server, records: RecordStore, builder: RulesIndexBuilder
) -> None:
    """Between two ACLs the event loop runs whatever is ready, and a step is followed by a rest
    that is several times as long, so an upgraded root answers as fast as others."""
    await shared_folders(server, ACLS_AT_ONCE)
    await forget(records)
    turns = 0
    rests_s: list[float] = []

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def rest(rest_s: float) -> None:
        rests_s.append(rest_s)

    counting = asyncio.create_task(count_turns())
    began_s = asyncio.get_running_loop().time()
    await builder.run(rest)
    took_s = asyncio.get_running_loop().time() - began_s
    counting.cancel()
    assert turns > ACLS_AT_ONCE
    (rest_s,) = rests_s
    assert 0 < rest_s < REST * took_s


async def test_rules_that_change_while_the_index_is_built_are_recorded_once(
    server: Server, store: SqliteStore, records: RecordStore, builder: RulesIndexBuilder
) -> None:
    await shared_folders(server, ACLS_AT_ONCE)
    await forget(records)
    await builder.step()
    await server.put_acl("/alice/private/000.txt", ("acl:agentClass foaf:Agent", "Read"))
    await server.put_acl("/bob/")  # refused
    await server.alice.delete("/alice/private/049.txt")
    await builder.run()
    assert await in_index(store) == await by_scan(store)


async def test_a_write_between_reading_and_recording_is_not_lost(
    server: Server,
    store: SqliteStore,
    records: RecordStore,
    builder: RulesIndexBuilder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await forget(records)
    try_commit = records.try_commit

    async def late(*changes: object) -> bool:
        monkeypatch.undo()
        await server.put_acl("/alice/private/", (f"acl:agent <{CAROL}>", "Read"))
        return await try_commit(*changes)  # type: ignore[arg-type]

    monkeypatch.setattr(records, "try_commit", late)
    assert not await builder.step()
    await builder.run()
    assert await in_index(store) == await by_scan(store)


async def test_a_damaged_acl_does_not_stop_the_building(
    server: Server, store: SqliteStore, records: RecordStore, builder: RulesIndexBuilder
) -> None:
    await forget(records)
    with apsw.Connection(str(store._layout.database)) as connection:
        connection.execute(
            "UPDATE bodies SET content = ?, sha256 = NULL WHERE path = ?",
            (b"not Turtle <", "/alice/private/.acl"),
        )
        connection.execute(
            "UPDATE resources SET size_bytes = 12 WHERE path = ?", ("/alice/private/.acl",)
        )
    await builder.run()
    acls, _ = await in_index(store)
    assert ResourcePath("/alice/private/.acl") not in acls
    assert "/bob/.acl" in acls
