"""Encrypts messages for browsers (RFC 8291), as one record of aes128gcm (RFC 8188).

The one place of the feature that knows the library of ciphers, which is loaded with the first
message.
"""

from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SALT_BYTES: Final = 16
SECRET_BYTES: Final = 16
_RECORD_BYTES: Final = 4096
_LAST_RECORD: Final = b"\x02"


def is_key(key: bytes) -> bool:
    """Whether these bytes are an uncompressed point of P-256."""
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    except ValueError:
        return False
    return len(key) == 65


def new_sender() -> ec.EllipticCurvePrivateKey:
    """A key pair for one message."""
    return ec.generate_private_key(ec.SECP256R1())


def encrypted(
    content: bytes, *, key: bytes, secret: bytes, sender: ec.EllipticCurvePrivateKey, salt: bytes
) -> bytes:
    """The content for the browser whose ``key`` and ``secret`` these are: what its subscription
    calls ``p256dh`` and ``auth``. ``sender`` and ``salt`` are used once. Raises ValueError if the
    key is none, or the content longer than a record."""
    receiver = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    own = sender.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    shared = sender.exchange(ec.ECDH(), receiver)
    keying = _derived(shared, secret, b"WebPush: info\0" + key + own, 32)
    cipher = AESGCM(_derived(keying, salt, b"Content-Encoding: aes128gcm\0", 16))
    nonce = _derived(keying, salt, b"Content-Encoding: nonce\0", 12)
    record = cipher.encrypt(nonce, content + _LAST_RECORD, None)
    if len(record) > _RECORD_BYTES:
        raise ValueError("The content is too long for one record")
    return salt + _RECORD_BYTES.to_bytes(4, "big") + bytes([len(own)]) + own + record


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)
