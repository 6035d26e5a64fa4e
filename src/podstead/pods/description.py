"""What does a storage say of itself to programs? (P-32)"""

from __future__ import annotations

from podstead.core.vocab import PIM_STORAGE_CLASS, RDF_TYPE
from podstead.rdf.graph import Graph
from podstead.rdf.terms import Iri


def storage_description(root_url: str) -> Graph:
    """The description of the storage whose root container has this URL."""
    return Graph([(Iri(root_url), Iri(RDF_TYPE), Iri(PIM_STORAGE_CLASS))])
