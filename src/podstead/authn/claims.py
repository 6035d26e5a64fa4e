"""Checks that a token is current and meant for a Solid resource server (Solid-OIDC 8, A-107).

Pure, and only about the claims: the signature is verified elsewhere. An ID token tells a client who
has signed in and grants no access (OpenID Connect Core section 2). Not every provider sets the type
of its access tokens as RFC 9068 requires, so an ID token is also recognized by its audience and
claims.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from podstead.jose.tokens import CompactToken, InvalidJose, claim_number, claim_text

# Checks the form that every URL of an agent or provider in a credential must have.
#
# Pure, and about the text alone. Whether it may be fetched is decided by ``outbound``.

MAX_ADDRESS_CHARACTERS: Final = 2048
_NOT_IN_IRIS: Final = frozenset(' <>"{}|\\^`')
"""In addition to characters that are not printable (RFC 3987 section 2.2)."""
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def is_usable_address(url: str, *, allow_loopback: bool) -> bool:
    """Whether it is an absolute https URL without a user name (A-107, A-162). ``allow_loopback``
    also accepts plain http on this machine."""
    if (
        len(url) > MAX_ADDRESS_CHARACTERS
        or not url.isprintable()
        or not _NOT_IN_IRIS.isdisjoint(url)
    ):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if not host or parts.username is not None:
        return False
    return parts.scheme == "https" or (
        parts.scheme == "http" and allow_loopback and _is_loopback(host)
    )


def _is_loopback(host: str) -> bool:
    return host in _LOOPBACK or host.endswith(".localhost")


AUDIENCE: Final = "solid"
ACCESS_TOKEN_TYPES: Final = ("at+jwt", "application/at+jwt")
"""RFC 9068 section 2.1."""
MAX_TOKEN_CHARACTERS: Final = 8192
SKEW_S: Final = 60
FUTURE_S: Final = 120
MAX_LIFETIME_S: Final = 24 * 3600

_ONLY_IN_ID_TOKENS: Final = frozenset({"nonce", "at_hash", "c_hash"})
"""OpenID Connect Core sections 2 and 3.3.2.11."""
_THUMBPRINT: Final = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonClaims:
    """The claims of a token for any audience, well-formed and current. Times are Unix seconds."""

    issuer: str
    """As in the token; compared without regard to a slash at the end (A-40)."""
    subject: str | None
    client_id: str | None
    token_id: str | None
    issued_s: int
    expires_s: int
    thumbprint: str | None
    """The key that the token is bound to (RFC 9449 section 6.1)."""
    scopes: frozenset[str]
    """What the token was issued for (RFC 9068 section 2.2.3)."""

    def is_over(self, now_s: int) -> bool:
        """Whether the token has expired."""
        return now_s >= self.expires_s + SKEW_S


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenClaims(CommonClaims):
    """The claims of a token for Solid resource servers."""

    web_id: str


def read_common_claims(token: CompactToken, *, audience: str, now_s: int) -> CommonClaims:
    """Check the claims that every access token has, for any audience. Raises InvalidJose."""
    claims = token.claims
    expires_s, issued_s = claim_number(claims, "exp"), claim_number(claims, "iat")
    if expires_s is None or issued_s is None or not is_current(claims, now_s=now_s):
        raise InvalidJose("Access token expired or not valid yet")
    if audience not in _audience(claims.get("aud")):
        raise InvalidJose("The token is not meant for Solid resource servers")
    if is_id_token(token):
        raise InvalidJose("This is an ID token: send the access token")
    return CommonClaims(
        issuer=claim_text(claims, "iss") or "",
        subject=claim_text(claims, "sub"),
        client_id=claim_text(claims, "client_id") or claim_text(claims, "azp"),
        token_id=claim_text(claims, "jti"),
        issued_s=int(issued_s),
        expires_s=int(expires_s),
        thumbprint=_thumbprint(claims["cnf"]) if "cnf" in claims else None,
        scopes=frozenset((claim_text(claims, "scope") or "").split()),
    )


def read_claims(token: CompactToken, *, now_s: int, allow_loopback: bool) -> TokenClaims:
    """Check the claims of a token for resource servers. ``allow_loopback`` accepts plain http on
    this machine (A-190).

    Raises InvalidJose.
    """
    claims = token.claims
    common = read_common_claims(token, audience=AUDIENCE, now_s=now_s)
    web_id = claim_text(claims, "webid") if "webid" in claims else common.subject
    if (
        web_id is None
        # OpenID Connect Discovery 1.0 section 3: an issuer has no query and no fragment.
        or not {"?", "#"}.isdisjoint(common.issuer)
        or not is_usable_address(common.issuer, allow_loopback=allow_loopback)
        or not is_usable_address(web_id, allow_loopback=allow_loopback)
    ):
        raise InvalidJose("The token has no valid issuer or no valid WebID")
    return TokenClaims(
        issuer=common.issuer,
        subject=common.subject,
        client_id=common.client_id,
        token_id=common.token_id,
        issued_s=common.issued_s,
        expires_s=common.expires_s,
        thumbprint=common.thumbprint,
        scopes=common.scopes,
        web_id=web_id,
    )


def is_id_token(token: CompactToken) -> bool:
    """Whether a token is meant for a client: it does not have the type of an access token, and it
    has a client in its audience or a claim that only ID tokens have."""
    if token.header.get("typ") in ACCESS_TOKEN_TYPES:
        return False
    claims = token.claims
    audience = _audience(claims.get("aud"))
    named = (claim_text(claims, "azp"), claim_text(claims, "client_id"))
    return any(each is not None and each in audience for each in named) or not (
        _ONLY_IN_ID_TOKENS.isdisjoint(claims)
    )


def same_issuer(one: str, other: str) -> bool:
    """Whether two issuer identifiers name the same provider; they may differ in a final slash."""
    return one.removesuffix("/") == other.removesuffix("/")


def is_current(claims: dict[str, object], *, now_s: int) -> bool:
    """Whether a token's claims make it valid now, and for no longer than tokens may be."""
    expires_s, issued_s = claim_number(claims, "exp"), claim_number(claims, "iat")
    if expires_s is None or issued_s is None:
        return False
    if "nbf" in claims:
        starts_s = claim_number(claims, "nbf")
        if starts_s is None or starts_s > now_s + SKEW_S:
            return False
    return (
        expires_s > now_s - SKEW_S
        and issued_s <= now_s + FUTURE_S
        and expires_s - issued_s <= MAX_LIFETIME_S
    )


def _audience(audience: object) -> Sequence[object]:
    return audience if isinstance(audience, list) else [audience]


def _thumbprint(confirmation: object) -> str:
    """Raises InvalidJose for a token that is bound to something other than a key, which must not be
    mistaken for one that is not bound."""
    jkt = claim_text(confirmation, "jkt") if isinstance(confirmation, dict) else None
    if jkt is None or not _THUMBPRINT.fullmatch(jkt):
        raise InvalidJose("The token is not bound to a key")
    return jkt
