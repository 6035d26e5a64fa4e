"""Signs and verifies this server's simple tokens (A-30 to A-33).

A token is ``base64url(JSON) "." base64url(HMAC-SHA256 of the first part)`` without padding. The
JSON is ``{"v":1,"jti","webId","iat","exp"}``; a token that does not expire has no ``exp``. Pure:
keys and time are parameters, and the caller checks whether a token has been revoked.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NewType

import msgspec

SigningKey = NewType("SigningKey", bytes)
"""A secret of at least :data:`MIN_KEY_BYTES`."""

MIN_KEY_BYTES = 32
MAX_TOKEN_CHARACTERS = 4096
_SIGNATURE_CHARACTERS = 43  # 32 bytes in base64url without padding


class InvalidToken(Exception):
    """The token is not one of this server, or has expired; ``str()`` is a fixed public phrase."""


class _Claims(msgspec.Struct, forbid_unknown_fields=True):
    v: int
    jti: str
    web_id: str = msgspec.field(name="webId")
    iat: int
    exp: int | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Claims)


@dataclass(frozen=True, slots=True)
class VerifiedPodToken:
    """A token whose signature is valid and which has not expired. Times are Unix seconds."""

    token_id: str
    web_id: str
    issued_s: int
    expires_s: int | None


def make_token(
    key: SigningKey, *, token_id: str, web_id: str, issued_s: int, expires_s: int | None
) -> str:
    """Sign a token. With ``None`` as ``expires_s``, it does not expire (A-31)."""
    claims = _Claims(
        v=1,
        jti=token_id,
        web_id=web_id,
        iat=issued_s,
        exp=msgspec.UNSET if expires_s is None else expires_s,
    )
    payload = _encode(msgspec.json.encode(claims))
    return f"{payload}.{_sign(key, payload)}"


def verify_token(token: str, *, keys: Sequence[SigningKey], now_s: int) -> VerifiedPodToken:
    """Verify a token in the order of A-33: its form, its signature, then the JSON, then the time.

    ``keys`` are the current signing key and, after a rotation, the previous one. Raises
    InvalidToken.
    """
    payload, dot, signature = token.partition(".")
    if not dot or len(token) > MAX_TOKEN_CHARACTERS or len(signature) != _SIGNATURE_CHARACTERS:
        raise InvalidToken("Invalid token")
    if not token.isascii() or not _signed_by_any(keys, payload, signature):
        raise InvalidToken("Invalid token")
    try:
        claims = _decoder.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, msgspec.DecodeError) as error:
        raise InvalidToken("Invalid token") from error
    expires_s = None if claims.exp is msgspec.UNSET else claims.exp
    if claims.v != 1:
        raise InvalidToken("Invalid token")
    if expires_s is not None and now_s >= expires_s:
        raise InvalidToken("Access token expired")
    return VerifiedPodToken(
        token_id=claims.jti, web_id=claims.web_id, issued_s=claims.iat, expires_s=expires_s
    )


def _signed_by_any(keys: Sequence[SigningKey], payload: str, signature: str) -> bool:
    # Every key is tried, so that the time taken does not reveal which of them is in use.
    matches = [hmac.compare_digest(_sign(key, payload), signature) for key in keys]
    return any(matches)


def _sign(key: SigningKey, payload: str) -> str:
    return _encode(hmac.digest(key, payload.encode("ascii"), sha256))


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
