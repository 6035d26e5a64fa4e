"""The table of settings in several parts, one row per field, units in the names."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from podstead.authn.credentials import SigningKey
from podstead.config.settings.git import GitSettings
from podstead.config.settings.identity import IdentitySettings
from podstead.config.settings.limits import LimitSettings
from podstead.config.settings.notifications import NotificationSettings
from podstead.config.settings.server import ServerSettings
from podstead.config.settings.storage import StorageSettings
from podstead.config.settings.tokens import TokenSettings
from podstead.config.settings.trust import TrustSettings
from podstead.config.table import rows_of


@dataclass(frozen=True, kw_only=True)
class Settings(
    ServerSettings,
    StorageSettings,
    TokenSettings,
    IdentitySettings,
    GitSettings,
    TrustSettings,
    LimitSettings,
    NotificationSettings,
):
    """All settings, validated; created by :func:`podstead.config.read_settings`."""

    set_by: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """The fields that were set, each with what set it, as the operator wrote it."""

    terms_text: str = field(default="", compare=False, repr=False)
    """The content of the file that ``terms`` names."""

    former_base_urls: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The base URLs before ``podstead move-base``, as recorded in the data root."""

    @property
    def uses_tls(self) -> bool:
        """Whether this server speaks HTTPS itself."""
        return self.ssl_cert is not None or self.acme_email is not None

    @property
    def issuer(self) -> str:
        """The issuer of this server's identity provider, which is also the provider's base URL."""
        return self.idp_base_url or self.base_url

    @property
    def sockets_base_url(self) -> str:
        """The URL that the addresses of WebSockets begin with, as http or https."""
        if self.sockets_url is not None:
            return self.sockets_url
        if self.sockets_port is None:
            return self.base_url
        parts = urlsplit(self.base_url)
        authority = parts.netloc.rpartition("@")[2]
        host = authority[: -len(f":{parts.port}")] if parts.port is not None else authority
        return f"{parts.scheme}://{host}:{self.sockets_port}"

    @property
    def token_keys(self) -> tuple[SigningKey, ...]:
        """The signing keys that the operator set, the current one first; empty if there are none,
        and the server uses its own."""
        secrets = (self.token_secret, self.token_secret_previous)
        return tuple(SigningKey(secret.octets) for secret in secrets if secret is not None)

    def listening_on(self, port: int) -> Settings:
        """These settings with the port that the system chose, in the base URL too."""
        return dataclasses.replace(
            self,
            port=port,
            base_url=_with_port(self.base_url, port),
            idp_base_url=self.idp_base_url and _with_port(self.idp_base_url, port),
        )


def _with_port(url: str, port: int) -> str:
    return f"{url.removesuffix('0')}{port}" if url.endswith(":0") else url


TABLE = rows_of(Settings)
