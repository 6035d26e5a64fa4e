"""Imports a tree of resources from elsewhere into a pod.

For the operator: no authorization takes place; everything else is as for a request. Content is
validated for its path, the records that follow from it are written with it, quota and disk space
apply, and each resource keeps its media type and its dates. Resources that cannot be imported are
reported, never skipped silently.

A new pod becomes visible as a whole when everything is stored: until then, its root has access
rules that grant nothing, and no others exist. The last write stores all access rules, those of the
root last if there are very many. Rules that cannot be read are replaced by rules that grant
nothing, because otherwise the resources would inherit others.

An interrupted import continues when it is run again: each write is complete in itself, a record
names the source while the import is unfinished, and stored resources are skipped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core import identifiers
from podstead.core.media_types import TURTLE
from podstead.resources.context import WriteContext
from podstead.resources.importing import values
from podstead.resources.importing.preparing import Preparation, Prepared
from podstead.resources.importing.writer import ImportWriter
from podstead.storage.records import InlineBody, ResourceKind

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
