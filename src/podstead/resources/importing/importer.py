"""Stores the resources of an import, many in one write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from podstead.core import identifiers
from podstead.core.errors import Conflict, Overloaded, QuotaExceeded
from podstead.core.identifiers import ResourcePath, acl_of, ancestors, slash_variant, subject_of
from podstead.core.media_types import TURTLE
from podstead.resources.committer import quota_exceeded
from podstead.resources.context import WriteContext
from podstead.resources.importing import values
from podstead.resources.importing.preparing import (
    ImportPlan,
    Preparation,
    Prepared,
    closed_rules,
    put_of,
)
from podstead.resources.planning import DEFAULT_DESCRIPTION_TYPE, derived_records
from podstead.storage.pods import pod_tombstone
from podstead.storage.quota import fixed_charge
from podstead.storage.records import (
    Absent,
    AtVersion,
    Change,
    ChangeType,
    Committed,
    InlineBody,
    Metadata,
    NoEntry,
    NoPod,
    OverQuota,
    PodRecord,
    Precondition,
    Put,
    Record,
    ResourceKind,
    Version,
    Write,
)

RESOURCES_AT_ONCE: Final = 200
BYTES_AT_ONCE: Final = 4 * 1024 * 1024
_ATTEMPTS: Final = 8
_NO_VERSION: Final = Version("")

_State = dict[ResourcePath, Metadata | None]


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
    _imagined: dict[ResourcePath, ResourceKind] = field(default_factory=dict)

    # --- beginning --------------------------------------------------------------------------

    async def begin(self) -> None:
        """Create the pod, or find it. Raises Conflict and QuotaExceeded."""
        target, store = self.target, self.context.store
        pod = await store.read_pod(target.root.strip("/"))
        record = await self.context.records.read(values.UNFINISHED_IMPORTS, target.root)
        if target.new_pod is None:
            if pod is None or record is not None:
                raise Conflict(f"There is no pod at {target.root}, or its import is unfinished")
            return
        if pod is not None and (record is None or pod.root != target.root):
            raise Conflict(f"There is a pod with the name '{pod.name}' already")
        if record is not None and record.value.source_id != target.source_id:
            raise Conflict(
                f"An import from another source into {target.root} is unfinished. Run that one "
                f"again, or delete the pod"
            )
        if pod is None:
            await self._create(target.new_pod)

    async def _create(self, pod: PodRecord) -> None:
        root, now_ms = self.target.root, self.context.records.now_ms()
        former = pod_tombstone(pod.name)
        if await self.context.store.read_entry(former, now_ms=now_ms) is not None:
            raise Conflict(
                f"The name '{pod.name}' belonged to a deleted pod. Release it first with "
                f"'podstead account free-name {pod.name}', or choose another name"
            )
        self.report.containers += 1
        self.report.charged_bytes += fixed_charge(root) + fixed_charge(acl_of(root))
        if self.target.dry_run:
            self._imagined[root] = ResourceKind.STORAGE
            self._imagined[acl_of(root)] = ResourceKind.ACL
            return
        empty = Prepared(
            root, ResourceKind.STORAGE, DEFAULT_DESCRIPTION_TYPE, InlineBody(b""), 0,
            created_ms=pod.created_ms,
        )  # fmt: skip
        puts = tuple(put_of(each, creates=True) for each in (empty, closed_rules(acl_of(root))))
        begun = values.UnfinishedImport(self.target.source_id, now_ms)
        write = Write(
            version=self.context.records.new_version(),
            at_ms=now_ms,
            preconditions=(
                NoPod(pod.name),
                NoEntry(former),
                values.UNFINISHED_IMPORTS.absent(root),
                Absent(root),
                Absent(slash_variant(root)),
            ),
            puts=puts,
            records=(pod, values.UNFINISHED_IMPORTS.put(root, begun, owner=root)),
            changes=tuple(_created(put.path) for put in puts),
            default_quota_bytes=self.context.quota_bytes(),
        )
        if not await self._committed(write):
            raise Conflict(f"There is a pod with the name '{pod.name}' already")

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
        raise Overloaded("The pod is changing too fast; run the import again")

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
            elif put.kind is ResourceKind.DOCUMENT:
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

    def _check_quota(self, pod: PodRecord) -> None:
        limit_bytes = self.context.quota_bytes() if pod.quota_bytes is None else pod.quota_bytes
        needed_bytes = self.report.charged_bytes
        if 0 < limit_bytes < needed_bytes:
            raise QuotaExceeded(used_bytes=0, limit_bytes=limit_bytes, needed_bytes=needed_bytes)

    # --- access rules -----------------------------------------------------------------------

    async def add_rules(self, rules: Sequence[Prepared], *, is_last: bool = False) -> None:
        """Store ACLs in one write, which may be the last one. Raises QuotaExceeded, and Conflict if
        a last precondition does not hold."""
        for _ in range(_ATTEMPTS):
            if await self._store_rules(rules, is_last=is_last):
                self.progress(self.report)
                return
        raise Overloaded("The pod is changing too fast; run the import again")

    async def _store_rules(self, rules: Sequence[Prepared], *, is_last: bool) -> bool:
        target, report = self.target, self.report
        state = await self._state_around(rules)
        puts: list[Put] = []
        stored: list[Prepared] = []
        preconditions: list[Precondition] = []
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
                    preconditions.append(AtVersion(each.path, existing.version))
                preconditions.append(AtVersion(subject.path, subject.version))
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
        puts: Sequence[Put],
        stored: Sequence[Prepared],
        preconditions: Sequence[Precondition],
        *,
        is_last: bool = False,
    ) -> Write:
        records: list[Record] = []
        needed = list(preconditions)
        for each in stored:
            derived = await derived_records(self.context.write_hooks, each.path, each.dataset)
            records += derived.records
            needed += derived.preconditions
        if is_last:
            records += [values.UNFINISHED_IMPORTS.drop(self.target.root), *self.target.last_records]
            needed += self.target.last_preconditions
        return Write(
            version=self.context.records.new_version(),
            at_ms=self.context.records.now_ms(),
            preconditions=tuple(dict.fromkeys(needed)),
            puts=tuple(puts),
            records=tuple(records),
            changes=tuple(
                _created(put.path) if put.creates else Change(put.path, ChangeType.UPDATE)
                for put in puts
            ),
            default_quota_bytes=self.context.quota_bytes(),
        )

    async def _committed(self, write: Write) -> bool:
        """Raises QuotaExceeded, and Conflict for a last precondition."""
        ended = await self.context.store.commit(write)
        if isinstance(ended, OverQuota):
            raise quota_exceeded(ended)
        if isinstance(ended, Committed):
            return True
        if ended.precondition in self.target.last_preconditions:
            raise Conflict("Another name of the account is taken")
        return False


def _created(path: ResourcePath) -> Change:
    return Change(path, ChangeType.CREATE)


def _imagined(path: ResourcePath, kind: ResourceKind) -> Metadata:
    """The metadata that the resource would have."""
    return Metadata(path, kind, _NO_VERSION, TURTLE, 0, 0, 0)


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
            content = InlineBody(target.root_acl)
            parsed = await self.context.documents.parse(target.root_acl, TURTLE, path=of_root)
            size_bytes, dataset = len(target.root_acl), parsed.dataset
            root_acl = Prepared(of_root, ResourceKind.ACL, TURTLE, content, size_bytes, dataset)
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
