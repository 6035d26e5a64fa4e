"""What an answer depends on, where asking the store costs a round trip.

Before a request is handled, the store reads ahead what the decision about it needs. What the
request has read by its end are the dependencies of its response. The same request, sent again, has
the same response while reading them ahead again finds them as they were.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Metadata


class Dependencies(msgspec.Struct, frozen=True):
    """Everything in the store that one response depends on."""

    registries: int | None
    """Changes whenever a pod or token does; ``None`` if none was asked for."""
    metadata: Mapping[ResourcePath, Metadata | None]
    """Of all paths that were read, the target of the request first; ``None`` where there is
    nothing."""


class Prefetch(Protocol):
    """What is read ahead for one request, as an asynchronous context manager around its
    handling."""

    async def __aenter__(self) -> object:
        """Read, unless that has been done. Raises StorageError, Overloaded."""

    async def __aexit__(self, *error: object) -> None: ...

    async def confirms(self, dependencies: Dependencies) -> bool:
        """Read, and say whether all of these are as they were; also False if they cannot be read.

        Entering the context then raises the error.
        """

    def dependencies(self) -> Dependencies | None:
        """What the request has read so far; ``None`` if reading ahead cannot confirm all of it."""


ReadAhead = Callable[[Iterable[ResourcePath]], Prefetch]
"""Reads what the decision about a request needs. The first path is the target."""
