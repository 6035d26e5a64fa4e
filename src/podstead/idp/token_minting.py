"""Creates access tokens, ID tokens and refresh tokens (A-65, A-66, A-70 to A-72)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.authn.claims import AUDIENCE
from podstead.core.clock import Randomness
from podstead.idp.accounts import issue_time_s
from podstead.idp.discovery import userinfo_url
from podstead.idp.keys import KeyRoster
from podstead.idp.oauth.token import Subject, TokenSet
from podstead.idp.records import REFRESH_TOKENS, Account, Client, RefreshToken
from podstead.idp.scopes import speaks_for_web_id
from podstead.jose.tokens import SigningAlgorithm, SigningKeyPair
from podstead.storage.record_store import secret_key

ACCESS_TOKEN_S: Final = 3600
REFRESH_TOKEN_S: Final = 14 * 24 * 3600
GRANT_S: Final = 90 * 24 * 3600
"""How long a grant can be refreshed before the person has to sign in again."""

TOKEN_ID_BYTES: Final = 16
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Creates the tokens of one response, at one time, with the keys of that time."""

    issuer: str
    roster: KeyRoster
    randomness: Randomness
    now_s: int

    def mint(self, subject: Subject, *, client: Client, with_refresh: bool) -> TokenSet:
        """The members of a token response, and the record of its refresh token."""
        access_token = self.access_token(subject)
        body: dict[str, object] = {
            "access_token": access_token,
            "token_type": "Bearer" if subject.jkt is None else "DPoP",
            "expires_in": ACCESS_TOKEN_S,
            "scope": " ".join(subject.scopes),
        }
        if "openid" in subject.scopes:
            body["id_token"] = self._id_token(subject, client, access_token)
        if not with_refresh or subject.grant is None:
            return TokenSet(body)
        secret = self.randomness.token_hex(SECRET_BYTES)
        body["refresh_token"] = secret
        expires_s = min(self.now_s + REFRESH_TOKEN_S, subject.grant.began_s + GRANT_S)
        record = REFRESH_TOKENS.put(
            secret_key(secret),
            RefreshToken(
                grant_id=subject.grant.grant_id,
                client_id=subject.client_id,
                scopes=subject.lasting_scopes or subject.scopes,
                # A client with a secret may change its key; a public one may not (A-66).
                jkt=subject.jkt if client.auth_method == "none" else None,
            ),
            owner=subject.account.account_id,
            expires_ms=expires_s * 1000,
        )
        return TokenSet(body, (record,))

    def access_token(self, subject: Subject) -> str:
        """A token for resource servers (A-70), or for the userinfo endpoint alone."""
        claims: dict[str, object] = {
            "iss": self.issuer,
            "sub": subject.account.account_id,
            **_access_of(subject, otherwise=userinfo_url(self.issuer)),
            "client_id": subject.client_id,
            "azp": subject.client_id,
            "scope": " ".join(subject.scopes),
            "iat": issue_time_s(subject.account, self.now_s),
            "exp": self.now_s + ACCESS_TOKEN_S,
            "jti": f"{token_source(subject)}.{self.randomness.token_hex(TOKEN_ID_BYTES)}",
        }
        return self.roster.signer("RS256").sign(_bound(claims, subject), media_type="at+jwt")

    def _id_token(self, subject: Subject, client: Client, access_token: str) -> str:
        """The ID token, which tells the client who signed in (A-71)."""
        account, grant = subject.account, subject.grant
        claims: dict[str, object] = {
            "iss": self.issuer,
            "sub": account.account_id,
            "aud": [subject.client_id],
            "azp": subject.client_id,
            "iat": issue_time_s(subject.account, self.now_s),
            "exp": self.now_s + ACCESS_TOKEN_S,
            "jti": f"{token_source(subject)}.{self.randomness.token_hex(TOKEN_ID_BYTES)}",
            "at_hash": _half_hash(access_token),
        }
        if _is_solid(subject):
            claims |= {"aud": [subject.client_id, AUDIENCE], "webid": subject.web_id}
        if grant is not None:
            claims |= {"auth_time": grant.authenticated_s, "sid": grant.session_id}
            if grant.amr:
                claims["amr"] = grant.amr
            if grant.nonce is not None:
                claims["nonce"] = grant.nonce
        claims |= personal_claims(account, subject.scopes)
        return self._id_key(client).sign(_bound(claims, subject), media_type="JWT")

    def _id_key(self, client: Client) -> SigningKeyPair:
        algorithm: SigningAlgorithm = "ES256" if client.identity_algorithm == "ES256" else "RS256"
        return self.roster.signer(algorithm)


def _is_solid(subject: Subject) -> bool:
    return speaks_for_web_id(subject.scopes, bound=subject.jkt is not None)


def _access_of(subject: Subject, *, otherwise: str) -> dict[str, object]:
    """The audience of an access token, and its WebID unless the token only says who signed in."""
    if not _is_solid(subject):
        return {"aud": otherwise}
    return {"aud": AUDIENCE, "webid": subject.web_id}


def token_source(subject: Subject) -> str:
    """The grant or credentials that a token was issued for and whose validity it shares, as the
    first part of its ``jti``."""
    if subject.grant is not None:
        return f"g-{subject.grant.grant_id}"
    if subject.credential_id is not None:
        return f"c-{subject.credential_id}"
    return "d"


def personal_claims(account: Account, scopes: Sequence[str]) -> dict[str, object]:
    """The claims about a person that the scopes request (A-72)."""
    claims: dict[str, object] = {}
    if "profile" in scopes:
        claims["name"] = account.pod
    if "email" in scopes and account.email is not None:
        claims |= {"email": account.email, "email_verified": account.email_verified_s > 0}
    return claims


def _bound(claims: dict[str, object], subject: Subject) -> dict[str, object]:
    return claims if subject.jkt is None else {**claims, "cnf": {"jkt": subject.jkt}}


def _half_hash(access_token: str) -> str:
    """OpenID Connect Core section 3.1.3.6, for SHA-256, which both algorithms use."""
    half = hashlib.sha256(access_token.encode("ascii")).digest()[:16]
    return base64.urlsafe_b64encode(half).rstrip(b"=").decode("ascii")
