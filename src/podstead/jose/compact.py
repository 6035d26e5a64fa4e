"""What does a compact token say, and did this key sign it? (RFC 7515 section 7.1)

Reading and verifying are two steps: what a token claims decides which key is looked up, and only
the verified signature makes a claim more than that.
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

# The library knows EdDSA by the name that RFC 9864 gives to its one curve here.
_REGISTERED: Final = {"EdDSA": "Ed25519"}
_REGISTRY: Final = JWSRegistry(algorithms=[_REGISTERED.get(a, a) for a in SIGNATURE_ALGORITHMS])
_ALGORITHMS: Final = {
    name: _REGISTRY.get_alg(_REGISTERED.get(name, name)) for name in SIGNATURE_ALGORITHMS
}
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

# Beyond the year 9999 nothing is a time, and an infinite number compares with none.
_END_OF_TIME_S: Final = 253_402_300_800

# Members that change what is signed or how it is read; nothing here understands any of them.
_NOT_UNDERSTOOD: Final = frozenset({"crit", "b64"})


@dataclass(frozen=True, slots=True)
class CompactToken:
    """A token as read; nothing of it is verified. Tokens with the same header share it."""

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
    """Read a token whose algorithm is one of ours. Raises InvalidJose."""
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
    """Raises InvalidJose unless ``key`` made the token's signature."""
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
    """A claim that is a string that is not empty, else ``None``."""
    value = claims.get(name)
    return value if isinstance(value, str) and value else None


def claim_number(claims: dict[str, Any], name: str) -> float | None:
    """A claim that is a number of seconds (NumericDate), else ``None``."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _END_OF_TIME_S else None
