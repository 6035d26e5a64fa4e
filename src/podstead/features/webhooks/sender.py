"""Authenticates the server to the receivers of webhooks with a token and a proof (N-21).

In WebhookChannel2023 the sender authenticates with a WebID. The server has one of its own, whose
document names the server as its issuer, so a receiver that can verify Solid-OIDC tokens can verify
these. Where there is an identity provider its documents lead to the keys; where there is none, just
enough of them is served here.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from podstead.core import base64url
from podstead.core.clock import Clock, Randomness
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.vocab import RDF_TYPE, SOLID, SOLID_OIDC_ISSUER
from podstead.jose.proof import normalized_htu
from podstead.jose.tokens import Json, SigningKeyPair
from podstead.notifications.channel_types import SERVICES
from podstead.rdf.graph import Graph, Iri
from podstead.storage.keys import KeyStorage
from podstead.web import description_endpoints
from podstead.web.request import Request
from podstead.web.response import Response

if TYPE_CHECKING:  # loaded when a key signs
    from podstead.app.adapters.provider_keys import KeyFolder

SENDER: Final = ResourcePath(f"{SERVICES}sender")
"""The document about the sender of webhooks, whose WebID is ``#it``."""
OPENID_PATH: Final = ResourcePath("/.well-known/openid-configuration")
JWKS_PATH: Final = ResourcePath("/.well-known/jwks.json")
_AGENT: Final = "http://purl.org/dc/terms/Agent"
LIFETIME_S: Final = 20 * 60
"""How long a token is valid."""
_ID_BYTES: Final = 16


_ALGORITHM: Final = "ES256"


class SenderKeys:
    """The keys that sign tokens of this server, those of the identity provider. A server without
    one creates such keys when it sends the first message."""

    def __init__(self, keys: KeyStorage, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock
        self._folder: KeyFolder | None = None
        self._has_keys = False

    async def signer(self) -> SigningKeyPair:
        """The current signing pair, created if necessary, whose public key is in the key set of the
        server. Raises StorageError."""
        folder = self._load()
        if not await self._exists(folder) or (await folder.current()).wants_new(_ALGORITHM):
            await asyncio.to_thread(folder.maintain)
        return (await folder.current()).signer(_ALGORITHM)

    async def published(self) -> Sequence[Json]:
        """The public keys, if there are any. Raises StorageError."""
        folder = self._load()
        return (await folder.current()).published() if await self._exists(folder) else ()

    async def _exists(self, folder: KeyFolder) -> bool:
        """Whether there are keys; once there are, they stay."""
        if not self._has_keys:
            if self._keys.is_remote:
                self._has_keys = await asyncio.to_thread(folder.exists)
            else:
                self._has_keys = folder.exists()
        return self._has_keys

    def _load(self) -> KeyFolder:
        if self._folder is None:
            from podstead.app.adapters.provider_keys import KeyFolder  # loads cryptography

            self._folder = KeyFolder(self._keys, self._clock)
        return self._folder


class Sender:
    """Creates the credentials of messages."""

    def __init__(
        self, *, issuer: str, web_id: str, keys: SenderKeys, clock: Clock, randomness: Randomness
    ) -> None:
        """``issuer`` is the base URL, without a slash at its end."""
        self.web_id = web_id
        self._issuer = issuer
        self._keys = keys
        self._clock = clock
        self._randomness = randomness
        self._own: SigningKeyPair | None = None

    async def credentials(self, send_to: str) -> Mapping[str, str]:
        """The header fields that authenticate one POST to ``send_to``."""
        now_s = self._clock.now_ms() // 1000
        signer = await self._keys.signer()
        if self._own is None:
            self._own = SigningKeyPair.generate("ES256")
        token = signer.sign(self._claims(self._own, now_s), media_type="at+jwt")
        proof = self._own.prove(
            {
                "htu": normalized_htu(send_to) or send_to,
                "htm": "POST",
                "iat": now_s,
                "jti": self._randomness.token_hex(_ID_BYTES),
                "ath": _hash(token),
            }
        )
        return {"Authorization": f"DPoP {token}", "DPoP": proof}

    def _claims(self, own: SigningKeyPair, now_s: int) -> Mapping[str, object]:
        return {
            "iss": self._issuer,
            "sub": self.web_id,
            "webid": self.web_id,
            "azp": self.web_id,
            "client_id": self.web_id,
            "aud": [self.web_id, "solid"],
            "cnf": {"jkt": own.public.thumbprint},
            "iat": now_s,
            "exp": now_s + LIFETIME_S,
            "jti": self._randomness.token_hex(_ID_BYTES),
        }


def _hash(token: str) -> str:
    digest = hashlib.sha256(token.encode("ascii")).digest()
    return base64url.encoded(digest)


class SenderEndpoint:
    """Tells who the sender is."""

    def __init__(self, *, web_id: str, issuer: str, keys: SenderKeys) -> None:
        sender = Iri(web_id)
        said = [
            (sender, Iri(RDF_TYPE), Iri(_AGENT)),
            (sender, Iri(SOLID_OIDC_ISSUER), Iri(issuer)),
        ]
        self._document = description_endpoints.GeneratedDocument(
            Graph(said), prefixes={"solid": SOLID}
        )
        self._keys = keys
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
        return description_endpoints.generated_document(request, agent, self._document)

    async def issuer(self, request: Request, _: Identity | None) -> Response:
        """Where the keys are, of a server that signs nobody in (OpenID Connect Discovery)."""
        return description_endpoints.public_document(request, self._issuer)

    async def key_set(self, request: Request, _: Identity | None) -> Response:
        """The keys. Raises StorageError."""
        return description_endpoints.public_document(
            request, msgspec.json.encode({"keys": await self._keys.published()})
        )
