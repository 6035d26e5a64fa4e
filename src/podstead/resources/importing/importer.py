"""Stores the resources of an import, many in one write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from podstead.core import errors, identifiers
from podstead.core.identifiers import ResourcePath, acl_of, ancestors, slash_variant, subject_of
from podstead.core.media_types import TURTLE, essence, parse_media_type
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import Dataset
from podstead.rdf.listing import server_managed
from podstead.resources.codes import ResourceCodes
from podstead.resources.committer import quota_exceeded
from podstead.resources.context import WriteContext
from podstead.resources.documents import EMPTY_DATASET, is_rdf
from podstead.resources.importing import values
from podstead.resources.planning import DEFAULT_DESCRIPTION_TYPE, derived_records
from podstead.resources.renaming import renamed_document
from podstead.resources.target_state import check_new_path_length
from podstead.storage import records as storage_records
from podstead.storage.pods import pod_tombstone
from podstead.storage.quota import fixed_charge
from podstead.wac.acl import check_acl_size, check_storable, read_acl
from podstead.wac.codes import WacCodes
from podstead.wac.effective import MAX_DEPTH
from podstead.wac.modes import Mode

RESOURCES_AT_ONCE: Final = 200
BYTES_AT_ONCE: Final = 4 * 1024 * 1024
_ATTEMPTS: Final = 8
_NO_VERSION: Final = storage_records.Version("")

_State = dict[ResourcePath, storage_records.Metadata | None]


@dataclass(slots=True)
class ImportWriter:
    """Collects prepared resources and stores them."""

    context: WriteContext
    target: values.ImportTarget
    report: values.ImportReport
    progress: values.Progress
    _waiting: list[Prepared] = field(default_factory=list)
    _waiting_bytes: int = 0
    # In a dry run, the resources that would have been stored.
    _imagined: dict[ResourcePath, storage_records.ResourceKind] = field(default_factory=dict)

    # --- beginning --------------------------------------------------------------------------

    async def begin(self) -> None:
        """Create the pod, or find it. Raises Conflict and QuotaExceeded."""
        target, store = self.target, self.context.store
        pod = await store.read_pod(target.root.strip("/"))
        record = await self.context.records.read(values.UNFINISHED_IMPORTS, target.root)
        if target.new_pod is None:
            if pod is None or record is not None:
                raise errors.Conflict(
                    f"There is no pod at {target.root}, or its import is unfinished"
                )
            return
        if pod is not None and (record is None or pod.root != target.root):
            raise errors.Conflict(f"There is a pod with the name '{pod.name}' already")
        if record is not None and record.value.source_id != target.source_id:
            raise errors.Conflict(
                f"An import from another source into {target.root} is unfinished. Run that one "
                f"again, or delete the pod"
            )
        if pod is None:
            await self._create(target.new_pod)

    async def _create(self, pod: storage_records.PodRecord) -> None:
        root, now_ms = self.target.root, self.context.records.now_ms()
        former = pod_tombstone(pod.name)
        if await self.context.store.read_entry(former, now_ms=now_ms) is not None:
            raise errors.Conflict(
                f"The name '{pod.name}' belonged to a deleted pod. Release it first with "
                f"'podstead account free-name {pod.name}', or choose another name"
            )
        self.report.containers += 1
        self.report.charged_bytes += fixed_charge(root) + fixed_charge(acl_of(root))
        if self.target.dry_run:
            self._imagined[root] = storage_records.ResourceKind.STORAGE
            self._imagined[acl_of(root)] = storage_records.ResourceKind.ACL
            return
        empty = Prepared(
            root, storage_records.ResourceKind.STORAGE, DEFAULT_DESCRIPTION_TYPE,
            storage_records.InlineBody(b""), 0, created_ms=pod.created_ms,
        )  # fmt: skip
        puts = tuple(put_of(each, creates=True) for each in (empty, closed_rules(acl_of(root))))
        begun = values.UnfinishedImport(self.target.source_id, now_ms)
        write = storage_records.Write(
            version=self.context.records.new_version(),
            at_ms=now_ms,
            preconditions=(
                storage_records.NoPod(pod.name),
                storage_records.NoEntry(former),
                values.UNFINISHED_IMPORTS.absent(root),
                storage_records.Absent(root),
                storage_records.Absent(slash_variant(root)),
            ),
            puts=puts,
            records=(pod, values.UNFINISHED_IMPORTS.put(root, begun, owner=root)),
            changes=tuple(_created(put.path) for put in puts),
            default_quota_bytes=self.context.quota_bytes(),
        )
        if not await self._committed(write):
            raise errors.Conflict(f"There is a pod with the name '{pod.name}' already")

    # --- documents --------------------------------------------------------------------------

    async def add(self, prepared: Prepared) -> bool:
        """Store it together with others; False if it is not stored. Raises as :meth:`flush`
        does."""
        if prepared.path == self.target.root and self.target.new_pod is None:
            self.report.already_there += 1
            return False
        self._waiting.append(prepared)
        self._waiting_bytes += prepared.size_bytes
        if len(self._waiting) >= RESOURCES_AT_ONCE or self._waiting_bytes >= BYTES_AT_ONCE:
            await self.flush()
        return True

    async def flush(self) -> None:
        """Store the waiting resources. Raises QuotaExceeded."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        for _ in range(_ATTEMPTS):
            if await self._store_documents(waiting):
                self.progress(self.report)
                return
        raise errors.Overloaded("The pod is changing too fast; run the import again")

    async def _store_documents(self, waiting: Sequence[Prepared]) -> bool:
        """False if something changed meanwhile."""
        state = await self._state_around(waiting)
        plan = ImportPlan(self.target, state)
        for each in waiting:
            plan.add(each)
        if not self.target.dry_run:
            write = await self._write(plan.puts, plan.stored, plan.preconditions)
            if write.puts and not await self._committed(write):
                return False
            for unused in plan.unused:
                await self.context.store.discard(unused.body)
        self._count(plan)
        return True

    async def _state_around(self, waiting: Sequence[Prepared]) -> _State:
        paths: dict[ResourcePath, None] = {}
        for each in waiting:
            subject = subject_of(each.path)
            for place in (each.path, subject, *ancestors(subject)[:-1]):
                paths[place] = None
                paths[slash_variant(place)] = None
        state = dict(await self.context.store.read_metadata(paths))
        for path, kind in self._imagined.items():
            if path in paths:
                state[path] = _imagined(path, kind)
        return state

    def _count(self, plan: ImportPlan) -> None:
        report = self.report
        for put in plan.puts:
            if put.creates:
                report.charged_bytes += fixed_charge(put.path)
            if put.kind.is_container:
                report.containers += put.creates
            elif put.kind is storage_records.ResourceKind.DOCUMENT:
                report.documents += 1
            else:
                report.descriptions += 1
            if self.target.dry_run:
                self._imagined[put.path] = put.kind
        size_bytes = sum(each.size_bytes for each in plan.stored)
        report.size_bytes += size_bytes
        report.charged_bytes += size_bytes
        report.already_there += plan.already_there
        report.not_taken += plan.refused
        if self.target.new_pod is not None and self.target.dry_run:
            self._check_quota(self.target.new_pod)

    def _check_quota(self, pod: storage_records.PodRecord) -> None:
        limit_bytes = self.context.quota_bytes() if pod.quota_bytes is None else pod.quota_bytes
        needed_bytes = self.report.charged_bytes
        if 0 < limit_bytes < needed_bytes:
            raise errors.QuotaExceeded(
                used_bytes=0, limit_bytes=limit_bytes, needed_bytes=needed_bytes
            )

    # --- access rules -----------------------------------------------------------------------

    async def add_rules(self, rules: Sequence[Prepared], *, is_last: bool = False) -> None:
        """Store ACLs in one write, which may be the last one. Raises QuotaExceeded, and Conflict if
        a last precondition does not hold."""
        for _ in range(_ATTEMPTS):
            if await self._store_rules(rules, is_last=is_last):
                self.progress(self.report)
                return
        raise errors.Overloaded("The pod is changing too fast; run the import again")

    async def _store_rules(self, rules: Sequence[Prepared], *, is_last: bool) -> bool:
        target, report = self.target, self.report
        state = await self._state_around(rules)
        puts: list[storage_records.Put] = []
        stored: list[Prepared] = []
        preconditions: list[storage_records.Precondition] = []
        refused: list[values.NotTaken] = []
        already_there = 0
        for each in rules:
            existing, subject = state[each.path], state[subject_of(each.path)]
            if subject is None:
                refused.append(values.NotTaken(each.path, "What it protects does not exist"))
            elif existing is not None and each.path != acl_of(target.root):
                already_there += 1
            else:
                if existing is not None:
                    preconditions.append(storage_records.AtVersion(each.path, existing.version))
                preconditions.append(storage_records.AtVersion(subject.path, subject.version))
                puts.append(put_of(each, creates=existing is None))
                stored.append(each)
        if not target.dry_run:
            write = await self._write(puts, stored, preconditions, is_last=is_last)
            if not await self._committed(write):
                return False
        report.rules += len(stored)
        report.already_there += already_there
        report.not_taken += refused
        size_bytes = sum(each.size_bytes for each in stored)
        report.size_bytes += size_bytes
        report.charged_bytes += size_bytes
        report.charged_bytes += sum(fixed_charge(put.path) for put in puts if put.creates)
        return True

    # --- writing ----------------------------------------------------------------------------

    async def _write(
        self,
        puts: Sequence[storage_records.Put],
        stored: Sequence[Prepared],
        preconditions: Sequence[storage_records.Precondition],
        *,
        is_last: bool = False,
    ) -> storage_records.Write:
        records: list[storage_records.Record] = []
        needed = list(preconditions)
        for each in stored:
            derived = await derived_records(self.context.write_hooks, each.path, each.dataset)
            records += derived.records
            needed += derived.preconditions
        if is_last:
            records += [values.UNFINISHED_IMPORTS.drop(self.target.root), *self.target.last_records]
            needed += self.target.last_preconditions
        return storage_records.Write(
            version=self.context.records.new_version(),
            at_ms=self.context.records.now_ms(),
            preconditions=tuple(dict.fromkeys(needed)),
            puts=tuple(puts),
            records=tuple(records),
            changes=tuple(
                _created(put.path)
                if put.creates
                else storage_records.Change(put.path, storage_records.ChangeType.UPDATE)
                for put in puts
            ),
            default_quota_bytes=self.context.quota_bytes(),
        )

    async def _committed(self, write: storage_records.Write) -> bool:
        """Raises QuotaExceeded, and Conflict for a last precondition."""
        ended = await self.context.store.commit(write)
        if isinstance(ended, storage_records.OverQuota):
            raise quota_exceeded(ended)
        if isinstance(ended, storage_records.Committed):
            return True
        if ended.precondition in self.target.last_preconditions:
            raise errors.Conflict("Another name of the account is taken")
        return False


def _created(path: ResourcePath) -> storage_records.Change:
    return storage_records.Change(path, storage_records.ChangeType.CREATE)


def _imagined(path: ResourcePath, kind: storage_records.ResourceKind) -> storage_records.Metadata:
    """The metadata that the resource would have."""
    return storage_records.Metadata(path, kind, _NO_VERSION, TURTLE, 0, 0, 0)


# Imports a tree of resources from elsewhere into a pod.
#
# For the operator: no authorization takes place; everything else is as for a request. Content is
# validated for its path, the records that follow from it are written with it, quota and disk space
# apply, and each resource keeps its media type and its dates. Resources that cannot be imported are
# reported, never skipped silently.
#
# A new pod becomes visible as a whole when everything is stored: until then, its root has access
# rules that grant nothing, and no others exist. The last write stores all access rules, those of
# the root last if there are very many. Rules that cannot be read are replaced by rules that grant
# nothing, because otherwise the resources would inherit others.
#
# An interrupted import continues when it is run again: each write is complete in itself, a record
# names the source while the import is unfinished, and stored resources are skipped.

RULES_AT_ONCE: Final = 1000
"""How many ACLs one write stores. A new pod with no more becomes visible in one write."""


@dataclass(frozen=True, slots=True)
class TreeImporter:
    """Imports trees of resources."""

    context: WriteContext
    max_body_bytes: int

    async def run(
        self,
        target: values.ImportTarget,
        resources: AsyncIterator[values.ImportedResource],
        *,
        progress: values.Progress = lambda _: None,
    ) -> values.ImportReport:
        """Import resources, which come in any order, without repetitions. Containers that are
        missing are created empty.

        Raises Conflict if the pod exists and is not the unfinished import of this source,
        QuotaExceeded, Overloaded, StorageError, and what reading raises. Resources imported
        until then remain; a new pod stays closed until the import is run again and finishes.
        """
        report = values.ImportReport()
        preparation = Preparation(self.context, target, report, self.max_body_bytes)
        writer = ImportWriter(self.context, target, report, progress)
        await writer.begin()
        described: list[values.ImportedResource] = []
        rules: list[values.ImportedResource] = []
        async for resource in resources:
            match _part(resource.path):
                case identifiers.Auxiliary.ACL:
                    rules.append(resource)
                case identifiers.Auxiliary.DESCRIPTION:
                    described.append(resource)
                case None:
                    await self._take(resource, preparation, writer)
        await writer.flush()
        for resource in described:
            await self._take(resource, preparation, writer)
        await writer.flush()
        await self._finish(rules, preparation, writer)
        return report

    async def _take(
        self, resource: values.ImportedResource, preparation: Preparation, writer: ImportWriter
    ) -> None:
        prepared = await preparation.prepare(resource)
        if prepared is not None and not await writer.add(prepared):
            await preparation.discard(prepared)

    async def _finish(
        self,
        rules: Sequence[values.ImportedResource],
        preparation: Preparation,
        writer: ImportWriter,
    ) -> None:
        target = writer.target
        if target.new_pod is None:
            for each in rules:
                reason = "Access rules are not imported into a pod that exists"
                writer.report.not_taken.append(values.NotTaken(each.path, reason))
            return
        of_root = identifiers.acl_of(target.root)
        last = next((each for each in rules if each.path == of_root), None)
        inner = [each for each in rules if each.path != of_root]
        for start in range(0, max(0, len(inner) - RULES_AT_ONCE), RULES_AT_ONCE):
            some = inner[start : start + RULES_AT_ONCE]
            await writer.add_rules([await preparation.prepare_rules(each) for each in some])
        some = inner[-(len(inner) % RULES_AT_ONCE or RULES_AT_ONCE) :] if inner else []
        prepared = [await preparation.prepare_rules(each) for each in some]
        root_acl = None if last is None else await preparation.prepare_rules(last)
        if root_acl is None:
            content = storage_records.InlineBody(target.root_acl)
            parsed = await self.context.documents.parse(target.root_acl, TURTLE, path=of_root)
            size_bytes, dataset = len(target.root_acl), parsed.dataset
            root_acl = Prepared(
                of_root, storage_records.ResourceKind.ACL, TURTLE, content, size_bytes, dataset
            )
        await writer.add_rules([*prepared, root_acl], is_last=True)


def _part(path: identifiers.ResourcePath) -> identifiers.Auxiliary | None:
    """The stage at which a resource is stored: first documents and containers with their
    descriptions, then the descriptions of documents, then ACLs."""
    kind = identifiers.auxiliary_kind(path)
    if kind is identifiers.Auxiliary.DESCRIPTION and identifiers.is_container(
        identifiers.subject_of(path)
    ):
        return None
    return kind


# Prepares resources from elsewhere for storing: validated for their path, with their new names.
#
# :class:`ImportPlan` then plans the puts of some of them on one state of their surroundings,
# without I/O.

NO_RULES = storage_records.InlineBody(b"")
"""An ACL that grants nothing to anybody."""


class Prepared(msgspec.Struct, frozen=True):
    """A resource that is ready to be stored. ``dataset`` has its triples if it is RDF."""

    path: identifiers.ResourcePath
    kind: storage_records.ResourceKind
    content_type: str
    body: storage_records.Body
    size_bytes: int
    dataset: Dataset = EMPTY_DATASET
    created_ms: int | None = None
    modified_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Preparation:
    """Prepares the resources of one import, and notes in its report what cannot be imported."""

    context: WriteContext
    target: values.ImportTarget
    report: values.ImportReport
    max_body_bytes: int

    async def prepare(self, resource: values.ImportedResource) -> Prepared | None:
        """A document, container or description; ``None`` if it cannot be imported. Raises what the
        source raises."""
        path = resource.path
        try:
            self._check_path(path)
            return await self._prepared(resource)
        except errors.RequestRefused as refused:
            self.report.not_taken.append(values.NotTaken(path, str(refused)))
            return None

    async def prepare_rules(self, resource: values.ImportedResource) -> Prepared:
        """An ACL; one that grants nothing if it cannot be read. Raises as :meth:`prepare` does."""
        path = resource.path
        try:
            content, dataset = await self._rdf(resource, path, must_be_read=True)
            check_acl_size(len(content))
            subject = identifiers.subject_of(path)
            subject_url = self.context.documents.url_of(subject)
            is_root = subject == self.target.root
            check_storable(dataset.default, subject_url=subject_url, of_storage_root=is_root)
        except errors.RequestRefused as refused:
            self.report.closed.append(values.NotTaken(path, str(refused)))
            return closed_rules(path)
        rules = read_acl(dataset.default, subject_url=subject_url).authorizations
        if any(Mode.CONTROL in rule.modes and rule.public for rule in rules):
            self.report.controlled_by_all.append(subject)
        body = (
            storage_records.InlineBody(content)
            if self.target.dry_run
            else await self._staged(content)
        )
        return Prepared(
            path, storage_records.ResourceKind.ACL, resource.content_type, body, len(content),
            dataset, resource.created_ms, resource.modified_ms,
        )  # fmt: skip

    async def discard(self, prepared: Prepared) -> None:
        """Remove the staged body of a resource that is not stored."""
        if not isinstance(prepared.body, storage_records.InlineBody):
            await self.context.store.discard(prepared.body)

    def _check_path(self, path: identifiers.ResourcePath) -> None:
        """Raises Conflict, TargetTooLong."""
        if not path.startswith(self.target.root):
            raise errors.Conflict("It is outside of the pod")
        subject = identifiers.subject_of(path)
        if subject != path and identifiers.auxiliary_kind(subject) is not None:
            raise errors.Conflict(ResourceCodes.AUXILIARY_OF_AUXILIARY)
        if (
            identifiers.is_container(path)
            and identifiers.auxiliary_kind(identifiers.slash_variant(path)) is not None
        ):
            raise errors.Conflict(ResourceCodes.CONTAINER_NAMED_AS_AUXILIARY)
        check_new_path_length(subject)
        if subject.count("/") > MAX_DEPTH:
            raise errors.TargetTooLong(WacCodes.TOO_DEEP, number=MAX_DEPTH)

    async def _prepared(self, resource: values.ImportedResource) -> Prepared:
        path, content_type = resource.path, resource.content_type
        dates = resource.created_ms, resource.modified_ms
        parse_media_type(content_type)
        if identifiers.is_container(identifiers.subject_of(path)):
            return await self._container(resource)
        describes = identifiers.auxiliary_kind(path) is identifiers.Auxiliary.DESCRIPTION
        kind = (
            storage_records.ResourceKind.DESCRIPTION
            if describes
            else storage_records.ResourceKind.DOCUMENT
        )
        if describes or is_rdf(content_type):
            content, dataset = await self._rdf(resource, path, must_be_read=False)
            body, size_bytes = await self._staged(content), len(content)
        else:
            (body, size_bytes), dataset = await self._streamed(resource), EMPTY_DATASET
        return Prepared(path, kind, content_type, body, size_bytes, dataset, *dates)

    async def _container(self, resource: values.ImportedResource) -> Prepared:
        path = identifiers.subject_of(resource.path)
        is_root = path == self.target.root
        kind = (
            storage_records.ResourceKind.STORAGE
            if is_root
            else storage_records.ResourceKind.CONTAINER
        )
        dates = resource.created_ms, resource.modified_ms
        if resource.open is None:
            return Prepared(
                path,
                kind,
                DEFAULT_DESCRIPTION_TYPE,
                storage_records.InlineBody(b""),
                0,
                EMPTY_DATASET,
                *dates,
            )
        content_type = resource.content_type
        content, dataset = await self._rdf(resource, path, must_be_read=True)
        url = self.context.documents.url_of(path)
        managed = server_managed(dataset.default, container_url=url)
        if managed or resource.path != path:
            document = await self.context.documents.parse(content, content_type, path=resource.path)
            # What the server states about a container and its members is not stored.
            document = document.with_graph(dataset.default - managed)
            content_type = essence(content_type)
            content = await self.context.documents.write(document, content_type, path=path)
            dataset = document.dataset
        body = await self._staged(content)
        return Prepared(path, kind, content_type, body, len(content), dataset, *dates)

    async def _rdf(
        self,
        resource: values.ImportedResource,
        path: identifiers.ResourcePath,
        *,
        must_be_read: bool,
    ) -> tuple[bytes, Dataset]:
        """The content with its new names, and its triples. Raises RequestRefused."""
        content_type = resource.content_type
        if not is_rdf(content_type):
            raise errors.BadRequest(f"It must be RDF, not {essence(content_type)}")
        content = await self._read(resource)
        target, at = self.target, resource.path
        from_url = resource.from_url or self.context.documents.url_of(at)
        adjust = target.adjust
        try:
            renamed = await renamed_document(
                self.context.documents,
                content,
                content_type,
                target.names,
                from_url=from_url,
                path=at,
                adjust=None if adjust is None else lambda dataset: adjust(path, dataset),
            )
        except UnknownContext as unknown:
            if must_be_read:
                raise errors.BadRequest(str(unknown)) from unknown
            if not target.names.changes_nothing:
                self.report.not_renamed.append(values.NotTaken(path, str(unknown)))
            return content, EMPTY_DATASET
        if renamed.content is not content:
            self.report.renamed += 1
        return renamed.content, renamed.dataset

    async def _staged(self, content: bytes) -> storage_records.Body:
        if self.target.dry_run:
            return storage_records.InlineBody(b"")
        return await self.context.store.stage_body(content)

    async def _read(self, resource: values.ImportedResource) -> bytes:
        limit_bytes = min(self.context.documents.max_bytes, self.max_body_bytes)
        return b"".join([piece async for piece in _pieces(resource, limit_bytes)])

    async def _streamed(
        self, resource: values.ImportedResource
    ) -> tuple[storage_records.Body, int]:
        pieces = _pieces(resource, self.max_body_bytes)
        if not self.target.dry_run:
            body = await self.context.store.stage_body(pieces, content_type=resource.content_type)
            return body, body.size_bytes
        size_bytes = 0
        async for piece in pieces:
            size_bytes += len(piece)
        return storage_records.InlineBody(b""), size_bytes


def closed_rules(path: identifiers.ResourcePath) -> Prepared:
    """An ACL that grants nothing to anybody."""
    return Prepared(path, storage_records.ResourceKind.ACL, TURTLE, NO_RULES, 0)


async def _pieces(resource: values.ImportedResource, limit_bytes: int) -> AsyncIterator[bytes]:
    if resource.open is None:
        return
    taken_bytes = 0
    async for piece in resource.open():
        taken_bytes += len(piece)
        if taken_bytes > limit_bytes:
            raise errors.BodyTooLarge(f"It is larger than the limit of {limit_bytes} bytes")
        yield piece


class ImportPlan:
    """The puts of some resources, and why others are not stored."""

    def __init__(
        self,
        target: values.ImportTarget,
        state: Mapping[identifiers.ResourcePath, storage_records.Metadata | None],
    ) -> None:
        self._target = target
        self._state = state
        self._creating: set[identifiers.ResourcePath] = set()
        self.puts: list[storage_records.Put] = []
        self.stored: list[Prepared] = []
        self.unused: list[Prepared] = []
        self.preconditions: list[storage_records.Precondition] = []
        self.refused: list[values.NotTaken] = []
        self.already_there = 0

    def add(self, prepared: Prepared) -> None:
        """Plan the storing of a resource, with the containers above it that do not exist."""
        path, existing = prepared.path, self._state[prepared.path]
        if path in self._creating or existing is not None:
            self._fill(prepared, existing)
            return
        refusal = self._refusal(prepared)
        if refusal is not None:
            self.unused.append(prepared)
            self.refused.append(values.NotTaken(path, refusal))
            return
        if prepared.kind.is_member:
            for container in reversed(identifiers.ancestors(path)[:-1]):
                if not self._exists(container):
                    self._create(_empty_container(container))
        self._create(prepared)
        self.stored.append(prepared)

    def _fill(self, prepared: Prepared, existing: storage_records.Metadata | None) -> None:
        """Give a container that was created for a member its own content."""
        if existing is None or not prepared.kind.is_container:
            index = next(
                (index for index, put in enumerate(self.puts) if put.path == prepared.path), None
            )
            if index is not None and prepared.kind.is_container:
                self.puts[index] = put_of(prepared, creates=self.puts[index].creates)
                self.stored.append(prepared)
                return
        elif not existing.size_bytes and prepared.size_bytes:
            self.preconditions.append(storage_records.AtVersion(prepared.path, existing.version))
            self.puts.append(put_of(prepared, creates=False))
            self.stored.append(prepared)
            return
        self.unused.append(prepared)
        # The root of a new pod exists before anything else.
        self.already_there += prepared.path != self._target.root

    def _create(self, prepared: Prepared) -> None:
        self._creating.add(prepared.path)
        self.puts.append(put_of(prepared, creates=True))
        if prepared.kind.is_member:
            self.preconditions.append(
                storage_records.Absent(identifiers.slash_variant(prepared.path))
            )

    def _refusal(self, prepared: Prepared) -> str | None:
        if not prepared.kind.is_member:
            if self._exists(identifiers.subject_of(prepared.path)):
                return None
            return "What it describes does not exist"
        path = prepared.path
        if self._exists(identifiers.slash_variant(path)):
            return "There is a resource whose URL differs only in the trailing slash"
        for container in identifiers.ancestors(path)[:-1]:
            if not self._exists(container) and self._exists(identifiers.slash_variant(container)):
                return "There is a document in the place of a container above it"
            named = identifiers.auxiliary_kind(identifiers.slash_variant(container))
            if container != self._target.root and named is not None:
                return "Without its slash, a container above it has the URL of an auxiliary"
        return None

    def _exists(self, path: identifiers.ResourcePath) -> bool:
        return path in self._creating or self._state.get(path) is not None


def put_of(prepared: Prepared, *, creates: bool) -> storage_records.Put:
    """The put that stores a resource."""
    return storage_records.Put(
        prepared.path,
        prepared.kind,
        prepared.content_type,
        prepared.body,
        creates=creates,
        created_ms=prepared.created_ms,
        modified_ms=prepared.modified_ms,
    )


def _empty_container(path: identifiers.ResourcePath) -> Prepared:
    return Prepared(
        path,
        storage_records.ResourceKind.CONTAINER,
        DEFAULT_DESCRIPTION_TYPE,
        storage_records.InlineBody(b""),
        0,
    )
