"""Keeps the index over access rules (:mod:`podstead.wac.sharing.index`) as a write hook, and builds
it for rules that were written before it existed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from podstead.core import errors, identifiers
from podstead.rdf.graph import Dataset
from podstead.resources.documents import EMPTY_DATASET, Documents
from podstead.storage.document_reader import Superseded
from podstead.storage.record_store import Changes, RecordKind, RecordStore
from podstead.storage.records import AtVersion, Metadata, Precondition, Record
from podstead.wac.sharing.index import ACLS, index_changes, indexed_acl

ACLS_AT_ONCE: Final = 50
"""How many ACLs one step of building reads and records."""

REST: Final = 9
"""The length of the pause after a step, as a multiple of the step: requests come first, and a
server that was just upgraded may have many thousands of ACLs to read."""

Rest = Callable[[float], Awaitable[None]]
"""Waits for so many seconds."""

_RULES: Final = "rules"


class RulesIndex:
    """Derives the records of the index from an ACL that is written."""

    def __init__(self, records: RecordStore, *, base_url: str) -> None:
        self._records = records
        self._base_url = base_url

    def applies_to(self, path: identifiers.ResourcePath) -> bool:
        """Whether the document is the ACL of something in a storage."""
        return (
            identifiers.auxiliary_kind(path) is identifiers.Auxiliary.ACL
            and identifiers.storage_root(path) is not None
        )

    async def of(self, path: identifiers.ResourcePath, content: Dataset) -> Changes[None]:
        """The changes for an ACL with this content."""
        stored = await self._records.read(ACLS, path)
        before = None if stored is None else stored.value
        after = indexed_acl(
            content.default, subject_url=self._base_url + identifiers.subject_of(path)
        )
        unchanged: Precondition = ACLS.absent(path) if stored is None else stored.unchanged
        # What the building of the index may write in the meantime is derived from older rules.
        return Changes(None, index_changes(path, before, after), [unchanged])


class BuildingProgress(msgspec.Struct, frozen=True):
    """The ACLs up to the path ``after`` have been recorded, or all of them."""

    after: str
    is_complete: bool


BUILDING: Final = RecordKind("access-rules-building", BuildingProgress)


async def is_index_complete(records: RecordStore) -> bool:
    """Whether every ACL is in the index."""
    stored = await records.read(BUILDING, _RULES)
    return stored is not None and stored.value.is_complete


class RulesIndexBuilder:
    """Records the ACLs that were written before the index existed.

    Each step commits its progress with what it has recorded, so the building continues where it
    was interrupted. Rules that are written meanwhile record themselves.
    """

    def __init__(self, *, index: RulesIndex, documents: Documents, records: RecordStore) -> None:
        self._index = index
        self._documents = documents
        self._records = records

    async def run(self, rest: Rest = asyncio.sleep) -> None:
        """Build the index until it is complete, using a tenth of the time."""
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        while not await self.step():
            await rest(REST * (now_s() - began_s))
            began_s = now_s()

    async def step(self) -> bool:
        """Record some ACLs; whether the index is complete."""
        stored = await self._records.read(BUILDING, _RULES)
        if stored is not None and stored.value.is_complete:
            return True
        after = None if stored is None else identifiers.ResourcePath(stored.value.after)
        acls = await self._records.store.list_acls(after=after, limit=ACLS_AT_ONCE)
        is_complete = len(acls) < ACLS_AT_ONCE
        last = acls[-1].path if acls else after or ""
        records: list[Record] = [BUILDING.put(_RULES, BuildingProgress(last, is_complete))]
        preconditions: list[Precondition] = [
            BUILDING.absent(_RULES) if stored is None else stored.unchanged
        ]
        for acl in acls:
            if not self._index.applies_to(acl.path):
                continue
            await asyncio.sleep(0)  # requests do not wait for the entire step
            changes = await self._index.of(acl.path, await self._content(acl))
            records += changes.records
            preconditions += [AtVersion(acl.path, acl.version), *changes.preconditions]
        # If an ACL was written meanwhile, or another process has made this step, it is repeated.
        return await self._records.try_commit(records, preconditions) and is_complete

    async def _content(self, acl: Metadata) -> Dataset:
        """The triples of an ACL; none if it cannot be parsed, because it grants nothing then."""
        try:
            content = await self._documents.read_bytes(acl)
            document = await self._documents.parse(content, acl.content_type, path=acl.path)
        except (Superseded, errors.RequestRefused):
            return EMPTY_DATASET
        return document.dataset
