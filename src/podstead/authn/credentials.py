"""Reads the credentials of a request from its headers (A-2, A-3, A-6, A-146).

Pure. If the header is present, it alone decides, whatever its value. Its scheme is
case-insensitive. Only the schemes below are accepted, and a token without a scheme is not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from podstead.core.errors import BadRequest, HeadersTooLarge, NotAuthenticated
from podstead.core.value import Value

MAX_CREDENTIAL_BYTES = 16 * 1024
_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_SCHEMES = {b"bearer": "Bearer", b"dpop": "DPoP", b"nostr": "Nostr", b"basic": "Basic"}
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


class UnverifiedEvent(Value):
    """The base64 of a signed event (NIP-98), as received: with a scheme of its own, or in Basic as
    the password of the user-id ``nostr``."""

    event: str
    as_password: bool = False


Credential = UnverifiedBearer | UnverifiedDpop | UnverifiedEvent | None


def read_credential(authorization: Sequence[bytes], proofs: Sequence[bytes] = ()) -> Credential:
    """The credentials of a request from its Authorization and DPoP fields; ``None`` without any.

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
    if scheme is None or name not in _SCHEMES:
        raise _no_such_scheme()
    token = value[scheme.end() :].lstrip(b" ")
    if name == b"basic":
        return UnverifiedEvent(_password_of_nostr(token), as_password=True)
    text = _token_68(token, scheme=_SCHEMES[name])
    if name == b"bearer":
        return UnverifiedBearer(text)
    if name == b"nostr":
        return UnverifiedEvent(text)
    return UnverifiedDpop(text, _only_proof(proofs))


def _no_such_scheme() -> NotAuthenticated:
    return NotAuthenticated("Authentication scheme not accepted", invalid=True)


def _token_68(token: bytes, *, scheme: str) -> str:
    if not _TOKEN_68.fullmatch(token):
        raise NotAuthenticated("Invalid token", invalid=True, scheme=scheme)
    return token.decode("ascii")


def _password_of_nostr(token: bytes) -> str:
    """The password of the only user-id that is accepted (RFC 7617 section 2)."""
    try:
        user_id, colon, password = base64.b64decode(token, validate=True).partition(b":")
    except ValueError as error:
        raise _no_such_scheme() from error
    if not colon or user_id != b"nostr":
        raise _no_such_scheme()
    return _token_68(password, scheme="Basic")


def _only_proof(proofs: Sequence[bytes]) -> str:
    if len(proofs) == 1 and proofs[0].isascii():
        return proofs[0].strip(b" \t").decode("ascii")
    raise NotAuthenticated(
        "Send only one DPoP header" if proofs else "Missing DPoP proof header",
        invalid=True,
        scheme="DPoP",
        error="invalid_dpop_proof",
    )
