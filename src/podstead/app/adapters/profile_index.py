"""Completes the records of Nostr keys in profiles that an earlier version has written (A-127).

Every write of a profile updates them, but earlier versions of Podstead did not. Before a data root
of such a version is served, its profiles are read once (:mod:`podstead.app.adapters.root`).
"""

from __future__ import annotations

import logging

from podstead.app.adapters.bundled_contexts import build_documents
from podstead.app.adapters.engine import new_store
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.config import Settings
from podstead.core.errors import BadRequest
from podstead.idp.nostr.profile_key_records import ProfileKeyRecords
from podstead.resources.documents import Documents
from podstead.storage.pods import each_pod
from podstead.storage.record_store import RecordStore
from podstead.storage.records import AtVersion, PodRecord

logger = logging.getLogger("podstead.app")


async def index_profiles(settings: Settings) -> None:
    """Read all profiles of a data root that no other process writes to. Raises StorageError."""
    clock, foreign = SystemClock(), ForeignDocuments(settings, SystemClock())
    store = new_store(settings)
    await store.open()
    try:
        documents = build_documents(settings, store=store, foreign=foreign)
        index = ProfileIndex(RecordStore(store, clock, SystemRandomness()), documents)
        async for pod in each_pod(store):
            await index.read(pod)
    finally:
        await foreign.close()
        await store.close()


class ProfileIndex:
    """Creates the records for stored profiles."""

    def __init__(self, records: RecordStore, documents: Documents) -> None:
        self._records = records
        self._documents = documents
        self._keys = ProfileKeyRecords(records)

    async def read(self, pod: PodRecord) -> None:
        """Create the records for one pod's profile. An unreadable profile has none until it is
        written again. Raises StorageError."""
        metadata = (await self._records.store.read_metadata([pod.root]))[pod.root]
        if metadata is None or metadata.size_bytes == 0:
            return
        content = await self._documents.read_bytes(metadata)
        try:
            document = await self._documents.parse(content, metadata.content_type, path=pod.root)
        except BadRequest:
            logger.warning("The profile %s cannot be read for its keys", pod.root)
            return
        changes = await self._keys.of(pod.root, document.dataset)
        await self._records.try_commit(changes.records, [AtVersion(pod.root, metadata.version)])
