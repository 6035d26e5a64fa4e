"""What do a storage, and the server that holds it, say of themselves to programs? (P-32, P-36)"""

from __future__ import annotations

from collections.abc import Iterable

from podstead.core.vocab import (
    DCTERMS_TITLE,
    PIM_STORAGE,
    PIM_STORAGE_CLASS,
    RDF_TYPE,
    SOLID_NOTIFICATION_GATEWAY,
)
from podstead.rdf.graph import Graph
from podstead.rdf.terms import Iri, Literal

SERVER_TITLE = "Podstead"


def storage_description(root_url: str, *, notification_gateway: str) -> Graph:
    """The description of the storage whose root container has this URL.

    ``notification_gateway`` is where clients of older protocols ask for notifications (N-25).
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
    """The description of the server at this URL, with the storages that it names.

    Everything is said of one subject: applications of solid-client read the first subject of the
    document and look for nothing else in it.
    """
    server = Iri(server_url)
    return Graph(
        [
            (server, Iri(DCTERMS_TITLE), Literal(SERVER_TITLE)),
            (server, Iri(SOLID_NOTIFICATION_GATEWAY), Iri(notification_gateway)),
            *((server, Iri(PIM_STORAGE), Iri(url)) for url in storage_urls),
        ]
    )
