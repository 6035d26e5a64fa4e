"""Are the records of the Nostr keys in profiles there for all profiles? (A-127)

They are kept up by every write of a profile, but not by earlier versions of this program. So before
one of those data roots is served, its profiles are read once (:mod:`podstead.app.adapters.root`).
"""

from __future__ import annotations

import logging

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.documents import build_documents
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.core.errors import BadRequest
from podstead.idp.nostr.profile_keys import ProfileKeyRecords
from podstead.resources.documents import Documents
from podstead.storage.protocol import Store
from podstead.storage.records import AtVersion, PodRecord
from podstead.storage.sqlite import SqliteStore
from podstead.storage.writing import commit_entries

logger = logging.getLogger("podstead.app")


async def index_profiles(settings: Settings) -> None:
    """Read all profiles of a data root that nobody else writes to. Raises StorageError."""
    clock, foreign = SystemClock(), ForeignDocuments(settings, SystemClock())
    store = SqliteStore(settings.root)
    await store.open()
    try:
        documents = build_documents(settings, store=store, foreign=foreign)
        index = ProfileIndex(store, documents, clock=clock, randomness=SystemRandomness())
        for pod in await store.list_pods():
            await index.read(pod)
    finally:
        await foreign.close()
        await store.close()


class ProfileIndex:
    """Makes the records of profiles as they are stored."""

    def __init__(
        self, store: Store, documents: Documents, *, clock: Clock, randomness: Randomness
    ) -> None:
        self._store = store
        self._documents = documents
        self._records = ProfileKeyRecords(store=store, clock=clock)
        self._clock = clock
        self._randomness = randomness

    async def read(self, pod: PodRecord) -> None:
        """Make the records of one pod's profile. One that cannot be read has none, until it is
        written again. Raises StorageError."""
        metadata = (await self._store.read_metadata([pod.root]))[pod.root]
        if metadata is None or metadata.size_bytes == 0:
            return
        content = await self._documents.read_bytes(metadata)
        try:
            document = await self._documents.parse(content, metadata.content_type, path=pod.root)
        except BadRequest:
            logger.warning("The profile %s cannot be read for its keys", pod.root)
            return
        await commit_entries(
            self._store,
            await self._records.of(pod.root, document.dataset),
            preconditions=[AtVersion(pod.root, metadata.version)],
            now_ms=self._clock.now_ms(),
            randomness=self._randomness,
        )
