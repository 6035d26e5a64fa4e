"""The state of a tree that is copied or moved, and of the place where it goes.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from podstead.core.identifiers import (
    ResourcePath,
    acl_of,
    description_of,
    is_container,
    subject_of,
)
from podstead.core.value import Value
from podstead.storage.protocol import Snapshot
from podstead.storage.records import Metadata, ResourceKind


class TreeTransfer(Value):
    """A copy or a move of a resource, with everything below it, to a destination.

    A copy without members takes only a container itself.
    """

    source: ResourcePath
    destination: ResourcePath
    moves: bool
    with_members: bool = True

    def new_path(self, path: ResourcePath) -> ResourcePath:
        """Where a resource of the tree goes; auxiliary resources go with their subjects."""
        return ResourcePath(self.destination + path[len(self.source) :])

    def takes(self, path: ResourcePath) -> bool:
        """Whether the path is in the tree that is copied or moved."""
        if self.with_members and is_container(self.source):
            return path.startswith(self.source)
        return path in auxiliaries_and(self.source)


def auxiliaries_and(path: ResourcePath) -> tuple[ResourcePath, ...]:
    """A resource and its possible auxiliary resources."""
    return path, acl_of(path), description_of(path)


class TreeState(Mapping[ResourcePath, Metadata | None]):
    """The snapshot of a transfer: everything in the tree, and the surroundings of both ends.

    Every path in the tree, and every path below the destination, is part of the snapshot, also if
    nothing is stored there.
    """

    def __init__(self, transfer: TreeTransfer, found: Snapshot) -> None:
        self._transfer = transfer
        self._found = found
        taken = (each for each in found.values() if each is not None and transfer.takes(each.path))
        self.resources = tuple(sorted(taken, key=lambda each: each.path))

    def __getitem__(self, path: ResourcePath) -> Metadata | None:
        try:
            return self._found[path]
        except KeyError:
            if self._is_in_tree(path):
                return None
            raise

    def _is_in_tree(self, path: ResourcePath) -> bool:
        source, destination = self._transfer.source, self._transfer.destination
        # Nothing exists below the destination: a container that exists is not replaced.
        members = is_container(source) and self._transfer.with_members
        return members and path.startswith((source, destination))

    def __iter__(self) -> Iterator[ResourcePath]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def subjects(self) -> list[ResourcePath]:
        """The documents and containers of the tree, its root first."""
        return [each.path for each in self.resources if not is_auxiliary(each)]

    @property
    def containers(self) -> list[Metadata]:
        """The containers of the tree."""
        return [each for each in self.resources if each.kind.is_container]

    @property
    def with_rules(self) -> list[ResourcePath]:
        """The documents and containers of the tree that have an ACL."""
        return [subject_of(each.path) for each in self.resources if each.kind is ResourceKind.ACL]

    def existing(self, paths: Iterable[ResourcePath]) -> list[Metadata]:
        """What is stored at the paths."""
        return [each for each in map(self.__getitem__, paths) if each is not None]


def is_auxiliary(metadata: Metadata) -> bool:
    """Whether a resource is an ACL or a description."""
    return metadata.kind in (ResourceKind.ACL, ResourceKind.DESCRIPTION)
