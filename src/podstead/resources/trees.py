"""The walk through a tree, and the state of one that is copied or moved, and of its destination."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

from podstead.core import identifiers, value
from podstead.storage.protocol import ResourceStore, Snapshot
from podstead.storage.records import Metadata, ResourceKind


class Tree(value.Value):
    """A resource with its auxiliary resources and, if it is a container, everything below it.

    Without members, a container alone.
    """

    root: identifiers.ResourcePath
    with_members: bool = True

    def contains(self, path: identifiers.ResourcePath) -> bool:
        """Whether the path is that of a resource in the tree, existing or not."""
        if self.with_members and identifiers.is_container(self.root):
            return path.startswith(self.root)
        return path in auxiliaries_and(self.root)


class TreeTransfer(value.Value):
    """A copy or a move of a tree to a destination."""

    tree: Tree
    destination: identifiers.ResourcePath
    moves: bool

    @property
    def source(self) -> identifiers.ResourcePath:
        """The root of the tree."""
        return self.tree.root

    def new_path(self, path: identifiers.ResourcePath) -> identifiers.ResourcePath:
        """The new path of a resource of the tree; auxiliary resources move with their subjects."""
        return identifiers.ResourcePath(self.destination + path[len(self.source) :])


def auxiliaries_and(path: identifiers.ResourcePath) -> tuple[identifiers.ResourcePath, ...]:
    """A resource and its possible auxiliary resources."""
    return path, identifiers.acl_of(path), identifiers.description_of(path)


class TreeState(Mapping[identifiers.ResourcePath, Metadata | None]):
    """The snapshot of a tree and of its surroundings.

    Every path in the tree is part of the snapshot, even if nothing is stored there. So is every
    path below ``destination``, where nothing exists: no existing container is replaced.
    """

    def __init__(
        self, tree: Tree, found: Snapshot, *, destination: identifiers.ResourcePath | None = None
    ) -> None:
        self._found = found
        whole = tree.with_members and identifiers.is_container(tree.root)
        below = (tree.root,) if destination is None else (tree.root, destination)
        self._complete_below = below if whole else ()
        taken = (each for each in found.values() if each is not None and tree.contains(each.path))
        self.resources = tuple(sorted(taken, key=lambda each: each.path))

    def __getitem__(self, path: identifiers.ResourcePath) -> Metadata | None:
        try:
            return self._found[path]
        except KeyError:
            if path.startswith(self._complete_below):
                return None
            raise

    def __iter__(self) -> Iterator[identifiers.ResourcePath]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def subjects(self) -> list[identifiers.ResourcePath]:
        """The documents and containers of the tree, its root first."""
        return [each.path for each in self.resources if not is_auxiliary(each)]

    @property
    def containers(self) -> list[Metadata]:
        """The containers of the tree."""
        return [each for each in self.resources if each.kind.is_container]

    @property
    def with_rules(self) -> list[identifiers.ResourcePath]:
        """The documents and containers of the tree that have an ACL."""
        return [
            identifiers.subject_of(each.path)
            for each in self.resources
            if each.kind is ResourceKind.ACL
        ]

    def existing(self, paths: Iterable[identifiers.ResourcePath]) -> list[Metadata]:
        """What is stored at the paths."""
        return [each for each in map(self.__getitem__, paths) if each is not None]


def is_auxiliary(metadata: Metadata) -> bool:
    """Whether a resource is an ACL or a description."""
    return metadata.kind in (ResourceKind.ACL, ResourceKind.DESCRIPTION)


async def tree_pages(
    store: ResourceStore,
    root: identifiers.ResourcePath,
    *,
    after: identifiers.ResourcePath | None = None,
    page_resources: int,
) -> AsyncIterator[Sequence[Metadata]]:
    """Everything in a tree after a path, in the order of the paths, in pages of one snapshot each.

    Other tasks can run between two pages.
    """
    while True:
        found = await store.read_tree(root, after=after, limit=page_resources)
        page = sorted((each for each in found.values() if each), key=lambda each: each.path)
        if page:
            yield page
        if len(page) < page_resources:
            return
        after = page[-1].path
        await asyncio.sleep(0)
