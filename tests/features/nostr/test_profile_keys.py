"""Nostr keys in profiles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from podstead.app.accounts import build_accounts
from podstead.app.adapters.bundled_contexts import build_documents
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.operator.administration import rename_pod
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.features.nostr.profile_index import index_profiles
from podstead.features.nostr.profile_keys import ProfileKeys
from podstead.features.nostr.records import PROFILE_KEYS, ProfileKeyRecords
from podstead.idp.security_events import security_events
from podstead.rdf.graph import Graph
from podstead.storage.layout import RootLayout
from podstead.storage.record_store import RecordStore
from podstead.storage.records import InlineBody, Put, ResourceKind, Version, Write
from podstead.storage.sqlite import SqliteFacts, SqliteStore
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer, Client
from tests.support.nostr import NostrKey

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


async def test_a_renamed_pod_keeps_its_records(
    server: Server, index: Index, settings: Settings
) -> None:
    """In the write that renames it; the owner is told as of any other change."""
    await patch(server.alice, f"INSERT DATA {{ {stating()} }}")
    SqliteFacts(RootLayout(settings.root).database).write_fact("base-url", BASE)
    await rename_pod(settings, "alice", "alicia", on_step=lambda *_: None)
    assert await index.records() == [f"{KEY.public}/alicia/"]
    assert await index.pods() == ["alicia"]
    [account] = await index.keys.accounts_of(KEY.public)
    records = RecordStore(index.store, SystemClock(), SystemRandomness())
    told = [each.what for each in await security_events(records, account.value.account_id)]
    assert sorted(told) == [
        "Nostr key named by the profile",
        "Nostr key named by the profile",
        "Nostr key no longer named by the profile",
    ]


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
