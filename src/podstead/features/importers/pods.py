"""Imports the pods and accounts of another server, pod by pod, each with its account.

A pod and its account become visible in one write, when everything is there
(:mod:`podstead.resources.importing.importer`), so a run that was interrupted is run again: it
passes over the pods that are complete and continues with the one that is not. What cannot be taken
is listed, and nothing is ever replaced.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from podstead.app.adapters.audit import operator_audit
from podstead.app.operator.importing import OpenedPods, opened_pods
from podstead.config import Settings
from podstead.core.errors import Conflict
from podstead.core.identifiers import ResourcePath
from podstead.core.vocab import SOLID_OIDC_ISSUER
from podstead.features.importers import values as importers_values
from podstead.features.importers.community import CommunityServerData
from podstead.features.importers.folders import OtherServer
from podstead.features.importers.javascript_server import JavaScriptServerData
from podstead.features.importers.node_server import NodeServerData
from podstead.idp.account_creation import ImportedAccounts
from podstead.idp.audit import AuditEvent
from podstead.idp.records import USERNAMES, name_key
from podstead.pods.names import UnusablePodName
from podstead.pods.provision import web_id_of
from podstead.rdf.graph import Dataset, Graph, Iri
from podstead.resources.importing import values
from podstead.resources.renaming import NameMapping
from podstead.storage.record_store import RecordKind
from podstead.storage.records import Committed, Present, Write


class CompletedImport(msgspec.Struct, frozen=True):
    """That a pod came from elsewhere; the key is its root container."""

    source_id: str
    at_s: int


COMPLETED_IMPORTS: Final = RecordKind("completed-import", CompletedImport)


class ImportedPod(msgspec.Struct):
    """What came of one pod."""

    name: str
    url: str
    former_url: str
    owner: str
    account: bool = False
    already_there: bool = False
    account_added: bool = False
    """Whether the pod was there, and its account came now."""
    documents: int = 0
    containers: int = 0
    size_bytes: int = 0


class ServerImportReport(msgspec.Struct):
    """What came of all pods. ``notes`` tell what the operator may have to do; what is in
    ``left_out`` is not here, or not as it was."""

    dry_run: bool
    pods: list[ImportedPod] = msgspec.field(default_factory=list)
    left_out: list[importers_values.LeftOut] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)


@dataclass(slots=True)
class _Move:
    """One pod on its way here, with the account that it has."""

    pod: importers_values.FoundPod
    account: importers_values.FoundAccount | None
    own_urls: Sequence[str]
    moved: ImportedPod
    target: values.ImportTarget
    report: ServerImportReport

    def leave_out(self, reason: str) -> None:
        """Report something about the account."""
        self.report.left_out.append(
            importers_values.LeftOut(f"account of {self.moved.name}", reason)
        )


Adjustment = Callable[[ResourcePath, Dataset], Dataset]

Counting = Callable[[str, int, int], None]
"""Called with the pod in progress, how many of its resources were dealt with, and of how many."""


@dataclass(frozen=True, slots=True)
class ServerImport:
    """The pods and accounts of one other server on their way here.

    ``names`` has the names here of pods that are to have another one, by their names there.
    """

    pods: OpenedPods
    server: OtherServer
    kind: str
    names: Mapping[str, str]
    dry_run: bool = False
    counting: Counting = lambda *_: None
    planned: set[tuple[str, str]] = field(default_factory=set)
    """In a dry run, the names that accounts before would have."""

    async def run(self) -> ServerImportReport:
        """Import everything. Raises QuotaExceeded, Overloaded, StorageError."""
        report = ServerImportReport(self.dry_run, left_out=list(self.server.left_out))
        mapping = await self._mapping()
        # Pods that belong to the owner of another one come after that one (see `_may_own`).
        for pod in sorted(self.server.pods, key=_is_owned_from_outside):
            await self._move(pod, mapping, report)
        for unknown in sorted(set(self.names) - {pod.name for pod in self.server.pods}):
            report.left_out.append(
                importers_values.LeftOut(unknown, "There is no pod of this name to be renamed")
            )
        return report

    def _own_urls(
        self,
        pod: importers_values.FoundPod,
        account: importers_values.FoundAccount | None,
        report: ServerImportReport,
    ) -> list[str]:
        """The URLs here of a pod, and of those pods of its account that were taken before it. A pod
        of the same name that was here already may be a stranger's."""
        others = () if account is None else account.pods
        return [
            f"{self.pods.settings.base_url}/{self.name_of(pod)}/",
            *(each.url for each in report.pods if each.former_url in others),
        ]

    def _own_web_id(self, name: str) -> str:
        return web_id_of(self.pods.settings.base_url, name)

    def name_of(self, pod: importers_values.FoundPod) -> str:
        """The name that a pod gets here."""
        return self.names.get(pod.name, pod.name)

    # --- names --------------------------------------------------------------------------------

    async def _mapping(self) -> NameMapping:
        """Where pods and the provider have another URL here, names in documents follow."""
        base_url, issuer = self.pods.settings.base_url, self.pods.settings.issuer
        beginnings = tuple(
            [
                (pod.url, f"{base_url}/{self.name_of(pod)}/")
                for pod in self.server.pods
                if self.name_of(pod) and not await self._is_somebody_elses(pod)
            ]
        )
        former = self.server.base_url.removesuffix("/")
        exactly = [] if former == issuer else [(former, issuer), (f"{former}/", issuer)]
        # The URL of a pod at the root is also a name of the provider, which `_adjustment` finds.
        exactly = [(old, new) for old, new in exactly if old not in dict(beginnings)]
        stored = all(old == new for old, new in beginnings)
        return NameMapping(() if stored else beginnings, tuple(exactly))

    async def _is_somebody_elses(self, pod: importers_values.FoundPod) -> bool:
        """Whether the pod with its name here did not come from it. That is not taken, and whoever
        had access there must not be taken for the owner here."""
        root = f"/{self.name_of(pod)}/"
        if await self.pods.records.store.read_pod(self.name_of(pod)) is None:
            return False
        found = await self.pods.records.read(COMPLETED_IMPORTS, root)
        # An import that was interrupted is of this pod, too.
        begun = await self.pods.records.read(values.UNFINISHED_IMPORTS, root)
        sources = {each.value.source_id for each in (found, begun) if each is not None}
        return self._source_id(pod) not in sources

    def _source_id(self, pod: importers_values.FoundPod) -> str:
        return f"{self.kind}:{pod.url}"

    def _adjustment(self, pod: importers_values.FoundPod, root_url: str) -> Adjustment:
        """Profiles name the provider as its discovery document does: an issuer is compared
        character by character. The URL of a pod at the root named the former provider, too."""
        former, issuer = self.server.base_url.removesuffix("/"), Iri(self.pods.settings.issuer)
        spellings = {Iri(former), Iri(f"{former}/")}
        if pod.url == self.server.base_url:
            spellings.add(Iri(root_url))

        def adjust(_: ResourcePath, dataset: Dataset) -> Dataset:
            return dataset.with_default(
                Graph(
                    (s, p, issuer if p.value == SOLID_OIDC_ISSUER and o in spellings else o)
                    for s, p, o in dataset.default
                )
            )

        return adjust

    # --- one pod ------------------------------------------------------------------------------

    async def _move(
        self, pod: importers_values.FoundPod, mapping: NameMapping, report: ServerImportReport
    ) -> None:
        name = self.name_of(pod)

        def leave_out(reason: str) -> None:
            report.left_out.append(importers_values.LeftOut("/".join(pod.folder) or ".", reason))

        if not name:
            leave_out(f"The pod {pod.url} is the server's root; choose its name with --as NAME")
            return
        if pod.owner is None:
            leave_out(f"Nothing says whose pod {pod.url} is")
            return
        source_id = self._source_id(pod)
        found = next((each for each in self.server.accounts if pod.url in each.pods), None)
        own_urls = self._own_urls(pod, found, report)
        owner = mapping.renamed(pod.owner)
        can_own = self.pods.may_own(owner, *own_urls)
        try:
            target = self.pods.target(name, source_id=source_id, owner=owner if can_own else None)
        except UnusablePodName as error:
            leave_out(f"{error}. Choose another name with --as {pod.name or 'pod'}=NAME")
            return
        url, own_web_id = f"{self.pods.settings.base_url}{target.root}", self._own_web_id(name)
        moved = ImportedPod(name, url, pod.url, owner if can_own else own_web_id)
        target = msgspec.structs.replace(
            target,
            names=mapping,
            adjust=self._adjustment(pod, moved.url),
            dry_run=self.dry_run,
        )
        move = _Move(pod, found, own_urls, moved, target, report)
        completed = await self.pods.records.read(COMPLETED_IMPORTS, target.root)
        if completed is not None and completed.value.source_id == source_id:
            await self._complete(move)
            return
        if not can_own:
            somebody_else = _of_somebody_else("owner", owner)
            leave_out(f"{somebody_else}: the pod belongs to {own_web_id}")
        target = await self._with_account(move)
        left_out: list[importers_values.LeftOut] = []
        resources = _resources(self.server, pod, target.root, left_out)
        total = sum(
            1
            for each in self.server.resources(pod)
            if isinstance(each, importers_values.FoundResource)
        )
        progress = partial(self._count, name, total)
        try:
            done = await self.pods.importer.run(target, resources, progress=progress)
        except Conflict as error:
            leave_out(str(error))
            return
        self.counting(name, total, total)
        moved.documents, moved.containers = done.documents, done.containers
        moved.size_bytes = done.size_bytes
        report.pods.append(moved)
        report.left_out += [*left_out, *_left_out_of(done)]
        report.notes += [
            f"The access rules of {path} give everyone Control: anybody can change them. Remove "
            "that unless it is meant."
            for path in done.controlled_by_all
        ]
        if moved.account and not self.dry_run:
            await self._note_account(name)

    async def _complete(self, move: _Move) -> None:
        """Note that a pod was here, and add its account if that could not be read before."""
        records, moved = self.pods.records, move.moved
        moved.already_there = True
        move.report.pods.append(moved)
        if await records.read(USERNAMES, name_key(moved.name)) is not None:
            moved.account = True
            return
        target = await self._with_account(move)
        moved.account_added = moved.account
        if not moved.account or self.dry_run:
            return
        write = Write(
            version=records.new_version(),
            at_ms=records.now_ms(),
            preconditions=(Present(target.root), *target.last_preconditions),
            records=tuple(target.last_records),
        )
        if not isinstance(await records.store.commit(write), Committed):
            moved.account = moved.account_added = False
            move.leave_out("The account, or another one with its name, was changed meanwhile")
            return
        await self._note_account(moved.name)

    def _count(self, name: str, total: int, done: values.ImportReport) -> None:
        self.counting(name, min(done.resources, total), total)

    async def _with_account(self, move: _Move) -> values.ImportTarget:
        """The target with the records of the account, which are stored in the last write."""
        records, target, found, moved = self.pods.records, move.target, move.account, move.moved
        completed = CompletedImport(target.source_id, records.now_s())
        last = [COMPLETED_IMPORTS.put(target.root, completed, owner=target.root)]
        if found is None or target.new_pod is None:
            move.report.notes.append(
                f"The pod '{moved.name}' has no account. 'podstead account create {moved.name} "
                "--existing-pod' creates one."
            )
            return msgspec.structs.replace(target, last_records=tuple(last))
        renamed = target.names.renamed
        stated = _web_ids(found, move.pod)
        web_id = next(
            (each for each in stated if self.pods.may_own(renamed(each), *move.own_urls)), ""
        )
        if web_id != stated[0]:
            move.leave_out(f"{_of_somebody_else('WebID', renamed(stated[0]))}: it is not taken")
        made = await ImportedAccounts(records, self.planned if self.dry_run else None).plan(
            pod=target.new_pod.name,
            web_id=renamed(web_id) if web_id else self._own_web_id(moved.name),
            email=found.email if move.pod.url == found.pods[0] else None,
            password_hash=found.password_hash,
            secrets=[
                (each.credential_id, each.secret, each.label)
                for each in found.secrets
                if web_id == each.web_id
            ],
        )
        moved.account = True
        for why in made.left_out:
            move.leave_out(why)
        if move.pod.url != found.pods[0]:
            move.report.notes.append(
                f"The account of '{moved.name}' had several pods. Each has an account of its own "
                f"here, with the same password; sign in to this one as '{moved.name}'."
            )
        if not made.account.web_id.startswith(f"{self.pods.settings.base_url}/"):
            move.report.notes.append(
                f"The WebID of '{moved.name}' is elsewhere: {made.account.web_id}. Tokens of this "
                f"server are valid for it once its profile names {self.pods.settings.issuer} as "
                "solid:oidcIssuer."
            )
        return msgspec.structs.replace(
            target,
            last_records=(*last, *made.records),
            last_preconditions=tuple(made.preconditions),
        )

    async def _note_account(self, name: str) -> None:
        async with operator_audit(self.pods.records) as audit:
            audit.note(AuditEvent.ACCOUNT_CREATED, pod=name)


async def _resources(
    server: OtherServer,
    pod: importers_values.FoundPod,
    root: ResourcePath,
    left_out: list[importers_values.LeftOut],
) -> AsyncIterator[values.ImportedResource]:
    """The resources of a pod, as the importer takes them."""
    for found in server.resources(pod):
        if isinstance(found, importers_values.LeftOut):
            left_out.append(found)
            continue
        has_content = found.parts is not None or found.content is not None
        yield values.ImportedResource(
            path=ResourcePath(root + found.path),
            content_type=found.content_type,
            open=partial(server.content, found) if has_content else None,
            created_ms=found.modified_ms,
            modified_ms=found.modified_ms,
            from_url=found.url,
        )


def _web_ids(
    account: importers_values.FoundAccount, pod: importers_values.FoundPod
) -> Sequence[str]:
    """The WebIDs that the account of a pod may get: first its owner's, if the account may use that,
    then those in the pod."""
    if pod.owner is not None and (pod.owner in account.web_ids or not account.web_ids):
        return [pod.owner, *account.web_ids]
    return sorted(account.web_ids, key=lambda each: not each.startswith(pod.url))


def _is_owned_from_outside(pod: importers_values.FoundPod) -> bool:
    return pod.owner is None or not pod.owner.startswith(pod.url)


def _of_somebody_else(what: str, web_id: str) -> str:
    return f"Its {what}, {web_id}, is that of somebody else on this server"


def _left_out_of(done: values.ImportReport) -> Iterator[importers_values.LeftOut]:
    for each in done.not_taken:
        yield importers_values.LeftOut(each.path, each.reason)
    for each in done.closed:
        yield importers_values.LeftOut(
            each.path, f"{each.reason}. Only the owner has access to what it protects"
        )
    for each in done.not_renamed:
        yield importers_values.LeftOut(each.path, f"{each.reason}. Its names are as they were")


async def move_in(
    settings: Settings,
    kind: str,
    folder: Path,
    *,
    from_url: str | None = None,
    names: Mapping[str, str],
    dry_run: bool = False,
    counting: Counting = lambda *_: None,
) -> ServerImportReport:
    """Import all pods and accounts of a server of this kind (``css``, ``nss`` or ``jss``).

    Raises NotThisServer, RootUnusable, QuotaExceeded, Overloaded, StorageError.
    """
    server = _READERS[kind](folder, base_url=from_url)
    async with opened_pods(settings) as pods:
        move = ServerImport(pods, server, kind, names, dry_run=dry_run, counting=counting)
        return await move.run()


_READERS: Final[Mapping[str, type[OtherServer]]] = {
    "css": CommunityServerData,
    "nss": NodeServerData,
    "jss": JavaScriptServerData,
}
