"""The service that shows and edits access rules, on the store of a running application."""

from __future__ import annotations

import pytest

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.documents import build_documents
from podstead.app.resources import Owners, build_resources
from podstead.config import Settings
from podstead.rdf.graph import Graph
from podstead.resources.sharing.service import SharingService
from podstead.storage.capacity import StorageCapacity
from podstead.storage.disk_space import DiskSpace
from podstead.storage.sqlite import SqliteStore
from podstead.wac.effective import EffectiveAcls
from podstead.wac.gate import Gate
from podstead.wac.groups import GroupMemberships


@pytest.fixture
def sharing(store: SqliteStore, settings: Settings) -> SharingService:
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
    return SharingService(
        resources=resources,
        documents=documents,
        store=store,
        gate=gate,
        owners=owners,
        randomness=randomness,
    )
