"""The settings for client certificates."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import value_types
from podstead.config.table import Group, optional, setting, several
from podstead.outbound.urls import Origin


@dataclass(frozen=True, kw_only=True)
class WebIdTlsSettings:
    """The settings of this part."""

    webid_tls: bool = setting(
        False,
        value_types.SWITCH,
        Group.IDENTITY,
        "Whether client certificates authenticate requests (WebID-TLS). Requires ssl-cert and "
        "ssl-key, or a trusted proxy that forwards certificates in client-cert-header.",
        reason="When a server requests a certificate, browsers that hold any ask the user which "
        "one to send.",
        common=True,
    )
    client_cert_header: str | None = optional(
        value_types.FIELD_NAME,
        Group.IDENTITY,
        "The header in which a trusted proxy forwards the client's certificate. The proxy must "
        "remove this header from incoming requests.",
    )
    client_cert_format: str = setting(
        "rfc9440",
        value_types.one_of("rfc9440", "pem-urlencoded", "pem", "base64der"),
        Group.IDENTITY,
        "The encoding of the certificate in client-cert-header: as specified by RFC 9440 "
        "(rfc9440), percent-encoded PEM as nginx and Traefik send it (pem-urlencoded), plain PEM "
        "(pem), or DER in base64 as HAProxy sends it (base64der).",
    )
    client_cert_origins: tuple[Origin, ...] = several(
        value_types.ORIGIN,
        Group.IDENTITY,
        "A web application whose pages may use the client certificates of their visitors.",
        reason="Browsers attach certificates to requests from any page, so the server treats "
        "requests from pages of other sites as anonymous.",
        name="client-cert-origin",
    )
