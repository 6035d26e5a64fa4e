"""Composes the requests of a sign-in at another provider.

Pure: the secrets of a sign-in follow from the secret of the browser and from the ``state``, so that
nothing secret is stored. Authorization code flow with PKCE (RFC 6749 section 4.1, RFC 7636) and a
DPoP proof (RFC 9449 section 5). The OAuth library of this server's own provider is not used: it
would add a fifth of a second to the start of servers without one, for no more than query strings
and a hash.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from podstead.authn.relying_party.providers import ForeignProvider

SCOPE: Final = "openid webid"


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of one sign-in, known only to this browser and this server."""

    verifier: str
    nonce: str

    @property
    def challenge(self) -> str:
        """The code challenge (RFC 7636 section 4.2)."""
        return _base64(hashlib.sha256(self.verifier.encode("ascii")).digest())


def secrets_of(browser_secret: str, state: str) -> Secrets:
    """The secrets of the sign-in with this ``state``."""

    def derived(purpose: str) -> str:
        message = f"{purpose} {state}".encode()
        return _base64(hmac.digest(browser_secret.encode(), message, "sha256"))

    return Secrets(verifier=derived("verifier"), nonce=derived("nonce"))


def authorization_url(
    provider: ForeignProvider, *, client_id: str, redirect_uri: str, state: str, secrets: Secrets
) -> str:
    """Where the person signs in (RFC 6749 section 4.1.1)."""
    parameters = urlencode(
        {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPE,
            "state": state,
            "nonce": secrets.nonce,
            "code_challenge": secrets.challenge,
            "code_challenge_method": "S256",
        }
    )
    endpoint = provider.authorization_endpoint
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{parameters}"


def token_request(*, code: str, client_id: str, redirect_uri: str, secrets: Secrets) -> bytes:
    """The exchange of a code (RFC 6749 section 4.1.3), as a form."""
    return urlencode(
        {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": client_id,
            "code_verifier": secrets.verifier,
        }
    ).encode("ascii")


def proof_claims(
    token_endpoint: str, *, proof_id: str, now_s: int, nonce: str | None
) -> Mapping[str, object]:
    """The claims of the proof for the token request (RFC 9449 section 4.2)."""
    claims: dict[str, object] = {
        "jti": proof_id,
        "htm": "POST",
        "htu": token_endpoint.partition("?")[0],
        "iat": now_s,
    }
    return claims if nonce is None else {**claims, "nonce": nonce}


def client_metadata(*, name: str, uri: str, redirect_uri: str) -> Mapping[str, object]:
    """What providers learn about this server as a client (RFC 7591 section 2)."""
    return {
        "client_name": name,
        "client_uri": uri,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "scope": SCOPE,
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }


def client_document(client_id: str, metadata: Mapping[str, object]) -> bytes:
    """The Client ID Document of this server (Solid-OIDC section 5.1)."""
    context = "https://www.w3.org/ns/solid/oidc-context.jsonld"
    return json.dumps({"@context": context, "client_id": client_id, **metadata}).encode()


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
