"""The server's certificate by ACME (RFC 8555), without a reverse proxy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from podstead.config import value_types
from podstead.config.table import Group, optional, setting
from podstead.core.errors import StartRefused
from podstead.features import Feature

if TYPE_CHECKING:  # annotations only
    from podstead.config import Settings
    from podstead.features import CertificateSource

FOLDER: Final = "acme"
"""The folder of the data root with the certificate and the key of the account."""
CERTIFICATE: Final = "certificate.pem"


@dataclass(frozen=True, kw_only=True)
class AcmeSettings:
    """The settings of this part."""

    acme_email: str | None = optional(
        value_types.EMAIL,
        Group.SERVER,
        "Order the server's certificate by ACME and renew it, with this e-mail address for notices "
        "of the authority, whose terms of service you accept by that. Needs podstead[acme], and "
        "port 80.",
        reason="Instead of ssl-cert and ssl-key, for a server without a reverse proxy.",
    )
    acme_directory: str = setting(
        "https://acme-v02.api.letsencrypt.org/directory",
        value_types.ISSUER,
        Group.SERVER,
        "The directory of the authority that issues the certificate.",
    )
    acme_ca_file: Path | None = optional(
        value_types.FILE,
        Group.SERVER,
        "Certificates in PEM format by which the server verifies the HTTPS of acme-directory, for "
        "an authority of your own that the system does not trust.",
    )
    acme_port: int = setting(
        80,
        value_types.integer(1, 65535),
        Group.SERVER,
        "The TCP port at which the server answers the authority, while it orders a certificate. "
        "The authority asks port 80, which has to lead here.",
    )


class AcmeFeature(Feature):
    """Orders the certificate if ``acme-email`` is set."""

    settings = AcmeSettings

    def check_settings(self, settings: Settings) -> None:
        if not self.has_certificate(settings):
            return
        if settings.ssl_cert is not None:
            raise StartRefused(
                "acme-email is set together with ssl-cert. Either the server orders its "
                "certificate, or you supply one: remove one of them."
            )
        if settings.database is not None:
            raise StartRefused(
                "acme-email is set together with database. The certificate authority may reach "
                "another node than the one that orders. Let the load balancer order the "
                "certificate, or distribute one to all nodes and set ssl-cert and ssl-key."
            )
        host = urlsplit(settings.base_url).hostname or "localhost"
        if host == "localhost" or host[-1].isdigit() or ":" in host:
            raise StartRefused(
                f"acme-email is set, but no authority issues a certificate for {host}. Set "
                "--base-url to an https URL with the domain name of this server."
            )

    def ports(self, settings: Settings) -> Sequence[int]:
        return (settings.of(AcmeSettings).acme_port,) if self.has_certificate(settings) else ()

    def has_certificate(self, settings: Settings) -> bool:
        return settings.of(AcmeSettings).acme_email is not None

    def certificate_file(self, settings: Settings) -> Path | None:
        return settings.root / FOLDER / CERTIFICATE if self.has_certificate(settings) else None

    def modules(self, settings: Settings) -> Sequence[str]:
        return ("podstead.features.acme.certificates",) if self.has_certificate(settings) else ()

    def certificate(self, settings: Settings) -> CertificateSource:
        try:
            from podstead.features.acme.certificates import AutomaticCertificate
        except ImportError as error:
            raise StartRefused(
                "acme-email is set, but the package for it is not installed. Install "
                "podstead[acme], for example with: pip install 'podstead[acme]'"
            ) from error
        return AutomaticCertificate(settings)


FEATURE = AcmeFeature()
