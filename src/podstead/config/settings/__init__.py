"""The table of settings in several parts, one row per field, units in the names."""

import dataclasses
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

from podstead.authn.credentials import SigningKey
from podstead.config.settings.identity import IdentitySettings, TokenSettings
from podstead.config.settings.limits import LimitSettings, NotificationSettings
from podstead.config.settings.server import ServerSettings, TrustSettings
from podstead.config.settings.storage import StorageSettings
from podstead.config.table import Row, rows_of
from podstead.features import features

Part = TypeVar("Part")


@dataclass(frozen=True, kw_only=True)
class Settings(
    ServerSettings,
    StorageSettings,
    TokenSettings,
    IdentitySettings,
    TrustSettings,
    LimitSettings,
    NotificationSettings,
):
    """All settings, validated; created by :func:`podstead.config.read_settings`."""

    of_features: tuple[object, ...] = field(default=(), repr=False)
    """The settings of features: objects of the dataclasses that they define."""

    set_by: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """The fields that were set, each with what set it, as the operator wrote it."""

    terms_text: str = field(default="", compare=False, repr=False)
    """The content of the file that ``terms`` names."""

    former_base_urls: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The base URLs before ``podstead move-base``, as recorded in the data root."""

    def of(self, part: type[Part]) -> Part:
        """The settings of a feature, which defines the dataclass ``part``."""
        return next((each for each in self.of_features if type(each) is part), None) or part()

    def value(self, row: Row[Any]) -> Any:  # noqa: ANN401 - the table's rows differ in type
        """The value of one setting, also of a feature's."""
        return getattr(self if row.owner is Settings else self.of(row.owner), row.field)

    def with_values(self, **values: object) -> "Settings":
        """These settings with other values, by field, also with those of features."""
        owners = {row.field: row.owner for row in settings_table()}
        parts: dict[type, dict[str, Any]] = {}
        for name, value in values.items():
            parts.setdefault(owners.get(name, Settings), {})[name] = value
        own = parts.pop(Settings, {})
        others = [each for each in self.of_features if type(each) not in parts]
        changed: list[Any] = [
            dataclasses.replace(self.of(part), **new) for part, new in parts.items()
        ]
        return dataclasses.replace(self, **own, of_features=(*others, *changed))

    @property
    def uses_tls(self) -> bool:
        """Whether this server speaks HTTPS itself."""
        return self.ssl_cert is not None or any(each.has_certificate(self) for each in features())

    @property
    def reaches_people(self) -> bool:
        """Whether the messages that wait for people are delivered."""
        return any(each.reaches_people(self) for each in features())

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

    def listening_on(self, port: int) -> "Settings":
        """These settings with the port that the system chose, in the base URL too."""
        return dataclasses.replace(
            self,
            port=port,
            base_url=_with_port(self.base_url, port),
            idp_base_url=self.idp_base_url and _with_port(self.idp_base_url, port),
        )


def _with_port(url: str, port: int) -> str:
    return f"{url.removesuffix('0')}{port}" if url.endswith(":0") else url


@cache
def settings_table() -> tuple[Row[Any], ...]:
    """The rows of all settings, with those of features."""
    of_features = [each.settings for each in features() if each.settings is not None]
    return rows_of(Settings, *of_features)
