"""Signature verification with libsecp256k1 where it is available, else in Python."""

from __future__ import annotations

from typing import Final

from podstead.nostr import bip340

try:
    from coincurve import PublicKeyXOnly

    IS_NATIVE: Final = True
    """Whether verification is native and takes microseconds; otherwise it takes milliseconds."""
except ImportError:  # pragma: no cover - the interpreter decides
    IS_NATIVE = False  # type: ignore[misc]


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this x-only public key made the signature of the message (BIP-340)."""
    if IS_NATIVE:
        return _verify_natively(public_key, message, signature)
    return bip340.verify(public_key, message, signature)


def _verify_natively(public_key: bytes, message: bytes, signature: bytes) -> bool:
    # The library reads the expected number of bytes without checking the actual length.
    if len(public_key) != bip340.KEY_BYTES or len(signature) != bip340.SIGNATURE_BYTES:
        return False
    try:
        return bool(PublicKeyXOnly(public_key).verify(signature, message))
    except ValueError:  # not a point of the curve
        return False
