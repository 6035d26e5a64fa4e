"""The descriptions of a storage and of the server, for programs (P-32, P-36)."""

from __future__ import annotations

from collections.abc import Iterable

from podstead.core.vocab import (
    DCTERMS_TITLE,
    PIM_STORAGE,
    PIM_STORAGE_CLASS,
    RDF_TYPE,
    SOLID_NOTIFICATION_GATEWAY,
)
from podstead.rdf.graph import Graph, Iri, Literal

SERVER_TITLE = "Podstead"


def storage_description(root_url: str, *, notification_gateway: str) -> Graph:
    """The description of the storage whose root container has this URL.

    ``notification_gateway`` is the URL at which clients of older protocols subscribe (N-25).
    """
    storage = Iri(root_url)
    return Graph(
        [
            (storage, Iri(RDF_TYPE), Iri(PIM_STORAGE_CLASS)),
            (storage, Iri(SOLID_NOTIFICATION_GATEWAY), Iri(notification_gateway)),
        ]
    )


def server_description(
    server_url: str, *, storage_urls: Iterable[str], notification_gateway: str
) -> Graph:
    """The description of the server at this URL, with the given storages.

    All statements have one subject, because applications with solid-client read only the first
    subject of the document.
    """
    server = Iri(server_url)
    return Graph(
        [
            (server, Iri(DCTERMS_TITLE), Literal(SERVER_TITLE)),
            (server, Iri(SOLID_NOTIFICATION_GATEWAY), Iri(notification_gateway)),
            *((server, Iri(PIM_STORAGE), Iri(url)) for url in storage_urls),
        ]
    )
