"""Which verification of signatures is there? libsecp256k1 where it has a build, else our own."""

from __future__ import annotations

from typing import Final

from podstead.nostr import bip340

try:
    from coincurve import PublicKeyXOnly

    IS_NATIVE: Final = True
    """Whether a verification takes microseconds; otherwise it takes milliseconds."""
except ImportError:  # pragma: no cover - the interpreter decides
    IS_NATIVE = False  # type: ignore[misc]


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature of the message is one by this x-only public key (BIP-340)."""
    if IS_NATIVE:
        return _verify_natively(public_key, message, signature)
    return bip340.verify(public_key, message, signature)


def _verify_natively(public_key: bytes, message: bytes, signature: bytes) -> bool:
    # The library reads as many bytes as there should be, whatever there are.
    if len(public_key) != bip340.KEY_BYTES or len(signature) != bip340.SIGNATURE_BYTES:
        return False
    try:
        return bool(PublicKeyXOnly(public_key).verify(signature, message))
    except ValueError:  # no point of the curve
        return False
