"""Recognizing requests of git's smart HTTP protocol (gitprotocol-http).

For a container ``<c>/``, ``<c>/info/refs?service=…`` advertises references, ``<c>/git-upload-pack``
serves fetches, and ``<c>/git-receive-pack`` receives pushes. Other methods and queries of these
URLs, and the files of the dumb protocol, are ordinary resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from podstead.core.identifiers import ResourcePath, storage_root

_ADVERTISEMENT: Final = "info/refs"


class Service(Enum):
    """A service of the protocol, named after the program that implements it."""

    UPLOAD_PACK = "git-upload-pack"
    """Clone and fetch."""
    RECEIVE_PACK = "git-receive-pack"
    """Push."""


_SERVICES: Final = {service.value: service for service in Service}
_QUERIES: Final = {f"service={service.value}".encode("ascii"): service for service in Service}


@dataclass(frozen=True, slots=True)
class GitRequest:
    """One request of the protocol; ``advertises`` requests the references and has no content."""

    container: ResourcePath
    service: Service
    advertises: bool

    @property
    def is_push(self) -> bool:
        """Whether the request needs the modes for a push, even for the advertisement."""
        return self.service is Service.RECEIVE_PACK

    @property
    def path_in_repository(self) -> str:
        """The path after the container's path."""
        return _ADVERTISEMENT if self.advertises else self.service.value

    @property
    def query(self) -> str:
        return f"service={self.service.value}" if self.advertises else ""

    @property
    def content_type(self) -> str:
        """The media type of the content."""
        return f"application/x-{self.service.value}-request"


def git_request(method: str, path: ResourcePath, query: bytes) -> GitRequest | None:
    """Parse a request; ``None`` if it is not one of git's protocol."""
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
