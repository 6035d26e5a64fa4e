"""Converts a client's RDF document to the JSON of Solid-OIDC.

Each property of the vocabulary has the name of a member of the JSON (Solid-OIDC section 5.1). The
graph is therefore converted to the equivalent JSON and then validated in the same way. Pure.
"""

from __future__ import annotations

from podstead.core.vocab import OIDC
from podstead.jose.tokens import Json
from podstead.rdf.graph import Graph, Iri, Literal


def client_members(graph: Graph, client_id: str) -> Json:
    """The members of the equivalent JSON.

    URLs may be IRIs or literals. A graph that says nothing about the client yields no members, not
    even ``client_id``.
    """
    members: Json = {}
    for predicate, objects in graph.about(Iri(client_id)).items():
        name = predicate.value.removeprefix(OIDC)
        if name != predicate.value:
            texts = [term.value for term in objects if isinstance(term, Iri | Literal)]
            members[name] = texts[0] if len(texts) == 1 else texts
    return {**members, "client_id": client_id} if members else {}
