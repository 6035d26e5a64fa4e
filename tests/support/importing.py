"""A source of resources for imports, from what a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from podstead.core.identifiers import ResourcePath
from podstead.resources.importing.values import ImportedResource


def imported(
    path: str,
    content: str | bytes | None = None,
    content_type: str = "text/turtle",
    *,
    modified_ms: int | None = None,
    from_url: str | None = None,
) -> ImportedResource:
    """A resource with that content; ``None`` for a container without any."""
    octets = content.encode() if isinstance(content, str) else content

    async def read() -> AsyncIterator[bytes]:
        yield octets or b""

    return ImportedResource(
        ResourcePath(path),
        content_type,
        None if octets is None else read,
        created_ms=modified_ms,
        modified_ms=modified_ms,
        from_url=from_url,
    )


class Resources:
    """Resources to import. With ``breaks_after``, reading breaks off there."""

    def __init__(
        self, resources: Iterable[ImportedResource], *, breaks_after: int | None = None
    ) -> None:
        self._resources = list(resources)
        self._breaks_after = breaks_after

    async def resources(self) -> AsyncIterator[ImportedResource]:
        for index, resource in enumerate(self._resources):
            if index == self._breaks_after:
                raise InterruptedError
            yield resource
