"""What people have starred, as the pages show it."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from podstead.core.identifiers import ResourcePath, is_container
from podstead.web.pages.addresses import files_url, shown_name
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

    async def rows(self, page: PageRequest, *, limit: int) -> Sequence[tuple[str, str, bool]]:
        """The same as lists show it: the address, the name, and whether it is a folder."""
        return [
            (files_url(each), shown_name(each), is_container(each))
            for each in await self.newest(page, limit=limit)
        ]
