"""Checking DPoP proofs (RFC 9449, section 4.3; A-101 to A-106).

Pure: the request and the time are parameters. The caller must ensure that a proof is used only
once, with :attr:`DpopProof.use_key` and :attr:`DpopProof.usable_until_s`.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

from podstead.core import base64url, caches
from podstead.jose import tokens

MAX_PROOF_CHARACTERS: Final = 4096
PAST_S: Final = 300
"""The maximum age of a proof (A-103)."""
FUTURE_S: Final = 120
"""How far the client's clock may be ahead of the server's."""
PROOF_ID_CHARACTERS: Final = range(8, 257)

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#@]*)(?P<path>[^?#]*)", re.IGNORECASE
)
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


@dataclass(frozen=True, slots=True)
class ProofContext:
    """The request that a proof must be for: its method, URL and access token, if any."""

    method: str
    url: str
    access_token: str | None = None


@dataclass(frozen=True, slots=True)
class DpopProof:
    """A valid proof: the client has the private key with this ``thumbprint`` (RFC 7638)."""

    thumbprint: str
    use_key: bytes
    """Identifies the proof; if it was used before, the request is a replay (A-104)."""
    usable_until_s: int
    """Unix time from which no request with this proof is accepted any more."""
    nonce: str | None = None
    """The server-provided nonce in the proof, if any (RFC 9449, section 8)."""


def check_proof(
    text: str,
    request: ProofContext,
    *,
    now_s: int,
    require_ath: bool = False,
) -> DpopProof:
    """Check the value of a ``DPoP`` header in every respect except replay.

    ``require_ath`` refuses a proof without the hash of the access token. Some clients omit it
    (A-105), so otherwise it is compared only if present. Raises InvalidJose.
    """
    token = tokens.read_token(text, max_characters=MAX_PROOF_CHARACTERS)
    jwk = token.header.get("jwk")
    if token.header.get("typ") != "dpop+jwt" or not isinstance(jwk, dict):
        raise tokens.InvalidJose("Invalid DPoP proof")
    claims = token.claims
    _check_request(claims, request)
    issued_s = tokens.claim_number(claims, "iat")
    if issued_s is None or not now_s - PAST_S <= issued_s <= now_s + FUTURE_S:
        raise tokens.InvalidJose("DPoP proof is too old or from the future")
    proof_id = tokens.claim_text(claims, "jti")
    if proof_id is None or len(proof_id) not in PROOF_ID_CHARACTERS:
        raise tokens.InvalidJose("DPoP proof lacks a jti")
    _check_access_token(claims.get("ath"), request.access_token, require=require_ath)
    key = tokens.import_public_key(jwk)
    tokens.verify_signature(token, key)
    use_key = hashlib.sha256(f"{key.thumbprint}|{proof_id}".encode()).digest()
    usable_until_s = int(issued_s) + PAST_S + 1
    return DpopProof(key.thumbprint, use_key, usable_until_s, tokens.claim_text(claims, "nonce"))


def unverified_nonce(text: str) -> str | None:
    """The nonce of a proof without verifying the proof. Raises InvalidJose."""
    return tokens.claim_text(
        tokens.read_token(text, max_characters=MAX_PROOF_CHARACTERS).claims, "nonce"
    )


def _check_request(claims: dict[str, object], request: ProofContext) -> None:
    method, url = tokens.claim_text(claims, "htm"), tokens.claim_text(claims, "htu")
    if method is None or method.upper() != request.method:
        raise tokens.InvalidJose("DPoP proof is for another method")
    proven = None if url is None else normalized_htu(url)
    if proven is None or proven != normalized_htu(request.url):
        raise tokens.InvalidJose("DPoP proof is for another URL")


def _check_access_token(ath: object, access_token: str | None, *, require: bool) -> None:
    if ath is None and not require:
        return
    expected = _hash(access_token or "")
    if access_token is None or not isinstance(ath, str) or not ath.isascii():
        raise tokens.InvalidJose("DPoP proof is for another access token")
    if not hmac.compare_digest(ath.rstrip("="), expected):
        raise tokens.InvalidJose("DPoP proof is for another access token")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("ascii")).digest()
    return base64url.encoded(digest)


@caches.memoize_short_keys
def normalized_htu(url: str) -> str | None:
    """Normalize a URL for comparison with ``htu`` (A-102).

    Removes the query, the fragment and a default port; scheme and host become lower case, escapes
    upper case, and an empty path ``/``. ``None`` if it is not an ``http(s)`` URL.
    """
    match = _URL.match(url)
    if match is None or not match["authority"]:
        return None
    scheme, authority = match["scheme"].lower(), match["authority"].lower()
    path = _ESCAPE.sub(lambda escape: escape[0].upper(), match["path"] or "/")
    return f"{scheme}://{authority.removesuffix(_DEFAULT_PORTS[scheme])}{path}"
