"""``/.notifications/sender``: who sends webhooks, and how can receivers verify it? (N-21)

The sender is a WebID of the server whose issuer is the server itself. Where there is an identity
provider its documents lead to the keys; where there is none, just enough of them is served here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.vocab import RDF_TYPE, SOLID, SOLID_OIDC_ISSUER
from podstead.jose.tokens import Json
from podstead.rdf.graph import Graph, Iri
from podstead.web.generated_document import GeneratedDocument, generated_document
from podstead.web.public_document import public_document
from podstead.web.request import Request
from podstead.web.response import Response

OPENID_PATH: Final = ResourcePath("/.well-known/openid-configuration")
JWKS_PATH: Final = ResourcePath("/.well-known/jwks.json")
_AGENT: Final = "http://purl.org/dc/terms/Agent"

Published = Callable[[], Awaitable[Sequence[Json]]]
"""The public keys of the server, as JWKs. Raises StorageError."""


class SenderEndpoint:
    """Tells who the sender is."""

    def __init__(self, *, web_id: str, issuer: str, published: Published) -> None:
        sender = Iri(web_id)
        said = [
            (sender, Iri(RDF_TYPE), Iri(_AGENT)),
            (sender, Iri(SOLID_OIDC_ISSUER), Iri(issuer)),
        ]
        self._document = GeneratedDocument(Graph(said), prefixes={"solid": SOLID})
        self._published = published
        self._issuer = msgspec.json.encode(
            {
                "issuer": issuer,
                "jwks_uri": issuer + JWKS_PATH,
                "response_types_supported": [],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256", "RS256"],
            }
        )

    async def get(self, request: Request, agent: Identity | None) -> Response:
        """The sender's document. Raises NotAcceptable, PreconditionFailed."""
        return generated_document(request, agent, self._document)

    async def issuer(self, request: Request, _: Identity | None) -> Response:
        """Where the keys are, of a server that signs nobody in (OpenID Connect Discovery)."""
        return public_document(request, self._issuer)

    async def key_set(self, request: Request, _: Identity | None) -> Response:
        """The keys. Raises StorageError."""
        return public_document(request, msgspec.json.encode({"keys": await self._published()}))
