"""Write hooks derive records from documents, by which other parts of the server index content.

The records are committed in the same write as the document, so the two are always consistent, and
they are derived from the graph that was parsed for that write anyway.
"""

from __future__ import annotations

from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.rdf.graph import Dataset
from podstead.storage.record_store import Changes


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
