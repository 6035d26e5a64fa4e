"""A browser's side of Web Push, written from RFC 8188, RFC 8291 and RFC 8292 with nothing of the
server: a subscription, what it decrypts, and whether a token is signed by the key of its header."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

P256 = ec.SECP256R1()


def encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def private_key(text: str) -> ec.EllipticCurvePrivateKey:
    """The key with this number in base64url."""
    return ec.derive_private_key(int.from_bytes(decode(text), "big"), P256)


def public_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, for no more than one block."""
    extracted = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)[:length]


@dataclass(frozen=True)
class Subscription:
    """What a browser gives a server, and keeps."""

    endpoint: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(P256))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def sent(self) -> dict[str, str]:
        """The members that the page sends."""
        return {
            "endpoint": self.endpoint,
            "p256dh": encode(public_bytes(self.key)),
            "auth": encode(self.auth),
        }

    def decrypted(self, body: bytes) -> bytes:
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert len(record) <= size
        peer = ec.EllipticCurvePublicKey.from_encoded_point(P256, sender)
        info = b"WebPush: info\0" + public_bytes(self.key) + sender
        keying = _hkdf(self.auth, self.key.exchange(ec.ECDH(), peer), info, 32)
        key = _hkdf(salt, keying, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _hkdf(salt, keying, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert padded[-1:] == b"\x02"
        return padded[:-1]


def vapid_claims(authorization: str, server_key: str) -> Any:  # noqa: ANN401 - JSON
    """The claims of the token, which the key must have signed. Raises InvalidSignature."""
    scheme, _, rest = authorization.partition(" ")
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    assert scheme == "vapid"
    assert fields["k"] == server_key
    header, claims, signature = fields["t"].split(".")
    assert json.loads(decode(header))["alg"] == "ES256"
    r, s = (int.from_bytes(decode(signature)[i : i + 32], "big") for i in (0, 32))
    public = ec.EllipticCurvePublicKey.from_encoded_point(P256, decode(server_key))
    public.verify(encode_dss_signature(r, s), f"{header}.{claims}".encode(), ec.ECDSA(SHA256()))
    return json.loads(decode(claims))


__all__ = ["InvalidSignature", "Subscription", "decode", "encode", "private_key", "vapid_claims"]
