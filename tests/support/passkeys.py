"""An authenticator in software, by the words of WebAuthn Level 3 and with no code of the server's.

What it answers can be made wrong, part by part.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

Json = dict[str, Any]

PRESENT, VERIFIED, SYNCED, HAS_KEY = 0x01, 0x04, 0x08, 0x40


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class SoftAuthenticator:
    """Holds one passkey."""

    origin: str
    rp_id: str = "localhost"
    sign_count: int = 0
    """What the next signature says."""
    flags: int = PRESENT | VERIFIED
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    user_handle: str = ""
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    algorithm: int = -7

    def create(self, options: Mapping[str, Any], **wrong: Any) -> Json:  # noqa: ANN401 - JSON
        """What ``navigator.credentials.create()`` gives, as JSON; ``wrong`` are members of the
        client data, ``statement`` an attestation statement."""
        self.user_handle = options["user"]["id"]
        statement = wrong.pop("statement", ("none", {}))
        numbers = self.key.public_key().public_numbers()
        cose = {
            1: 2,
            3: self.algorithm,
            -1: 1,
            -2: numbers.x.to_bytes(32, "big"),
            -3: numbers.y.to_bytes(32, "big"),
        }
        length = len(self.credential_id).to_bytes(2, "big")
        attested = bytes(16) + length + self.credential_id + cbor2.dumps(cose)
        made = {
            "fmt": statement[0],
            "attStmt": statement[1],
            "authData": self._data(HAS_KEY) + attested,
        }
        response = {
            "clientDataJSON": self._client_data("webauthn.create", options, wrong),
            "attestationObject": encoded(cbor2.dumps(made)),
            "transports": ["internal"],
        }
        return self._credential(response)

    def get(self, options: Mapping[str, Any], **wrong: Any) -> Json:  # noqa: ANN401 - JSON
        """What ``navigator.credentials.get()`` gives, as JSON."""
        client_data = self._client_data("webauthn.get", options, wrong)
        data = self._data(0)
        signed = data + hashlib.sha256(decoded(client_data)).digest()
        response = {
            "clientDataJSON": client_data,
            "authenticatorData": encoded(data),
            "signature": encoded(self.key.sign(signed, ec.ECDSA(hashes.SHA256()))),
            "userHandle": self.user_handle,
        }
        return self._credential(response)

    def _data(self, flags: int) -> bytes:
        rp_hash = hashlib.sha256(self.rp_id.encode()).digest()
        return rp_hash + bytes([self.flags | flags]) + self.sign_count.to_bytes(4, "big")

    def _client_data(self, kind: str, options: Mapping[str, Any], wrong: Json) -> str:
        said = {
            "type": kind,
            "challenge": options["challenge"],
            "origin": self.origin,
            "crossOrigin": False,
        } | wrong
        return encoded(json.dumps(said).encode())

    def _credential(self, response: Json) -> Json:
        name = encoded(self.credential_id)
        return {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "response": response,
            "clientExtensionResults": {},
        }
