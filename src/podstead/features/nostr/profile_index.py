"""Completes the records of keys in profiles that were written without them (A-127).

Every write of a profile updates them, but earlier versions of Podstead did not. Before a data root
of such a version is served, its profiles are read once.
"""

import logging

from podstead.app.adapters.bundled_contexts import build_documents
from podstead.app.adapters.engine import new_store
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.config import Settings
from podstead.core.errors import BadRequest
from podstead.features.nostr.records import ProfileKeyRecords
from podstead.resources.documents import Documents
from podstead.storage.pods import each_pod
from podstead.storage.record_store import RecordStore
from podstead.storage.records import AtVersion, PodRecord

logger = logging.getLogger("podstead.app")


async def index_profiles(settings: Settings) -> None:
    """Read all profiles of a data root that no other process writes to. Raises StorageError."""
    clock = SystemClock()
    store, foreign = new_store(settings), ForeignDocuments(settings, clock)
    await store.open()
    try:
        documents = build_documents(settings, store=store, foreign=foreign)
        records = RecordStore(store, clock, SystemRandomness())
        async for pod in each_pod(store):
            await _index(pod, records, documents)
    finally:
        await foreign.close()
        await store.close()


async def _index(pod: PodRecord, records: RecordStore, documents: Documents) -> None:
    """Create the records for one pod's profile. An unreadable profile has none until it is written
    again."""
    metadata = (await records.store.read_metadata([pod.root]))[pod.root]
    if metadata is None or metadata.size_bytes == 0:
        return
    content = await documents.read_bytes(metadata)
    try:
        document = await documents.parse(content, metadata.content_type, path=pod.root)
    except BadRequest:
        logger.warning("The profile %s cannot be read for its keys", pod.root)
        return
    changes = await ProfileKeyRecords(records).of(pod.root, document.dataset)
    await records.try_commit(changes.records, [AtVersion(pod.root, metadata.version)])
