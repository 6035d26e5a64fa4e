"""Which records go with a document? A port for other parts that look documents up by what they say.

Such a part keeps its own records of what stands in some documents. They are put in the very write
that puts the document, so nothing can come in between, and they are worked out from the graph that
was parsed for that write anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.rdf.graph import Dataset
from podstead.storage.records import Record


class WriteHook(Protocol):
    """Says which records a write of a document takes along."""

    def applies_to(self, path: ResourcePath) -> bool:
        """Whether a document at the path has any. Asked of every write, so without any reading."""

    async def of(self, path: ResourcePath, said: Dataset) -> Sequence[Record]:
        """The changes of records when the document at the path is to say this. Raises
        StorageError."""
