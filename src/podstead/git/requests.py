"""Does a request speak git's smart HTTP protocol, to which container, and what does it need there?

A container ``<c>/`` is asked at ``<c>/info/refs?service=…`` what it has, and at
``<c>/git-upload-pack`` and ``<c>/git-receive-pack`` to give and to take (gitprotocol-http). Nothing
else is git's: other methods and queries of these URLs, and the files of the dumb protocol, are
resources as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from podstead.core.identifiers import ResourcePath, storage_root

_ADVERTISEMENT: Final = "info/refs"


class Service(Enum):
    """What git asks of a server, by the name of the program that answers."""

    UPLOAD_PACK = "git-upload-pack"
    """Clone and fetch."""
    RECEIVE_PACK = "git-receive-pack"
    """Push."""


_SERVICES: Final = {service.value: service for service in Service}
_QUERIES: Final = {f"service={service.value}".encode("ascii"): service for service in Service}


@dataclass(frozen=True, slots=True)
class GitRequest:
    """One request of the protocol. ``advertises`` asks what there is; else content follows."""

    container: ResourcePath
    service: Service
    advertises: bool

    @property
    def is_push(self) -> bool:
        """Whether it needs the rights of a writer: also to be told what a push may replace."""
        return self.service is Service.RECEIVE_PACK

    @property
    def path_in_repository(self) -> str:
        """What stands behind the container's path."""
        return _ADVERTISEMENT if self.advertises else self.service.value

    @property
    def query(self) -> str:
        return f"service={self.service.value}" if self.advertises else ""

    @property
    def content_type(self) -> str:
        """The type that the content has."""
        return f"application/x-{self.service.value}-request"


def git_request(method: str, path: ResourcePath, query: bytes) -> GitRequest | None:
    """The request of git that this is, ``None`` for any other."""
    if method == "GET":
        service = _QUERIES.get(query)
        container = path.removesuffix(_ADVERTISEMENT)
    elif method == "POST" and not query:
        service = _SERVICES.get(path[path.rindex("/") + 1 :])
        container = path if service is None else path.removesuffix(service.value)
    else:
        return None
    if service is None or container == path or not container.endswith("/"):
        return None
    place = ResourcePath(container)
    if storage_root(place) is None:
        return None
    return GitRequest(place, service, advertises=method == "GET")
