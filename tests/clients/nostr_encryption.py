"""What a client of Nostr encrypts, read without its library: NIP-44 and NIP-04 on cryptography.

The oracle of the documented round trip; it stands on the vectors of NIP-44 itself.
"""

from __future__ import annotations

import base64
import hmac

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES, ChaCha20
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.padding import PKCS7

_VERSION = b"\x02"
_LONG = 65536
"""From this many bytes on, the length takes four bytes behind two that are zero."""


class Unreadable(Exception):
    """The payload is not what the NIP describes, or not of these two keys."""


def shared_x(secret: int, public: str) -> bytes:
    """The x of the point that both have. Raises ValueError for what is no key."""
    point = ec.EllipticCurvePublicKey.from_encoded_point(
        ec.SECP256K1(), b"\x02" + bytes.fromhex(public)
    )
    return ec.derive_private_key(secret, ec.SECP256K1()).exchange(ec.ECDH(), point)


# --- NIP-44 -----------------------------------------------------------------------------------


def conversation_key(secret: int, public: str) -> bytes:
    """The key of two keys, the same from either side."""
    return hmac.digest(b"nip44-v2", shared_x(secret, public), "sha256")


def message_keys(conversation: bytes, nonce: bytes) -> tuple[bytes, bytes, bytes]:
    """The key and the nonce of ChaCha20, and the key of the HMAC."""
    keys = HKDFExpand(SHA256(), 76, nonce).derive(conversation)
    return keys[:32], keys[32:44], keys[44:]


def padded_length(length: int) -> int:
    if length <= 32:
        return 32
    power = 1 << (length - 1).bit_length()
    chunk = max(32, power // 8)
    return -(-length // chunk) * chunk


def encrypt_44(text: str, conversation: bytes, nonce: bytes) -> str:
    content = text.encode()
    if not content:
        raise ValueError("NIP-44 encrypts at least one byte")
    size = len(content)
    prefix = size.to_bytes(2, "big") if size < _LONG else size.to_bytes(6, "big")
    padded = prefix + content.ljust(padded_length(size), b"\0")
    key, chacha_nonce, hmac_key = message_keys(conversation, nonce)
    sealed = _chacha(key, chacha_nonce, padded)
    mac = hmac.digest(hmac_key, nonce + sealed, "sha256")
    return base64.b64encode(_VERSION + nonce + sealed + mac).decode()


def decrypt_44(payload: str, conversation: bytes) -> str:
    """Raises Unreadable."""
    if len(payload) < 132:
        raise Unreadable("invalid payload length")
    try:
        content = base64.b64decode(payload, validate=True)
    except ValueError as error:
        raise Unreadable("invalid base64") from error
    version, nonce, sealed, mac = content[:1], content[1:33], content[33:-32], content[-32:]
    if version != _VERSION:
        raise Unreadable("unknown encryption version")
    key, chacha_nonce, hmac_key = message_keys(conversation, nonce)
    if not hmac.compare_digest(hmac.digest(hmac_key, nonce + sealed, "sha256"), mac):
        raise Unreadable("invalid MAC")
    return _unpadded(_chacha(key, chacha_nonce, sealed)).decode()


def _unpadded(padded: bytes) -> bytes:
    size, start = int.from_bytes(padded[:2], "big"), 2
    if not size:
        size, start = int.from_bytes(padded[2:6], "big"), 6
        if size < _LONG:
            raise Unreadable("invalid padding")
    if len(padded) != start + padded_length(size) or any(padded[start + size :]):
        raise Unreadable("invalid padding")
    return padded[start : start + size]


def _chacha(key: bytes, nonce: bytes, content: bytes) -> bytes:
    """ChaCha20 of RFC 8439, whose counter of 32 bits begins at zero."""
    return Cipher(ChaCha20(key, bytes(4) + nonce), None).encryptor().update(content)


# --- NIP-04 -----------------------------------------------------------------------------------


def encrypt_04(text: str, shared: bytes, iv: bytes) -> str:
    pad = PKCS7(128).padder()
    encryptor = Cipher(AES(shared), CBC(iv)).encryptor()
    sealed = encryptor.update(pad.update(text.encode()) + pad.finalize()) + encryptor.finalize()
    return f"{base64.b64encode(sealed).decode()}?iv={base64.b64encode(iv).decode()}"


def decrypt_04(payload: str, shared: bytes) -> str:
    """Raises Unreadable; a wrong key may give a wrong text instead, since nothing is signed."""
    sealed, _, iv = payload.partition("?iv=")
    try:
        decryptor = Cipher(AES(shared), CBC(base64.b64decode(iv, validate=True))).decryptor()
        padded = decryptor.update(base64.b64decode(sealed, validate=True)) + decryptor.finalize()
        pad = PKCS7(128).unpadder()
        return (pad.update(padded) + pad.finalize()).decode()
    except ValueError as error:
        raise Unreadable("not of these keys") from error
