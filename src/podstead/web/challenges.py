"""What is a client told that must authenticate? The WWW-Authenticate fields of a 401 (A-7, A-8)."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.errors import NotAuthenticated
from podstead.jose.keys import SIGNATURE_ALGORITHMS
from podstead.web.asgi import Headers


@dataclass(frozen=True, slots=True)
class AuthenticateChallenges:
    """The schemes of this server, one field each.

    ``realm`` is the issuer of the built-in provider, which ``provider`` then names as well, or
    else the base URL. ``signed_requests`` tells whether those are accepted, ``passwords`` whether
    as passwords too, which is told to git alone: browsers would ask people for one (A-7).
    """

    realm: str
    provider: str | None = None
    signed_requests: bool = False
    passwords: bool = False

    def headers(self, error: NotAuthenticated, *, to_git: bool = False) -> Headers:
        """The fields for one refusal. An error is named only for a credential that was sent, on
        its own scheme, and never repeats what was sent (A-8)."""
        common = f'realm="{self.realm}", scope="openid webid"'
        if self.provider is not None:
            common += f', as_uri="{self.provider}"'
        schemes = {
            "DPoP": f'DPoP {common}, algs="{" ".join(SIGNATURE_ALGORITHMS)}"',
            "Bearer": f"Bearer {common}",
        }
        if self.signed_requests:
            schemes["Nostr"] = f'Nostr realm="{self.realm}"'
        if to_git and self.passwords:
            schemes["Basic"] = f'Basic realm="{self.realm}", charset="UTF-8"'
        if error.invalid and error.scheme in schemes:
            schemes[error.scheme] += f', error="{error.error}", error_description="{error}"'
        return [(b"www-authenticate", value.encode("ascii")) for value in schemes.values()]
