"""Describes the provider: OpenID Connect Discovery and RFC 8414 (A-41)."""

from __future__ import annotations

from typing import Final

from podstead.idp.client_metadata import AUTH_METHODS, GRANT_TYPES, IDENTITY_ALGORITHMS
from podstead.idp.oauth.authorization import PROMPTS, RESPONSE_MODES
from podstead.idp.scopes import SCOPES
from podstead.jose.tokens import SIGNATURE_ALGORITHMS, Json

AUTHORIZATION_PATH: Final = "/idp/auth"
TOKEN_PATH: Final = "/idp/token"  # noqa: S105 - an address
REGISTRATION_PATH: Final = "/idp/reg"
USERINFO_PATH: Final = "/idp/me"
INTROSPECTION_PATH: Final = "/idp/token/introspection"
REVOCATION_PATH: Final = "/idp/token/revocation"
END_SESSION_PATH: Final = "/idp/session/end"
JWKS_PATH: Final = "/.well-known/jwks.json"
OPENID_PATH: Final = "/.well-known/openid-configuration"
OAUTH_PATH: Final = "/.well-known/oauth-authorization-server"


def userinfo_url(issuer: str) -> str:
    """The userinfo endpoint. It is also the audience of tokens that are valid only there."""
    return issuer + USERINFO_PATH


def provider_description(issuer: str, *, registration_open: bool) -> Json:
    """The discovery document of the provider ``issuer``; ``registration_open`` if people may create
    accounts."""
    prompts = PROMPTS - {"none"} if registration_open else PROMPTS - {"none", "create"}
    return {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZATION_PATH,
        "token_endpoint": issuer + TOKEN_PATH,
        "jwks_uri": issuer + JWKS_PATH,
        "registration_endpoint": issuer + REGISTRATION_PATH,
        "userinfo_endpoint": userinfo_url(issuer),
        "introspection_endpoint": issuer + INTROSPECTION_PATH,
        "revocation_endpoint": issuer + REVOCATION_PATH,
        "end_session_endpoint": issuer + END_SESSION_PATH,
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": list(RESPONSE_MODES),
        "grant_types_supported": list(GRANT_TYPES),
        "subject_types_supported": ["public"],
        "claims_supported": [
            "sub",
            "webid",
            "iss",
            "aud",
            "azp",
            "exp",
            "iat",
            "auth_time",
            "amr",
            "name",
            "email",
            "email_verified",
        ],
        "id_token_signing_alg_values_supported": list(IDENTITY_ALGORITHMS),
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "introspection_endpoint_auth_methods_supported": list(AUTH_METHODS[:2]),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": list(SIGNATURE_ALGORITHMS),
        "authorization_response_iss_parameter_supported": True,
        "prompt_values_supported": ["none", *sorted(prompts)],
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "solid_oidc_supported": "https://solidproject.org/TR/solid-oidc",
    }
