"""Authenticates the server to the receivers of webhooks with a token and a proof (N-21).

In WebhookChannel2023 the sender authenticates with a WebID. The server has one of its own, whose
document names the server as its issuer, so a receiver that can verify Solid-OIDC tokens can verify
these.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Final, Protocol

from podstead.core.clock import Clock, Randomness
from podstead.jose.proof import normalized_htu
from podstead.jose.tokens import SigningKeyPair

LIFETIME_S: Final = 20 * 60
"""How long a token is valid."""
_ID_BYTES: Final = 16


class SenderKeys(Protocol):
    """Provides the keys that sign tokens of this server."""

    async def signer(self) -> SigningKeyPair:
        """The current key pair for signing; its public key is in the server's key set. Raises
        StorageError."""


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
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
