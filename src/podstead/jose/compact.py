"""Parsing compact tokens and verifying their signatures (RFC 7515, section 7.1).

Parsing and verifying are two steps, because the unverified claims decide which key is looked up. No
claim may be trusted before the signature has been verified.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry

from podstead.core.memoization import memoize_short_keys
from podstead.jose.errors import InvalidJose
from podstead.jose.keys import SIGNATURE_ALGORITHMS, PublicKey
from podstead.jose.strict_json import Json, read_object

# The library uses the name that RFC 9864 gives to EdDSA with the one curve supported here.
_REGISTERED: Final = {"EdDSA": "Ed25519"}
_REGISTRY: Final = JWSRegistry(algorithms=[_REGISTERED.get(a, a) for a in SIGNATURE_ALGORITHMS])
_ALGORITHMS: Final = {
    name: _REGISTRY.get_alg(_REGISTERED.get(name, name)) for name in SIGNATURE_ALGORITHMS
}
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

# The year 9999. Rejects larger values, including infinity, which is not a time.
_END_OF_TIME_S: Final = 253_402_300_800

# Header parameters that change what is signed or how it is parsed; none are supported here.
_NOT_UNDERSTOOD: Final = frozenset({"crit", "b64"})


@dataclass(frozen=True, slots=True)
class CompactToken:
    """A parsed, unverified token. Tokens with the same header share the object."""

    text: str
    header: Json
    claims: Json
    algorithm: str

    @property
    def key_id(self) -> str | None:
        """The ``kid`` of the header, if it is a string."""
        key_id = self.header.get("kid")
        return key_id if isinstance(key_id, str) else None


def read_token(text: str, *, max_characters: int) -> CompactToken:
    """Parse a token with one of the supported algorithms. Raises InvalidJose."""
    if len(text) > max_characters or not _FORM.fullmatch(text):
        raise InvalidJose("Invalid token")
    header_part, claims_part, _ = text.split(".")
    header = _read_header(header_part)
    algorithm = header.get("alg")
    if algorithm not in SIGNATURE_ALGORITHMS or not _NOT_UNDERSTOOD.isdisjoint(header):
        raise InvalidJose("Invalid token")
    return CompactToken(text, header, read_object(_decode(claims_part)), algorithm)


# Clients send the same header with every proof.
@memoize_short_keys
def _read_header(part: str) -> Json:
    return read_object(_decode(part))


def verify_signature(token: CompactToken, key: PublicKey) -> None:
    """Verify that ``key`` made the signature of the token. Raises InvalidJose."""
    if token.algorithm not in key.algorithms:
        raise InvalidJose("Invalid token")
    signed, _, signature = token.text.rpartition(".")
    try:
        algorithm = _ALGORITHMS[token.algorithm]
        valid = algorithm.verify(signed.encode("ascii"), _decode(signature), key.key)
    except (JoseError, ValueError, TypeError) as error:
        raise InvalidJose("Invalid token") from error
    if not valid:
        raise InvalidJose("Invalid token")


def _decode(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise InvalidJose("Invalid token") from error


def claim_text(claims: dict[str, Any], name: str) -> str | None:
    """The value of a claim if it is a non-empty string, else ``None``."""
    value = claims.get(name)
    return value if isinstance(value, str) and value else None


def claim_number(claims: dict[str, Any], name: str) -> float | None:
    """The value of a claim if it is a number of seconds (NumericDate), else ``None``."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _END_OF_TIME_S else None
