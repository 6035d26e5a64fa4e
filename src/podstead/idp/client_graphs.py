"""What does a client say about itself where its document is RDF, and not the JSON of Solid-OIDC?

Each property of the vocabulary bears the name of a member of the JSON (Solid-OIDC section 5.1), so
a graph becomes what the JSON would be, and is then checked in the same way. Pure.
"""

from __future__ import annotations

from podstead.core.vocab import OIDC
from podstead.jose.strict_json import Json
from podstead.rdf.graph import Graph
from podstead.rdf.terms import Iri, Literal


def client_members(graph: Graph, client_id: str) -> Json:
    """The members of the JSON that says the same about the client.

    Addresses may stand as IRIs or as texts. A graph that does not speak of the client has none, not
    even its ``client_id``.
    """
    members: Json = {}
    for predicate, objects in graph.about(Iri(client_id)).items():
        name = predicate.value.removeprefix(OIDC)
        if name != predicate.value:
            texts = [term.value for term in objects if isinstance(term, Iri | Literal)]
            members[name] = texts[0] if len(texts) == 1 else texts
    return {**members, "client_id": client_id} if members else {}
