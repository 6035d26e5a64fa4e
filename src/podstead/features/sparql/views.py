"""Which documents of a container an asker may read, decided by the gate.

The documents of a container are kept with the ACL that governs each of them, up to date by the
change log. Documents with the same effective ACL have the same rules, so the gate is asked once for
each of these ACLs, and the answer is for one state of the container: when one of its resources or
the rules above it have changed meanwhile, all of it is repeated. Where the credentials have a
limit, which may be about single documents, the gate is asked about each document.
"""

import asyncio
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

from podstead.core.caches import BoundedCache
from podstead.core.errors import Overloaded
from podstead.core.identifiers import ResourcePath, acl_of, ancestors, subject_of
from podstead.core.identity import Identity
from podstead.resources.documents import is_rdf
from podstead.resources.trees import tree_pages
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Metadata, ResourceKind, Version
from podstead.wac.effective import paths_to_read
from podstead.wac.gate import Gate
from podstead.wac.modes import Mode

_AT_ONCE: Final = 500
_CHANGES_AT_ONCE: Final = 1000
_ATTEMPTS: Final = 8
_KEPT_DOCUMENTS: Final = 250_000
"""The number of documents whose ACLs a worker remembers."""
_FOLLOWED_FOR_S: Final = 600.0
"""The time without a query after which changes are no longer followed. The change log
reaches back much further."""


class Governor(NamedTuple):
    """What decides about a document: an ACL, and whether it is that of the document itself.
    Without a path, it is one above the container."""

    acl: str
    is_own: bool


class Listed(NamedTuple):
    """A document of a container."""

    version: Version
    governor: Governor


@dataclass(frozen=True, slots=True)
class DocumentTree:
    """The documents with statements at or below a container, as of a row of the change log, which
    was read at a time of the event loop. ``changed`` is the row of the last change among them."""

    root: ResourcePath
    sequence: int
    changed: int
    at_s: float
    documents: Mapping[ResourcePath, Listed]
    acls: frozenset[ResourcePath]
    """The ACLs at or below the container."""
    examples: Mapping[Governor, ResourcePath]
    """A resource for each governor."""

    @classmethod
    def of(
        cls,
        root: ResourcePath,
        sequence: int,
        versions: Mapping[ResourcePath, Version],
        acls: frozenset[ResourcePath],
    ) -> "DocumentTree":
        """Finds what governs each document."""
        inherited: dict[ResourcePath, Governor] = {}
        documents: dict[ResourcePath, Listed] = {}
        examples: dict[Governor, ResourcePath] = {}
        for path, version in versions.items():
            governor = _governor(subject_of(path), root, acls, inherited)
            documents[path] = Listed(version, governor)
            examples.setdefault(governor, subject_of(path))
        return cls(root, sequence, sequence, _now_s(), documents, acls, examples)

    def concerns(self, path: ResourcePath) -> bool:
        """Whether a change there may change who may read what here."""
        return path.startswith(self.root) or path in map(acl_of, ancestors(self.root))


def _governor(
    subject: ResourcePath,
    root: ResourcePath,
    acls: frozenset[ResourcePath],
    inherited: dict[ResourcePath, Governor],
) -> Governor:
    own = acl_of(subject)
    if own in acls:
        return Governor(own, is_own=True)
    if subject == root:
        return Governor("", is_own=False)
    container = ancestors(subject)[0]
    found = inherited.get(container)
    if found is None:
        found = _governor(container, root, acls, inherited)
        found = inherited[container] = Governor(found.acl, is_own=False)
    return found


@dataclass(frozen=True, slots=True)
class QueryView:
    """The documents that an asker may read, by their versions. Equal keys have had the same
    documents, or nearly so; equal states have the same."""

    key: Hashable
    asker: Hashable
    state: Hashable
    tree: DocumentTree
    readable: frozenset[Governor] | frozenset[ResourcePath]
    by_document: bool = False
    """Whether ``readable`` has the subjects of documents in place of governors."""

    def documents(self) -> Mapping[ResourcePath, Version]:
        """All of them."""
        readable, documents = self.readable, self.tree.documents.items()
        if self.by_document:
            return {path: each.version for path, each in documents if subject_of(path) in readable}
        return {path: each.version for path, each in documents if each.governor in readable}


class Views:
    """Finds the views of one worker."""

    def __init__(self, store: ResourceStore, gate: Gate) -> None:
        self._store = store
        self._gate = gate
        self._trees: BoundedCache[ResourcePath, DocumentTree] = BoundedCache(_KEPT_DOCUMENTS)
        self._locks: dict[ResourcePath, tuple[asyncio.Lock, list[None]]] = {}

    async def of(self, agent: Identity | None, origin: str | None, root: ResourcePath) -> QueryView:
        """What a request may read at or below a container now. Raises StorageError, and Overloaded
        for a container that changes all the time."""
        for _ in range(_ATTEMPTS):
            tree = await self._tree(root)
            asker = root, agent and (agent.iri, agent.client_id)
            if agent is None or agent.limit is None:
                governors = await self._readable_governors(agent, origin, tree)
                key = root, governors
                view = QueryView(key, asker, (tree.changed, governors), tree, governors)
            else:
                paths = await self._readable_documents(agent, origin, tree)
                state = tree.changed, paths
                view = QueryView(asker, asker, state, tree, paths, by_document=True)
            if not await self._has_changed(tree):
                return view
        raise Overloaded("The container is changing too fast to be queried; try again")

    async def _readable_governors(
        self, agent: Identity | None, origin: str | None, tree: DocumentTree
    ) -> frozenset[Governor]:
        readable = await self._readable(agent, origin, tree.examples.values())
        return frozenset(each for each, path in tree.examples.items() if path in readable)

    async def _readable_documents(
        self, agent: Identity, origin: str | None, tree: DocumentTree
    ) -> frozenset[ResourcePath]:
        subjects = dict.fromkeys(map(subject_of, tree.documents))
        return frozenset(await self._readable(agent, origin, subjects))

    async def _readable(
        self, agent: Identity | None, origin: str | None, paths: Iterable[ResourcePath]
    ) -> set[ResourcePath]:
        gate = self._gate.for_many(self._store)
        readable = set()
        for some in _batches(paths):
            read = dict.fromkeys(each for path in some for each in paths_to_read(path))
            snapshot = await self._store.read_metadata(read)
            for path in some:
                grant = await gate.grant(agent, origin, path, snapshot)
                if not grant.allows(Mode.READ) and path.endswith("/"):
                    grant = await gate.grant_on_description(agent, origin, path, snapshot)
                if grant.allows(Mode.READ):
                    readable.add(path)
            await asyncio.sleep(0)
        return readable

    # --- the documents of a container -----------------------------------------------------------

    async def _tree(self, root: ResourcePath) -> DocumentTree:
        """Its documents, as they are now. Those who ask for them at the same time wait for one."""
        lock, waiting = self._locks.setdefault(root, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            async with lock:
                known = self._trees.get(root)
                if known is None or _now_s() - known.at_s > _FOLLOWED_FOR_S:
                    tree = await self._walk(root)
                else:
                    tree = await self._follow(known)
                self._trees.put(root, tree, weight=1 + len(tree.documents))
                return tree
        finally:
            waiting.pop()
            if not waiting:
                del self._locks[root]

    async def _walk(self, root: ResourcePath) -> DocumentTree:
        sequence = await self._store.newest_sequence()
        versions: dict[ResourcePath, Version] = {}
        acls: set[ResourcePath] = set()
        async for page in tree_pages(self._store, root, page_resources=_CHANGES_AT_ONCE):
            for each in page:
                _note(each.path, each, versions, acls)
        tree = DocumentTree.of(root, sequence, versions, frozenset(acls))
        return await self._follow(tree)

    async def _follow(self, tree: DocumentTree) -> DocumentTree:
        """The tree with the changes that were logged since."""
        changed, sequence = await self._changes(tree)
        if not changed:
            return replace(tree, sequence=sequence, at_s=_now_s())
        versions: dict[ResourcePath, Version] = {}
        acls = set(tree.acls)
        for some in _batches(changed):
            for path, metadata in (await self._store.read_metadata(some)).items():
                if path.startswith(tree.root):
                    _note(path, metadata, versions, acls)
        if acls != tree.acls:
            others = {path: each.version for path, each in tree.documents.items()}
            for path in changed:
                others.pop(path, None)
            return DocumentTree.of(tree.root, sequence, others | versions, frozenset(acls))
        documents = dict(tree.documents)
        for path in changed:
            documents.pop(path, None)
        new = DocumentTree.of(tree.root, sequence, versions, tree.acls)
        documents.update(new.documents)
        return replace(new, documents=documents, examples={**new.examples, **tree.examples})

    async def _has_changed(self, tree: DocumentTree) -> bool:
        changed, _ = await self._changes(tree)
        return bool(changed)

    async def _changes(self, tree: DocumentTree) -> tuple[Sequence[ResourcePath], int]:
        """What has changed since that matters, and the row up to which that is so."""
        sequence, changed = tree.sequence, dict[ResourcePath, None]()
        while page := await self._store.changes_after(sequence, limit=_CHANGES_AT_ONCE):
            paths = [each.change.path for each in page]
            changed.update(dict.fromkeys(path for path in paths if tree.concerns(path)))
            sequence = page[-1].sequence
        return list(changed), sequence


def _note(
    path: ResourcePath,
    metadata: Metadata | None,
    versions: dict[ResourcePath, Version],
    acls: set[ResourcePath],
) -> None:
    """Note what is at a path."""
    versions.pop(path, None)
    acls.discard(path)
    if metadata is None:
        return
    if metadata.kind is ResourceKind.ACL:
        acls.add(path)
    elif metadata.size_bytes and is_rdf(metadata.content_type):
        versions[path] = metadata.version


def _batches(paths: Iterable[ResourcePath]) -> Iterator[Sequence[ResourcePath]]:
    left = iter(paths)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def _now_s() -> float:
    return asyncio.get_running_loop().time()
