"""The credentials of a request, and the simple tokens of this server."""

import hmac
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NewType

import msgspec

from podstead.core import base64url
from podstead.core.errors import BadRequest, HeadersTooLarge, NotAuthenticated
from podstead.core.value import Value

# Reads the credentials of a request from its headers.
#
# Pure. If the header is present, it alone decides, whatever its value. Its scheme is
# case-insensitive. Only the schemes below are accepted, and a token without a scheme is not.

MAX_CREDENTIAL_BYTES = 16 * 1024
_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_SCHEMES = {b"bearer": "Bearer", b"dpop": "DPoP"}
_SCHEME = re.compile(_TOKEN + rb"(?= |\Z)")
_TOKEN_68 = re.compile(rb"[A-Za-z0-9\-._~+/]+=*")
# A parameter of the same credentials has its "=" where further credentials have a space.
_SECOND_CREDENTIAL = re.compile(rb",[ \t]*" + _TOKEN + rb" +[^ =,]")


class UnverifiedBearer(Value):
    """A Bearer token as received."""

    token: str


class UnverifiedDpop(Value):
    """A token that is bound to a key and the proof of possession of that key, as received."""

    token: str
    proof: str


class OtherCredential(Value):
    """What follows the name of another scheme, as received. ``scheme`` is in lower case."""

    scheme: bytes
    content: bytes


Credential = UnverifiedBearer | UnverifiedDpop | OtherCredential | None


def read_credential(
    authorization: Sequence[bytes], proofs: Sequence[bytes] = (), others: Container[bytes] = ()
) -> Credential:
    """The credentials of a request from its Authorization and DPoP fields; ``None`` without any.
    ``others`` are the names of further schemes, in lower case.

    Raises BadRequest for more than one set of credentials (A-6), HeadersTooLarge (A-3), and
    NotAuthenticated for a scheme that this server does not accept, a malformed token, or a DPoP
    token without exactly one proof.
    """
    if not authorization:
        return None
    if len(authorization) > 1:
        raise BadRequest("Send only one Authorization header")
    value = authorization[0].strip(b" \t")
    if len(value) > MAX_CREDENTIAL_BYTES:
        raise HeadersTooLarge(
            f"The Authorization header can have at most {MAX_CREDENTIAL_BYTES} bytes"
        )
    if _SECOND_CREDENTIAL.search(value):
        raise BadRequest("Send only one credential in the Authorization header")
    scheme = _SCHEME.match(value)
    name = b"" if scheme is None else scheme[0].lower()
    if scheme is None or (name not in _SCHEMES and name not in others):
        raise SchemeNotAccepted
    token = value[scheme.end() :].lstrip(b" ")
    if name not in _SCHEMES:
        return OtherCredential(name, token)
    text = token_68(token, scheme=_SCHEMES[name])
    if name == b"bearer":
        return UnverifiedBearer(text)
    return UnverifiedDpop(text, _only_proof(proofs))


class SchemeNotAccepted(NotAuthenticated):
    """The request has credentials of a kind that this server does not accept."""

    def __init__(self) -> None:
        super().__init__("Authentication scheme not accepted", invalid=True)


def token_68(token: bytes, *, scheme: str) -> str:
    """The text of a token (RFC 9110 section 11.2). Raises NotAuthenticated for any other text."""
    if not _TOKEN_68.fullmatch(token):
        raise NotAuthenticated("Invalid token", invalid=True, scheme=scheme)
    return token.decode("ascii")


def _only_proof(proofs: Sequence[bytes]) -> str:
    if len(proofs) == 1 and proofs[0].isascii():
        return proofs[0].strip(b" \t").decode("ascii")
    raise NotAuthenticated(
        "Send only one DPoP header" if proofs else "Missing DPoP proof header",
        invalid=True,
        scheme="DPoP",
        error="invalid_dpop_proof",
    )


# Signs and verifies this server's simple tokens.
#
# A token is ``base64url(JSON) "." base64url(HMAC-SHA256 of the first part)`` without padding. The
# JSON is ``{"v":1,"jti","webId","iat","exp"}``; a token that does not expire has no ``exp``. Pure:
# keys and time are parameters, and the caller checks whether a token has been revoked.

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
    payload = base64url.encoded(msgspec.json.encode(claims))
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
        claims = _decoder.decode(base64url.decoded(payload))
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
    return base64url.encoded(hmac.digest(key, payload.encode("ascii"), sha256))
