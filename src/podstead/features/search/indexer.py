"""Keeps the index up: one worker follows the change log, and builds the index where there is none.

Requests do nothing for this and wait for nothing. The worker looks twice a second whether anything
was stored, reads some rows of the log, and writes what they say with the new position in one
transaction; after a kill, another one goes on from there. What a row says is read from the store as
it is now, so repeating rows changes nothing, and a document is never indexed as it was before.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final

from podstead.core import background, errors, identifiers, media_types
from podstead.features.search import index as search_index
from podstead.features.search.analysis import index_text, languages_of, terms
from podstead.features.search.extractor import Extractor
from podstead.storage.protocol import Snapshot, Store
from podstead.storage.records import Metadata
from podstead.wac.effective import acl_paths
from podstead.web.pages.addresses import shown_name

logger = logging.getLogger("podstead.search")

LOOK_S: Final = 0.5
LOOKS_PER_CHECK: Final = 4
"""How often it looks whether somebody has the index built anew."""
TROUBLE_S: Final = 5.0
"""How long it pauses while the disk is full or a database cannot be used."""
ROWS: Final = 64
"""How many rows of the log, or resources, make one step."""
STEP_CHARACTERS: Final = 4_000_000
"""A step ends after so much text, at the latest."""


@dataclass(slots=True)
class IndexProgress:
    """How many resources were looked at since the index was begun."""

    resources: int = 0
    is_complete: bool = False


class Indexer:
    """Follows the change log in one worker."""

    def __init__(self, index: search_index.Index, store: Store, extract: Extractor) -> None:
        self._index = index
        self._store = store
        self._extract = extract
        self._mark: int | None = None
        self._follows = False
        """Whether it has looked before, since when no row can have left the log unread."""
        self._looks = 0
        self._following = background.Background(
            self._look, logger, "Unexpected error in the index of the search", every_s=LOOK_S
        )

    def start(self) -> None:
        """Begin to follow it."""
        self._following.start(at_once=False)

    async def stop(self) -> None:
        """End that."""
        await self._following.stop()

    async def _look(self) -> None:
        self._looks += 1
        try:
            mark = self._store.data_version()
            if self._looks % LOOKS_PER_CHECK == 0 and await self._index.position() is None:
                self._mark = None  # removed
            if (mark is None or mark != self._mark) and await self._index.hold():
                await self.catch_up()
                self._mark = mark
        except errors.DiskFull:
            await asyncio.sleep(TROUBLE_S)
        except errors.ServerTrouble as error:
            logger.warning(
                "The index of the search could not be changed; trying again: %s",
                errors.cause_text(error),
            )
            await asyncio.sleep(TROUBLE_S)

    async def catch_up(self) -> None:
        """Index everything that the change log and the store have. Raises StorageError."""
        async for _ in self.steps():
            pass

    async def steps(self, *, anew: bool = False) -> AsyncIterator[IndexProgress]:
        """The same, step by step; ``anew`` builds the index again. Raises StorageError."""
        position = None if anew else await self._index.position()
        if position is None or not (self._follows or await self._continues(position)):
            position = await self._now()
            await self._index.begin(position)
        self._follows = True
        progress = IndexProgress()
        while position.cursor is not None:
            position, count = await self._build(position)
            progress.resources += count
            yield progress
        while (followed := await self._follow(position)) is not None:
            position = followed
            yield progress
        progress.is_complete = True
        yield progress

    async def _now(self) -> search_index.Position:
        sequence = await self._store.newest_sequence()
        rows = await self._store.changes_after(sequence - 1, limit=1)
        return search_index.Position(sequence, rows[0].version if rows else "", "")

    async def _continues(self, position: search_index.Position) -> bool:
        """Whether the log has all rows since the position: the row itself leaves it first."""
        rows = await self._store.changes_after(position.sequence - 1, limit=1)
        if not rows:  # everything before has left the log, or it is another one
            return position.sequence == await self._store.newest_sequence()
        first = rows[0]
        if position.version == "":
            return position.sequence == 0
        return (first.sequence, first.version) == (position.sequence, position.version)

    async def _build(self, position: search_index.Position) -> tuple[search_index.Position, int]:
        """Index the resources after the cursor."""
        after = None if not position.cursor else identifiers.ResourcePath(position.cursor)
        found = await self._store.read_tree(identifiers.ROOT, after=after, limit=ROWS)
        step = search_index.IndexStep(position)
        resources = [each for each in found.values() if each is not None]
        last = await self._put(step, [each for each in resources if each.kind.is_member])
        if last is not None:  # ended early
            cursor: str | None = last
        else:
            cursor = resources[-1].path if len(resources) == ROWS else None
        step.position = search_index.Position(position.sequence, position.version, cursor)
        await self._index.apply(step)
        return step.position, len(resources)

    async def _follow(self, position: search_index.Position) -> search_index.Position | None:
        """Index what the next rows are about; ``None`` if there is nothing more."""
        rows = await self._store.changes_after(position.sequence, limit=ROWS)
        if not rows:
            return None
        authors = {each.change.path: each.change.agent for each in rows}
        paths = [path for path in authors if identifiers.auxiliary_kind(path) is None]
        subjects = [
            identifiers.subject_of(path)
            for path in authors
            if identifiers.auxiliary_kind(path) is identifiers.Auxiliary.ACL
        ]
        step = search_index.IndexStep(search_index.Position(rows[-1].sequence, rows[-1].version))
        found = await self._store.read_metadata(_with_acls((*paths, *subjects)))
        for subject in subjects:
            step.ruled[subject] = (
                search_index.rule_of_members(subject, found),
                search_index.rule_of(subject, found),
            )
        members = []
        for path in paths:
            metadata = found[path]
            if metadata is None:
                step.drops.add(path)
            elif metadata.kind.is_member:
                members.append(metadata)
        last = await self._put(step, members, authors)
        while last is not None:  # so much text that the rows take several steps
            done = search_index.IndexStep(position, step.languages, step.puts)
            await self._index.apply(done)
            step.puts, step.languages = {}, set()
            members = members[
                [each.path for each in members].index(identifiers.ResourcePath(last)) + 1 :
            ]
            last = await self._put(step, members, authors)
        await self._index.apply(step)
        return step.position

    async def _put(
        self,
        step: search_index.IndexStep,
        resources: Iterable[Metadata],
        authors: dict[identifiers.ResourcePath, str | None] | None = None,
    ) -> identifiers.ResourcePath | None:
        """Add resources to a step; the last one, if it ends before all of them."""
        wanted = list(resources)
        snapshot = await self._store.read_metadata(_with_acls(each.path for each in wanted))
        characters = 0
        for number, metadata in enumerate(wanted):
            document = await self._document(metadata, snapshot, (authors or {}).get(metadata.path))
            if document is None:
                continue  # changed meanwhile: a later row is about it
            step.puts[metadata.path] = document
            step.languages.update(languages_of(document.language))
            characters += len(document.terms)
            await asyncio.sleep(0)  # other requests first
            if characters > STEP_CHARACTERS and number + 1 < len(wanted):
                return metadata.path
        return None

    async def _document(
        self, metadata: Metadata, snapshot: Snapshot, author: str | None
    ) -> search_index.IndexedDocument | None:
        path = metadata.path
        content = None
        if not identifiers.is_container(path):
            body = await self._store.open_body(metadata)
            if body is None:
                return None
            content = await self._extract(metadata, body)
        return search_index.IndexedDocument(
            path=path,
            rule=search_index.rule_of(path, snapshot),
            version=metadata.version,
            media_type=search_index.FOLDER
            if identifiers.is_container(path)
            else media_types.essence(metadata.content_type),
            names=index_text(terms(shown_name(path))),
            terms="" if content is None else content.terms,
            text="" if content is None else content.text,
            language=None if content is None else content.language,
            size_bytes=metadata.size_bytes,
            modified_ms=metadata.modified_ms,
            author=author,
        )


def _with_acls(paths: Iterable[identifiers.ResourcePath]) -> set[identifiers.ResourcePath]:
    """The paths, with those of the ACLs that may decide about them."""
    found: set[identifiers.ResourcePath] = set()
    for path in paths:
        found.add(path)
        found.update(acl_paths(path))
    return found
