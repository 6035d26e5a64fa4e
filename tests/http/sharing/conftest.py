"""The service that shows and edits access rules, on the store of a running application."""

from __future__ import annotations

import pytest

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.documents import build_documents
from podstead.app.resources import Owners, build_resources
from podstead.config import Settings
from podstead.rdf.graph import Graph
from podstead.resources.sharing.access_requests import AccessRequests
from podstead.resources.sharing.people import PeopleDirectory
from podstead.resources.sharing.service import SharingService
from podstead.storage.capacity import StorageCapacity
from podstead.storage.disk_space import DiskSpace
from podstead.storage.sqlite import SqliteStore
from podstead.wac.effective import EffectiveAcls
from podstead.wac.gate import Gate
from podstead.wac.groups import GroupMemberships
from tests.support.application import BASE
from tests.support.clock import FakeClock
from tests.support.sharing import KnownEmails, SharingParts


@pytest.fixture
def parts(store: SqliteStore, settings: Settings) -> SharingParts:
    clock, randomness = SystemClock(), SystemRandomness()
    foreign = ForeignDocuments(settings, clock)
    documents = build_documents(settings, store=store, foreign=foreign)

    async def parse(content: bytes, content_type: str, base_iri: str) -> Graph:
        return (await documents.parse_at(content, content_type, base_iri=base_iri)).graph

    owners, base_url = Owners(store), settings.base_url
    gate = Gate(
        acls=EffectiveAcls(store, parse, base_url=base_url),
        groups=GroupMemberships(store, parse, foreign, clock, base_url=base_url),
        owners=owners,
    )
    space = DiskSpace(settings.root, min_free_bytes=0)
    resources = build_resources(
        settings,
        store=store,
        capacity=StorageCapacity(usage=store, space=space, quota_bytes=0),
        gate=gate,
        owners=owners,
        documents=documents,
        clock=clock,
        randomness=randomness,
    )
    return SharingParts(store, resources, documents, gate, owners)


@pytest.fixture
def sharing(parts: SharingParts) -> SharingService:
    return SharingService(
        resources=parts.resources,
        documents=parts.documents,
        store=parts.store,
        gate=parts.gate,
        owners=parts.owners,
        randomness=SystemRandomness(),
    )


@pytest.fixture
def requests(parts: SharingParts) -> AccessRequests:
    return AccessRequests(
        base_url=BASE,
        resources=parts.resources,
        documents=parts.documents,
        store=parts.store,
        counters=parts.store,
        gate=parts.gate,
        owners=parts.owners,
        clock=FakeClock(),
    )


@pytest.fixture
def emails() -> dict[str, str]:
    """The WebIDs of accounts by their e-mail addresses."""
    return {}


@pytest.fixture
def people(parts: SharingParts, emails: dict[str, str]) -> PeopleDirectory:
    return PeopleDirectory(
        base_url=BASE,
        resources=parts.resources,
        documents=parts.documents,
        pods=parts.store,
        emails=KnownEmails(emails),
        counters=parts.store,
        clock=FakeClock(),
    )
