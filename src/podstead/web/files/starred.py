"""What people have starred, as the pages show it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from podstead.core.identifiers import ResourcePath
from podstead.web.pages.request import PageRequest


class StarredResources:
    """What people have starred. All members have a default for which nobody has."""

    async def of(self, page: PageRequest) -> AbstractSet[ResourcePath]:
        """The paths that the person of the page has starred; there may be nothing at them. Raises
        StorageError."""
        del page
        return frozenset()

    async def newest(self, page: PageRequest, *, limit: int) -> Sequence[ResourcePath]:
        """What the person has starred last and may read. Raises ServerTrouble."""
        del page, limit
        return ()
