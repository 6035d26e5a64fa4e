"""Statements of identity, and ways to send them."""

from __future__ import annotations

from tests.support.application import BASE
from tests.support.asgi import Answer, Client
from tests.support.rdf import N_TRIPLES, TURTLE, Triples, triples, written

PREFIXES = """\
@prefix cert: <http://www.w3.org/ns/auth/cert#>.
@prefix owl: <http://www.w3.org/2002/07/owl#>.
@prefix pim: <http://www.w3.org/ns/pim/space#>.
@prefix schema: <https://schema.org/>.
@prefix sec: <https://w3id.org/security#>.
@prefix solid: <http://www.w3.org/ns/solid/terms#>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>.
"""

IDENTITY = {
    "issuer": "<#me> solid:oidcIssuer <https://evil.example/>.",
    "key without a name": '<#me> cert:key [ cert:modulus "00ff"; cert:exponent 65537 ].',
    "key with a name": '<#me> cert:key <#k>. <#k> cert:modulus "00ff"; cert:exponent 65537.',
    "same as": "<#me> owl:sameAs <did:nostr:00ff>.",
    "schema same as": "<#me> schema:sameAs <https://evil.example/#me>.",
    "verification method": '<#me> sec:verificationMethod [ sec:publicKeyMultibase "z6Mk" ].',
    "authentication": '<#me> sec:authenticationMethod <#vm>. <#vm> sec:publicKeyMultibase "z6Mk".',
    "assertion": "<#me> sec:assertionMethod <https://evil.example/#key>.",
    "storage": "<#me> pim:storage <https://evil.example/>.",
    "of another name in the document": "<#she> solid:oidcIssuer <https://evil.example/>.",
    "of the document itself": "<> solid:oidcIssuer <https://evil.example/>.",
}


def at(path: str, turtle: str) -> Triples:
    return triples(PREFIXES + turtle, TURTLE, BASE + path)


async def put(client: Client, path: str, content: Triples, content_type: str = TURTLE) -> Answer:
    return await client.put(path, written(content, content_type), content_type)


async def patch(client: Client, path: str, verb: str, content: Triples, kind: str) -> Answer:
    """PATCH triples in (``insert``) or out (``delete``)."""
    lines = written(content, N_TRIPLES)
    if kind == "text/n3":
        prefix = "@prefix solid: <http://www.w3.org/ns/solid/terms#>."
        body = f"{prefix} _:p a solid:InsertDeletePatch; solid:{verb}s {{ {lines} }}."
    else:
        body = f"{verb.upper()} DATA {{ {lines} }}"
    headers = {"Content-Type": kind}
    return await client.request("PATCH", path, headers=headers, body=body.encode())
