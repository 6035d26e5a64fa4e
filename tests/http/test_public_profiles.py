"""A new pod: everyone reads the profile, and only the owner sees what is in the container."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
import rdflib
from rdflib.namespace import FOAF, RDF

from podstead.app.accounts import build_accounts
from podstead.app.adapters.bundled_contexts import build_documents
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.profile_index import index_profiles
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.idp.nostr.profile_key_records import ProfileKeyRecords
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.records import PROFILE_KEYS
from podstead.rdf.graph import Graph
from podstead.storage.record_store import RecordStore
from podstead.storage.records import InlineBody, Put, ResourceKind, Version, Write
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.asgi import Answer, Client
from tests.support.clock import FakeClock
from tests.support.nostr import NostrKey
from tests.support.rdf import FORMATS, said

LDP = rdflib.Namespace("http://www.w3.org/ns/ldp#")
PIM = rdflib.Namespace("http://www.w3.org/ns/pim/space#")
POD = "/alice/"
URL = rdflib.URIRef(BASE + POD)
ME = rdflib.URIRef(f"{BASE}/alice/#me")
SECRET = "a-plan-nobody-knows"
HEADERS_OF_STATE = ("etag", "last-modified", "content-length")


def readers(server: Server) -> tuple[Client, Client]:
    """A stranger, and another person who is signed in."""
    return server.public, server.bob


def profile_rule(who: str) -> str:
    """The rules of the root: Alice's, and one on the profile alone."""
    return (
        acl_turtle(POD) + f"[] a acl:Authorization; {who}; acl:accessTo <#me>; acl:mode acl:Read."
    )


async def put_root_acl(server: Server, extra: str) -> None:
    # The rule names the WebID by its full IRI: relative ones resolve against the URL of the ACL.
    body = extra.replace("<#me>", f"<{ME}>")
    answer = await server.alice.put(f"{POD}.acl", body, "text/turtle")
    assert answer.status == 204, answer.text


@pytest.mark.parametrize("accept", FORMATS)
async def test_everyone_reads_the_profile_without_the_members(server: Server, accept: str) -> None:
    """A-98."""
    await server.alice.put(f"{POD}{SECRET}.txt", "x", "text/plain")
    owners = said(await server.alice.get(POD, accept=accept), str(URL))
    assert {o for s, p, o in owners if p == LDP.contains}
    for reader in readers(server):
        answer = await reader.get(POD, accept=accept)
        assert answer.status == 200
        graph = said(answer, str(URL))
        assert (ME, RDF.type, FOAF.Person) in graph
        assert (URL, RDF.type, PIM.Storage) in graph
        assert not [o for _, p, o in graph if p == LDP.contains]
        assert SECRET not in answer.text


@pytest.mark.parametrize("path", [POD, f"{POD}.meta"])
async def test_nothing_tells_strangers_that_members_come_and_go(
    start: Start, clock: FakeClock, path: str
) -> None:
    """Neither entity tags nor dates nor the text; so If-None-Match and caches do not either."""
    server = await start(clock=clock)

    async def seen() -> list[Answer]:
        return [await reader.request(method, path) for reader in readers(server)
                for method in ("GET", "HEAD")]  # fmt: skip

    before = await seen()
    owned = await server.alice.get(path)
    clock.advance(3_600)
    assert (await server.alice.put(f"{POD}{SECRET}/x.txt", "x", "text/plain")).status == 201
    for old, new in zip(before, await seen(), strict=True):
        assert (old.status, new.status) == (200, 200)
        assert old.body == new.body
        for name in HEADERS_OF_STATE:
            assert old.header(name) == new.header(name), name
    assert (await server.alice.get(path)).header("etag") != owned.header("etag")
    tag = before[0].header("etag") or ""
    assert tag != owned.header("etag")
    unchanged = await server.public.get(path, if_none_match=tag)
    assert unchanged.status == 304
    # The tags are of different representations: neither is taken for the other.
    assert (await server.alice.get(path, if_none_match=tag)).status == 200
    other = (await server.alice.get(path)).header("etag") or ""
    assert (await server.public.get(path, if_none_match=other)).status == 200


async def test_caches_keep_what_the_owner_reads_apart(server: Server) -> None:
    owned, public = await server.alice.get(POD), await server.public.get(POD)
    for answer in (owned, public):
        assert "Authorization" in (answer.header("vary") or "").split(", ")
        assert answer.header("cache-control") == "private, no-cache"
    assert SECRET not in (await server.public.get(POD)).text
    assert "contains" in owned.text
    assert "contains" not in public.text


async def test_the_rights_that_are_stated_are_those_on_the_container(server: Server) -> None:
    """Web Access Control, section 6.1: a client that asks whether the folder is public is told
    that it is not."""
    assert (await server.public.get(POD)).header("wac-allow") == 'user="",public=""'
    owned = (await server.alice.get(POD)).header("wac-allow")
    assert owned == 'user="read write append control",public=""'


async def test_a_profile_is_found_without_its_slash(server: Server) -> None:
    answer = await server.public.get("/alice")
    assert (answer.status, answer.header("location")) == (301, str(URL))


async def test_the_rule_opens_nothing_else(server: Server) -> None:
    await server.alice.put(f"{POD}{SECRET}/x.txt", "x", "text/plain")
    places = (f"{POD}.acl", f"{POD}{SECRET}/", f"{POD}{SECRET}/x.txt", f"{POD}private/",
              f"{POD}{SECRET}/.meta", f"{POD}missing/", f"{POD}missing")  # fmt: skip
    for path in places:
        assert (await server.public.get(path)).status == 401, path
        assert (await server.bob.get(path)).status == 403, path
    insert = "INSERT DATA { <#me> <http://xmlns.com/foaf/0.1/name> 'x' }"
    for method, body, kind in (
        ("PUT", "", "text/turtle"),
        ("POST", "", "text/turtle"),
        ("PATCH", insert, "application/sparql-update"),
        ("DELETE", None, None),
    ):
        headers = {"Content-Type": kind} if kind else {}
        content = None if body is None else body.encode()
        answer = await server.bob.request(method, POD, headers=headers, body=content)
        assert answer.status == 403, method


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("acl:agent <http://localhost:3000/bob/#me>", (401, 200)),
        ("acl:agentClass acl:AuthenticatedAgent", (401, 200)),
        ("acl:agentClass foaf:Agent", (200, 200)),
        ("acl:agent <http://localhost:3000/carol/#me>", (401, 403)),
        ("acl:origin <https://app.example>", (401, 403)),
    ],
)
async def test_the_rule_names_agents_as_any_other(
    server: Server, rule: str, expected: tuple[int, int]
) -> None:
    await put_root_acl(server, profile_rule(rule))
    answers = [await reader.get(POD) for reader in readers(server)]
    assert tuple(answer.status for answer in answers) == expected
    assert not any("contains" in answer.text for answer in answers)


@pytest.mark.parametrize("mode", ["acl:Write", "acl:Append", "acl:Control"])
async def test_other_modes_on_a_fragment_grant_nothing(server: Server, mode: str) -> None:
    body = profile_rule("acl:agentClass foaf:Agent").replace(
        "acl:mode acl:Read.", f"acl:mode {mode}."
    )
    assert mode in body.rpartition("[]")[2]
    await put_root_acl(server, body)
    assert (await server.public.get(POD)).status == 401
    assert (await server.bob.get(f"{POD}.acl")).status == 403


async def test_read_on_the_container_itself_shows_its_members_as_ever(server: Server) -> None:
    await server.put_acl(POD, ("acl:agentClass foaf:Agent", "Read"))
    answer = await server.public.get(POD)
    assert "contains" in answer.text
    assert answer.header("wac-allow") == 'user="read",public="read"'


# --- profile keys ------------------------------------------------------------------------------
#
# Which accounts' profiles state a Nostr key, as they are written, changed and removed (A-127).


KEY = NostrKey.of(3)
OTHER = NostrKey.of(4)
SPARQL = "application/sparql-update"
SAME_AS = "<http://www.w3.org/2002/07/owl#sameAs>"
_ROOT = ResourcePath("/alice/")


@dataclass(frozen=True)
class Index:
    """The index as another worker has it."""

    store: SqliteStore
    keys: ProfileKeys

    async def pods(self, key: NostrKey = KEY) -> Sequence[str]:
        """The pods whose owners' profiles state a key."""
        return [each.value.pod for each in await self.keys.accounts_of(key.public)]

    async def records(self) -> Sequence[str]:
        return [each.key for each in await PROFILE_KEYS.page(self.store, now_ms=0)]


@pytest.fixture
async def server(start: Start) -> Server:
    return await start(idp=True)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Index]:
    store = SqliteStore(settings.root)
    await store.open()
    clock, foreign = SystemClock(), ForeignDocuments(settings, SystemClock())
    documents = build_documents(settings, store=store, foreign=foreign)

    async def parse(content: bytes, content_type: str, base_iri: str) -> Graph:
        return (await documents.parse_at(content, content_type, base_iri=base_iri)).graph

    accounts = build_accounts(settings, store=store, clock=clock, randomness=SystemRandomness())
    yield Index(
        store,
        ProfileKeys(
            base_url=BASE, records=accounts.records, accounts=accounts.accounts, parse=parse
        ),
    )
    await store.close()


@pytest.fixture
async def index(server: Server, settings: Settings) -> AsyncIterator[Index]:
    async with opened(settings) as index:
        yield index


async def patch(client: Client, update: str, path: str = "/alice/") -> Answer:
    answer = await client.request(
        "PATCH", path, headers={"Content-Type": SPARQL}, body=update.encode()
    )
    assert answer.status < 300, answer.text
    return answer


def stating(key: NostrKey = KEY, name: str = "alice") -> str:
    return f"<{BASE}/{name}/#me> {SAME_AS} <{key.did}> ."


async def test_a_profile_is_found_as_soon_as_it_states_a_key(server: Server, index: Index) -> None:
    """By its owner's PATCH."""
    assert await index.pods() == []
    await patch(server.alice, f"INSERT DATA {{ {stating()} }}")
    assert await index.pods() == ["alice"]
    await patch(server.alice, f"INSERT DATA {{ {stating(OTHER)} }}")
    assert await index.pods() == await index.pods(OTHER) == ["alice"]


async def test_a_profile_is_not_found_by_a_key_that_it_states_no_more(
    server: Server, index: Index
) -> None:
    await patch(server.alice, f"INSERT DATA {{ {stating()} {stating(OTHER)} }}")
    await patch(server.alice, f"DELETE DATA {{ {stating()} }}")
    assert await index.pods() == []
    assert await index.pods(OTHER) == ["alice"]
    assert await index.records() == [f"{OTHER.public}/alice/"]


@pytest.mark.parametrize("path", ["/alice/", "/alice/.meta"])
async def test_a_profile_that_is_replaced_states_what_it_says_then(
    server: Server, index: Index, path: str
) -> None:
    issuer = f"<{BASE}/alice/#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{BASE}> ."
    for key in (KEY, OTHER):
        answer = await server.alice.put(path, stating(key) + issuer, "text/turtle")
        assert answer.status < 300, answer.text
    assert await index.pods() == []
    assert await index.pods(OTHER) == ["alice"]


async def test_a_description_that_is_deleted_states_nothing(server: Server, index: Index) -> None:
    await patch(server.alice, f"INSERT DATA {{ {stating()} }}")
    assert (await server.alice.delete("/alice/.meta")).status < 300
    assert await index.pods() == []
    assert await index.records() == []


async def test_two_profiles_may_state_one_key(server: Server, index: Index) -> None:
    await patch(server.alice, f"INSERT DATA {{ {stating()} }}")
    await patch(server.bob, f"INSERT DATA {{ {stating(name='bob')} }}", "/bob/")
    assert await index.pods() == ["alice", "bob"]


async def test_statements_of_a_profile_about_others_are_ignored(
    server: Server, index: Index
) -> None:
    await patch(server.bob, f"INSERT DATA {{ {stating()} }}", "/bob/")
    assert await index.pods() == []


async def test_other_documents_state_nothing(server: Server, index: Index) -> None:
    for path in ("/alice/card", "/alice/notes/", "/alice/notes/.meta"):
        assert (await server.alice.put(path, stating(), "text/turtle")).status < 300
    assert await index.pods() == []
    assert await index.records() == []


@pytest.mark.parametrize("path", ["/", "/alice", "/alice/a", "/alice/.acl", "/alice/notes/"])
async def test_a_write_of_another_document_has_nothing_to_look_up(index: Index, path: str) -> None:
    """So that it takes no longer than without these records."""
    records = ProfileKeyRecords(RecordStore(index.store, SystemClock(), SystemRandomness()))
    assert not records.applies_to(ResourcePath(path))
    assert records.applies_to(ResourcePath("/alice/"))


async def test_a_pod_takes_its_records_with_it(
    server: Server, index: Index, settings: Settings
) -> None:
    await patch(server.alice, f"INSERT DATA {{ {stating()} }}")
    accounts = build_accounts(
        settings, store=index.store, clock=SystemClock(), randomness=SystemRandomness()
    ).accounts
    [account] = await index.keys.accounts_of(KEY.public)
    await accounts.delete(account.value.account_id)
    assert await index.records() == []


async def test_a_record_that_should_not_be_there_finds_nobody(server: Server, index: Index) -> None:
    """What counts is what the profile says now."""
    await patch(server.alice, f"INSERT DATA {{ {stating()} }}")
    await index.store.commit(
        Write(
            version=Version("0" * 16),
            at_ms=1,
            puts=(Put(_ROOT, ResourceKind.STORAGE, "text/turtle", InlineBody(b""), creates=False),),
        )
    )
    assert await index.records() == [f"{KEY.public}/alice/"]
    assert await index.pods() == []


async def test_profiles_of_earlier_versions_are_read_once_before_the_start(
    server: Server, settings: Settings
) -> None:
    """They state keys of which no write has made a record."""
    await patch(server.alice, f"INSERT DATA {{ {stating()} }}")
    async with opened(settings) as index:
        for key in await index.records():
            records = RecordStore(index.store, SystemClock(), SystemRandomness())
            await records.commit([PROFILE_KEYS.drop(key)])
        assert await index.pods() == []
        await index_profiles(settings)
        assert await index.pods() == ["alice"]


async def test_a_pod_without_a_provider_has_its_keys_too(start: Start, settings: Settings) -> None:
    """Its owner may be given an account later."""
    server = await start()
    await patch(server.alice, f"INSERT DATA {{ {stating()} }}")
    async with opened(replace(settings, idp=True)) as index:
        assert await index.records() == [f"{KEY.public}/alice/"]
        assert await index.pods() == []
        accounts = build_accounts(
            settings, store=index.store, clock=SystemClock(), randomness=SystemRandomness()
        ).accounts
        await accounts.create_for_pod("alice", email=None, password="some password")
        assert await index.pods() == ["alice"]
