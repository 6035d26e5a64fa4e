"""How may a client authenticate? The WWW-Authenticate fields of a 401 (A-7, A-8)."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.errors import NotAuthenticated
from podstead.jose.tokens import SIGNATURE_ALGORITHMS
from podstead.web.asgi import Headers


@dataclass(frozen=True, slots=True)
class AuthenticateChallenges:
    """The schemes of this server, one field each.

    ``realm`` is the issuer of the built-in provider or, without a provider, the base URL.
    ``provider`` is that issuer, or ``None``. ``signed_requests`` is true if signed events are
    accepted, and ``passwords`` if they are accepted as passwords, too. Only requests that a
    feature claims get the challenge for passwords: browsers would ask people for one (A-7).
    """

    realm: str
    provider: str | None = None
    signed_requests: bool = False
    passwords: bool = False

    @property
    def server_name(self) -> str:
        """The name of the server for people: the host of its realm."""
        return self.realm.partition("://")[2]

    def headers(self, error: NotAuthenticated, *, claimed: bool = False) -> Headers:
        """The fields for one refusal. The error is given only if a credential was sent, in the
        challenge of its scheme, and never repeats what was sent (A-8)."""
        common = f'realm="{self.realm}", scope="openid webid"'
        if self.provider is not None:
            common += f', as_uri="{self.provider}"'
        schemes = {
            "DPoP": f'DPoP {common}, algs="{" ".join(SIGNATURE_ALGORITHMS)}"',
            "Bearer": f"Bearer {common}",
        }
        if self.signed_requests:
            schemes["Nostr"] = f'Nostr realm="{self.realm}"'
        if claimed and self.passwords:
            schemes["Basic"] = f'Basic realm="{self.realm}", charset="UTF-8"'
        if error.invalid and error.scheme in schemes:
            schemes[error.scheme] += f', error="{error.error}", error_description="{error}"'
        return [(b"www-authenticate", value.encode("ascii")) for value in schemes.values()]
