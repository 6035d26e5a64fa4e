"""Renames a pod in one write.

All resources move to the new root container with their versions of content, dates, access rules and
descriptions; names of the pod in RDF become the new ones, and so does the WebID. The old name stays
taken and refers to the new one (:mod:`podstead.storage.pods`), so that requests for the
old URLs are redirected. The preconditions of the write are the state that it was planned on, so
nobody sees a partial state, and no concurrent write is lost.

For the operator: no authorization takes place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core import identifiers
from podstead.core.errors import BadRequest, Conflict, NotFound, Overloaded
from podstead.rdf.graph import Dataset
from podstead.resources.codes import ResourceCodes
from podstead.resources.committer import quota_exceeded
from podstead.resources.context import WriteContext
from podstead.resources.documents import EMPTY_DATASET, is_rdf
from podstead.resources.importing.values import UNFINISHED_IMPORTS
from podstead.resources.planning import derived_records, has_hook
from podstead.resources.renaming import NameMapping, renamed_document
from podstead.resources.trees import tree_pages
from podstead.storage import records as storage_records
from podstead.storage.codes import StorageCodes
from podstead.storage.document_reader import Superseded
from podstead.storage.pods import new_name_of, pod_tombstone, put_tombstone, revocations
from podstead.storage.state import folded

MAX_RENAMED: Final = 50_000
"""How many resources one write moves, including access rules and descriptions."""
_ATTEMPTS: Final = 8

Progress = Callable[[int, int], None]
"""Called with the number of resources that were read, and that of all."""


class Renaming(msgspec.Struct, frozen=True):
    """A pod that has been renamed. ``rewritten`` is the number of documents in which names were
    rewritten, and the ``unreadable`` ones kept theirs."""

    before: storage_records.PodRecord
    after: storage_records.PodRecord
    resources: int
    rewritten: int
    unreadable: tuple[identifiers.ResourcePath, ...]


class _New(msgspec.Struct, frozen=True):
    """The content of a resource under its new name; ``body`` is ``None`` for the same bytes."""

    body: storage_records.Body | None
    dataset: Dataset
    readable: bool = True


@dataclass(frozen=True, slots=True)
class PodRenamer:
    """Renames pods."""

    context: WriteContext

    async def rename(
        self,
        pod: storage_records.PodRecord,
        name: str,
        *,
        joined: Callable[
            [storage_records.PodRecord],
            tuple[Sequence[storage_records.Record], Sequence[storage_records.Precondition]],
        ],
        progress: Progress = lambda _, __: None,
    ) -> Renaming:
        """Rename a pod. ``name`` is a valid one; ``joined`` adds records for the new pod to the
        write.

        Raises Conflict if the name is taken, or the pod cannot be renamed or keeps changing;
        QuotaExceeded.
        """
        if folded(name) == folded(pod.name):
            raise Conflict(ResourceCodes.SAME_NAME)
        known: dict[tuple[identifiers.ResourcePath, storage_records.Version], _New] = {}
        try:
            for _ in range(_ATTEMPTS):
                renamed = await self._attempt(pod, name, known, joined, progress)
                if renamed is not None:
                    return renamed
                current = await self.context.store.read_pod(pod.name)
                if current is None:
                    raise NotFound(StorageCodes.NO_SUCH_POD, name=pod.name)
                pod = current
        finally:
            staged = [
                each.body
                for each in known.values()
                if isinstance(each.body, storage_records.StagedBlob)
            ]
            # Has no effect on what was committed.
            await self.context.store.discard_all(staged)
        raise Conflict(ResourceCodes.POD_KEEPS_CHANGING)

    async def _attempt(
        self,
        pod: storage_records.PodRecord,
        name: str,
        known: dict[tuple[identifiers.ResourcePath, storage_records.Version], _New],
        joined: Callable[
            [storage_records.PodRecord],
            tuple[Sequence[storage_records.Record], Sequence[storage_records.Precondition]],
        ],
        progress: Progress,
    ) -> Renaming | None:
        """``None`` if something changed meanwhile."""
        after = self._renamed_pod(pod, name)
        preconditions, records = await self._names_free(pod, name)
        resources = await self._resources(pod)
        names = self._mapping(pod, after)
        for index, each in enumerate(resources):
            try:
                await self._read(each, pod, after, names, known)
            except Superseded:
                return None
            progress(index + 1, len(resources))
        puts = [
            _put(each, _new_path(each.path, pod, after), known.get((each.path, each.version)))
            for each in resources
        ]
        preconditions += _preconditions(resources)
        more = await self._hooked(pod, after, resources, known)
        further_records, further_preconditions = joined(after)
        tokens = await self.context.store.list_tokens(pod=pod.name)
        now_ms = self.context.records.now_ms()
        write = storage_records.Write(
            version=self.context.records.new_version(),
            at_ms=now_ms,
            preconditions=tuple(dict.fromkeys([*preconditions, *more[1], *further_preconditions])),
            puts=tuple(puts),
            deletes=tuple(each.path for each in reversed(resources)),
            records=(
                storage_records.DropPod(pod.name),
                after,
                storage_records.MoveRows(pod.root, after.root),
                put_tombstone(pod.name, new_name=name),
                *revocations(tokens, now_s=self.context.records.now_s()),
                *records,
                *more[0],
                *further_records,
            ),
            changes=(
                *(
                    storage_records.Change(put.path, storage_records.ChangeType.CREATE)
                    for put in puts
                ),
                *(
                    storage_records.Change(each.path, storage_records.ChangeType.DELETE)
                    for each in reversed(resources)
                ),
            ),
            default_quota_bytes=self.context.quota_bytes(),
        )
        ended = await self.context.store.commit(write)
        if isinstance(ended, storage_records.OverQuota):
            raise quota_exceeded(ended)
        if not isinstance(ended, storage_records.Committed):
            return None
        current = {
            key: known[key] for each in resources if (key := (each.path, each.version)) in known
        }
        return Renaming(
            before=pod,
            after=after,
            resources=len(resources),
            rewritten=sum(each.body is not None for each in current.values()),
            unreadable=tuple(path for (path, _), each in current.items() if not each.readable),
        )

    def _renamed_pod(self, pod: storage_records.PodRecord, name: str) -> storage_records.PodRecord:
        root = identifiers.ResourcePath(f"/{name}/")
        old_url, new_url = (
            self.context.documents.url_of(pod.root),
            self.context.documents.url_of(root),
        )
        own = pod.owner.startswith(old_url)
        owner = new_url + pod.owner[len(old_url) :] if own else pod.owner
        return msgspec.structs.replace(pod, name=name, root=root, owner=owner)

    def _mapping(
        self, pod: storage_records.PodRecord, after: storage_records.PodRecord
    ) -> NameMapping:
        urls = self.context.documents.url_of(pod.root), self.context.documents.url_of(after.root)
        return NameMapping(beginnings=(urls,))

    async def _names_free(
        self, pod: storage_records.PodRecord, name: str
    ) -> tuple[list[storage_records.Precondition], list[storage_records.Record]]:
        """Raises Conflict."""
        store, now_ms = self.context.store, self.context.records.now_ms()
        if await store.read_pod(name) is not None:
            raise Conflict(ResourceCodes.POD_NAME_IN_USE)
        root = identifiers.ResourcePath(f"/{name}/")
        preconditions: list[storage_records.Precondition] = [
            storage_records.NoPod(name),
            storage_records.Absent(root),
            storage_records.Absent(identifiers.slash_variant(root)),
            UNFINISHED_IMPORTS.absent(pod.root),
        ]
        former = await store.read_entry(pod_tombstone(name), now_ms=now_ms)
        records: list[storage_records.Record] = []
        if former is None:
            preconditions.append(storage_records.NoEntry(pod_tombstone(name)))
        elif new_name_of(former) == pod.name:  # the pod had this name itself
            preconditions.append(storage_records.EntryAtVersion(former.entry, former.version))
            records.append(storage_records.DropEntry(former.entry))
        else:
            raise Conflict(ResourceCodes.NAME_OF_FORMER_POD, name=name, command_name=name)
        if await self.context.records.read(UNFINISHED_IMPORTS, pod.root) is not None:
            raise Conflict(ResourceCodes.IMPORT_UNFINISHED)
        return preconditions, records

    async def _resources(self, pod: storage_records.PodRecord) -> list[storage_records.Metadata]:
        """Raises Conflict if there are too many for one write."""
        found = await self.context.store.read_tree(pod.root, limit=MAX_RENAMED + 1)
        if len(found) > MAX_RENAMED:
            raise Conflict(ResourceCodes.TOO_LARGE_TO_RENAME, number=MAX_RENAMED)
        return sorted((each for each in found.values() if each), key=lambda each: each.path)

    async def _read(
        self,
        each: storage_records.Metadata,
        pod: storage_records.PodRecord,
        after: storage_records.PodRecord,
        names: NameMapping,
        known: dict[tuple[identifiers.ResourcePath, storage_records.Version], _New],
    ) -> None:
        """Read what must be rewritten. Raises Superseded."""
        key = each.path, each.version
        if key in known or not each.size_bytes or not is_rdf(each.content_type):
            return
        path = _new_path(each.path, pod, after)
        content = await self.context.documents.read_bytes(each)
        try:
            renamed = await renamed_document(
                self.context.documents,
                content,
                each.content_type,
                names,
                from_url=self.context.documents.url_of(each.path),
                path=path,
            )
        except BadRequest:  # such as a JSON-LD context that is not available
            stored = (
                storage_records.InlineBody(content)
                if each.kind is storage_records.ResourceKind.ACL
                else None
            )
            known[key] = _New(stored, EMPTY_DATASET, readable=False)
            return
        body: storage_records.Body | None = None
        if renamed.content is not content or each.kind is storage_records.ResourceKind.ACL:
            body = await self.context.store.stage_body(renamed.content)
        dataset = renamed.dataset if has_hook(self.context.write_hooks, path) else EMPTY_DATASET
        known[key] = _New(body, dataset)

    async def _hooked(
        self,
        pod: storage_records.PodRecord,
        after: storage_records.PodRecord,
        resources: Sequence[storage_records.Metadata],
        known: Mapping[tuple[identifiers.ResourcePath, storage_records.Version], _New],
    ) -> tuple[list[storage_records.Record], list[storage_records.Precondition]]:
        """What hooks add: for deletions at the old paths and puts at the new ones, and for the
        renaming as a whole."""
        records: list[storage_records.Record] = []
        preconditions: list[storage_records.Precondition] = []
        for each in resources:
            new = known.get((each.path, each.version))
            written = {
                each.path: EMPTY_DATASET,
                _new_path(each.path, pod, after): EMPTY_DATASET if new is None else new.dataset,
            }
            for path, dataset in written.items():
                derived = await derived_records(self.context.write_hooks, path, dataset)
                records += derived.records
                preconditions += derived.preconditions
        for hook in self.context.container_hooks:
            changes = await hook.of_renaming(pod, after, lambda path: _new_path(path, pod, after))
            records += changes.records
            preconditions += changes.preconditions
        return records, preconditions


def _new_path(
    path: identifiers.ResourcePath, pod: storage_records.PodRecord, after: storage_records.PodRecord
) -> identifiers.ResourcePath:
    return identifiers.ResourcePath(after.root + path[len(pod.root) :])


def _put(
    each: storage_records.Metadata, path: identifiers.ResourcePath, new: _New | None
) -> storage_records.Put:
    body: storage_records.Body = storage_records.StoredBody(
        each.path, each.version, each.size_bytes
    )
    if new is not None and new.body is not None:
        body = new.body
    elif each.kind is storage_records.ResourceKind.ACL:  # without content
        body = storage_records.InlineBody(b"")
    return storage_records.Put(
        path,
        each.kind,
        each.content_type,
        body,
        creates=True,
        created_ms=each.created_ms,
        modified_ms=each.modified_ms,
    )


def _preconditions(
    resources: Sequence[storage_records.Metadata],
) -> list[storage_records.Precondition]:
    """The preconditions that everything is as it was read, and nothing has been added."""
    found: list[storage_records.Precondition] = []
    there = {each.path for each in resources}
    for each in resources:
        found.append(storage_records.AtVersion(each.path, each.version))
        if each.members_version is not None:
            found.append(storage_records.MembersAtVersion(each.path, each.members_version))
        if each.kind is storage_records.ResourceKind.DOCUMENT or each.kind.is_container:
            auxiliaries = identifiers.acl_of(each.path), identifiers.description_of(each.path)
            found += [storage_records.Absent(path) for path in auxiliaries if path not in there]
    return found


# Rewrites the documents that name the base URL when it changes.
#
# Access rules and the profiles of pods, which name the identity provider of their owners, are
# always rewritten, because they decide about access. Other documents are rewritten only on request;
# their relative IRIs refer to the new URLs anyway.
#
# Each write is complete in itself, and a rewritten document stays as it is, so an interrupted run
# can be started again.

_RESOURCES_AT_ONCE: Final = 200


class MovedDocuments(msgspec.Struct):
    """The result of a run, or of a dry run. The ``unreadable`` documents kept their names."""

    read: int = 0
    access_rules: int = 0
    profiles: int = 0
    documents: int = 0
    unreadable: list[identifiers.ResourcePath] = msgspec.field(default_factory=list)


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
        pages = tree_pages(self.context.store, identifiers.ROOT, page_resources=_RESOURCES_AT_ONCE)
        async for page in pages:
            await self._rewrite_page(page, moved, every_document=every_document, dry_run=dry_run)
            moved.read += len(page)
            progress(moved.read)
        return moved

    async def _rewrite_page(
        self,
        page: Sequence[storage_records.Metadata],
        moved: MovedDocuments,
        *,
        every_document: bool,
        dry_run: bool,
    ) -> None:
        puts: list[storage_records.Put] = []
        records: list[storage_records.Record] = []
        preconditions: list[storage_records.Precondition] = []
        for each in page:
            decisive = each.kind in (
                storage_records.ResourceKind.ACL,
                storage_records.ResourceKind.STORAGE,
            )
            if not (decisive or every_document) or not is_rdf(each.content_type):
                continue
            put = await self._rewritten(each, moved, records, preconditions, dry_run=dry_run)
            if put is not None:
                puts.append(put)
                preconditions.append(storage_records.AtVersion(each.path, each.version))
        if dry_run or not (puts or records):
            return
        write = storage_records.Write(
            version=self.context.records.new_version(),
            at_ms=self.context.records.now_ms(),
            preconditions=tuple(dict.fromkeys(preconditions)),
            puts=tuple(puts),
            records=tuple(records),
            changes=tuple(
                storage_records.Change(put.path, storage_records.ChangeType.UPDATE) for put in puts
            ),
        )
        if not isinstance(await self.context.store.commit(write), storage_records.Committed):
            raise Overloaded("Something else is writing to the data root; stop it and run it again")

    async def _rewritten(
        self,
        each: storage_records.Metadata,
        moved: MovedDocuments,
        records: list[storage_records.Record],
        preconditions: list[storage_records.Precondition],
        *,
        dry_run: bool,
    ) -> storage_records.Put | None:
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
        if each.kind is storage_records.ResourceKind.ACL:
            moved.access_rules += 1
        elif each.kind is storage_records.ResourceKind.STORAGE:
            moved.profiles += 1
        else:
            moved.documents += 1
        if dry_run:
            return None
        body = await self.context.store.stage_body(renamed.content)
        return storage_records.Put(
            each.path, each.kind, each.content_type, body, creates=False,
            created_ms=each.created_ms, modified_ms=each.modified_ms,
        )  # fmt: skip
