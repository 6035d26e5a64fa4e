"""Rewrites the documents that name the base URL when it changes.

Access rules and the profiles of pods, which name the identity provider of their owners, are always
rewritten, because they decide about access. Other documents are rewritten only on request; their
relative IRIs refer to the new URLs anyway.

Each write is complete in itself, and a rewritten document stays as it is, so an interrupted run can
be started again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.errors import BadRequest, Overloaded
from podstead.core.identifiers import ROOT, ResourcePath
from podstead.resources.context import WriteContext
from podstead.resources.documents import is_rdf
from podstead.resources.planning import derived_records
from podstead.resources.renaming import NameMapping, renamed_document
from podstead.resources.trees import tree_pages
from podstead.storage.document_reader import Superseded
from podstead.storage.records import (
    AtVersion,
    Change,
    ChangeType,
    Committed,
    Metadata,
    Precondition,
    Put,
    Record,
    ResourceKind,
    Write,
)

_RESOURCES_AT_ONCE: Final = 200


class MovedDocuments(msgspec.Struct):
    """The result of a run, or of a dry run. The ``unreadable`` documents kept their names."""

    read: int = 0
    access_rules: int = 0
    profiles: int = 0
    documents: int = 0
    unreadable: list[ResourcePath] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BaseMove:
    """Rewrites the documents of a data root for another base URL; both without a slash at the
    end."""

    context: WriteContext
    old: str
    new: str

    @property
    def names(self) -> NameMapping:
        old, new = self.old, self.new
        return NameMapping(beginnings=((f"{old}/", f"{new}/"),), exactly=((old, new),))

    async def rewrite(
        self, *, every_document: bool, dry_run: bool, progress: Callable[[int], None]
    ) -> MovedDocuments:
        """Rewrite everything. Nobody else may write meanwhile."""
        moved = MovedDocuments()
        pages = tree_pages(self.context.store, ROOT, page_resources=_RESOURCES_AT_ONCE)
        async for page in pages:
            await self._rewrite_page(page, moved, every_document=every_document, dry_run=dry_run)
            moved.read += len(page)
            progress(moved.read)
        return moved

    async def _rewrite_page(
        self,
        page: Sequence[Metadata],
        moved: MovedDocuments,
        *,
        every_document: bool,
        dry_run: bool,
    ) -> None:
        puts: list[Put] = []
        records: list[Record] = []
        preconditions: list[Precondition] = []
        for each in page:
            decisive = each.kind in (ResourceKind.ACL, ResourceKind.STORAGE)
            if not (decisive or every_document) or not is_rdf(each.content_type):
                continue
            put = await self._rewritten(each, moved, records, preconditions, dry_run=dry_run)
            if put is not None:
                puts.append(put)
                preconditions.append(AtVersion(each.path, each.version))
        if dry_run or not (puts or records):
            return
        write = Write(
            version=self.context.records.new_version(),
            at_ms=self.context.records.now_ms(),
            preconditions=tuple(dict.fromkeys(preconditions)),
            puts=tuple(puts),
            records=tuple(records),
            changes=tuple(Change(put.path, ChangeType.UPDATE) for put in puts),
        )
        if not isinstance(await self.context.store.commit(write), Committed):
            raise Overloaded("Something else is writing to the data root; stop it and run it again")

    async def _rewritten(
        self,
        each: Metadata,
        moved: MovedDocuments,
        records: list[Record],
        preconditions: list[Precondition],
        *,
        dry_run: bool,
    ) -> Put | None:
        """The put of a document whose names change; adds the records that follow from it."""
        try:
            content = await self.context.documents.read_bytes(each)
            renamed = await renamed_document(
                self.context.documents,
                content,
                each.content_type,
                self.names,
                from_url=self.old + each.path,
                path=each.path,
            )
        except BadRequest:
            moved.unreadable.append(each.path)
            return None
        except Superseded as error:
            raise Overloaded("Something else is writing to the data root; stop it") from error
        if not dry_run:
            # Relative names mean something else, too.
            derived = await derived_records(self.context.write_hooks, each.path, renamed.dataset)
            records += derived.records
            preconditions += derived.preconditions
        if renamed.content is content:
            return None
        if each.kind is ResourceKind.ACL:
            moved.access_rules += 1
        elif each.kind is ResourceKind.STORAGE:
            moved.profiles += 1
        else:
            moved.documents += 1
        if dry_run:
            return None
        body = await self.context.store.stage_body(renamed.content)
        return Put(
            each.path, each.kind, each.content_type, body, creates=False,
            created_ms=each.created_ms, modified_ms=each.modified_ms,
        )  # fmt: skip
