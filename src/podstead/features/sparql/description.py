"""SPARQL 1.1 Service Description of the service of a container."""

from typing import Final

from podstead.rdf.graph import BlankNode, Graph, Iri, Triple
from podstead.rdf.sparql_query import GRAPH_TYPES, RESULT_TYPES

_SD: Final = "http://www.w3.org/ns/sparql-service-description#"
_TYPE: Final = Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_FORMATS: Final = "http://www.w3.org/ns/formats/"
_FORMAT_NAMES: Final = {
    "application/sparql-results+json": "SPARQL_Results_JSON",
    "application/sparql-results+xml": "SPARQL_Results_XML",
    "text/csv": "SPARQL_Results_CSV",
    "text/tab-separated-values": "SPARQL_Results_TSV",
    "text/turtle": "Turtle",
    "application/ld+json": "JSON-LD",
    "application/n-triples": "N-Triples",
    "application/n-quads": "N-Quads",
    "application/trig": "TriG",
    "text/n3": "N3",
    "application/rdf+xml": "RDF_XML",
}


def described_service(url: str) -> Graph:
    """The description of the service at a URL."""
    service, dataset, default = Iri(url), BlankNode("dataset"), BlankNode("default")
    triples: list[Triple] = [
        (service, _TYPE, Iri(f"{_SD}Service")),
        (service, Iri(f"{_SD}endpoint"), service),
        (service, Iri(f"{_SD}supportedLanguage"), Iri(f"{_SD}SPARQL11Query")),
        (service, Iri(f"{_SD}feature"), Iri(f"{_SD}UnionDefaultGraph")),
        (service, Iri(f"{_SD}defaultDataset"), dataset),
        (dataset, _TYPE, Iri(f"{_SD}Dataset")),
        (dataset, Iri(f"{_SD}defaultGraph"), default),
        (default, _TYPE, Iri(f"{_SD}Graph")),
    ]
    formats = [Iri(_FORMATS + _FORMAT_NAMES[each]) for each in (*RESULT_TYPES, *GRAPH_TYPES)]
    triples += [(service, Iri(f"{_SD}resultFormat"), each) for each in formats]
    return Graph(triples)
