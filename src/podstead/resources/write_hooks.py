"""Hooks keep the records that other parts of the server have about resources.

The records are committed in the same write as what they are about, so the two are always
consistent. Those about documents are derived from the graph that was parsed for the write anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.rdf.graph import Dataset
from podstead.storage.record_store import Changes
from podstead.storage.records import Precondition, Record, Write

CommitListener = Callable[[Write], None]
"""Called with each write of a request to a resource when it has been committed. Raises nothing."""


class WriteHook(Protocol):
    """Derives the records that are committed with a write of a document."""

    def applies_to(self, path: ResourcePath) -> bool:
        """Whether a document at the path has such records. Called for every write; must be
        cheap."""

    async def of(self, path: ResourcePath, content: Dataset) -> Changes[None]:
        """The record changes for giving the document at the path this content, which is empty if
        the document is deleted.

        Raises StorageError.
        """


class ContainerHook(Protocol):
    """Keeps the records that belong to containers."""

    def of_deletion(self, container: ResourcePath) -> Sequence[Record]:
        """The record changes for deleting a container: one that is created later at the path must
        not get the records of the first one."""

    async def of_move(self, containers: Sequence[ResourcePath]) -> Sequence[Precondition]:
        """The preconditions under which these containers of one storage can be moved. Raises
        Conflict if they cannot, StorageError."""

    async def of_renaming(
        self, root: ResourcePath, renamed: Callable[[ResourcePath], ResourcePath]
    ) -> Changes[None]:
        """The record changes for renaming the pod with this root container; ``renamed`` gives the
        new path of each resource. Raises StorageError."""
