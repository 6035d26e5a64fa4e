"""Presents a client to the library, which asks this class about the registration."""

from __future__ import annotations

from authlib.oauth2.rfc6749 import ClientMixin

from podstead.idp.records import Client
from podstead.idp.redirects import matches_redirect
from podstead.idp.scopes import SCOPES


class OAuthClient(ClientMixin):
    """A client in the form that the library expects."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def get_client_id(self) -> str:
        return self.client.client_id

    def get_default_redirect_uri(self) -> str | None:
        # Every request must name its redirect URI, which is compared with the registered ones.
        return None

    def get_allowed_scope(self, scope: str | None) -> str:
        asked = (scope or "").split()
        return " ".join(each for each in SCOPES if each in asked)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return matches_redirect(redirect_uri, self.client)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:  # noqa: ARG002
        if self.client.auth_method == "none":
            return method == "none"
        # Clients mix the two methods of sending a secret; both prove the same.
        return method in ("client_secret_basic", "client_secret_post")

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code" and "authorization_code" in self.client.grant_types

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.client.grant_types
