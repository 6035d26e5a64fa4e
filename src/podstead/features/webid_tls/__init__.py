"""WebID-TLS: client certificates authenticate requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from podstead.config import value_types
from podstead.config.table import Group, optional, setting, several
from podstead.core.errors import StartRefused
from podstead.features import Feature, WorkerFeature
from podstead.outbound.urls import Origin

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.web.account.collections import Collection


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


class WebIdTlsFeature(Feature):
    """Client certificates."""

    settings = WebIdTlsSettings
    commands = {"cert": "podstead.features.webid_tls.command:cert"}
    templates = __name__

    def check_settings(self, settings: Settings) -> None:
        own = settings.of(WebIdTlsSettings)
        if own.client_cert_header is None:
            if own.webid_tls and not settings.uses_tls:
                raise StartRefused(
                    "webid-tls is on without ssl-cert and ssl-key, so clients cannot present a "
                    "certificate. Set both, or use --client-cert-header to name the header in "
                    "which a trusted proxy forwards certificates."
                )
            return
        if not own.webid_tls:
            raise StartRefused(
                "client-cert-header is set without webid-tls, so the server would ignore "
                "certificates. Add --webid-tls, or remove client-cert-header."
            )
        if not settings.trusted_proxies:
            raise StartRefused(
                "client-cert-header is set without trusted-proxy, so the server would ignore the "
                "header. Set --trusted-proxy to the address of your proxy."
            )

    def summary(self, settings: Settings) -> Mapping[str, str]:
        is_on = settings.of(WebIdTlsSettings).webid_tls
        return {"webid-tls": "clients can authenticate with certificates"} if is_on else {}

    def modules(self, settings: Settings) -> Sequence[str]:
        if not settings.of(WebIdTlsSettings).webid_tls:
            return ()
        names = ("presented", "verification", *(("pages",) if settings.idp else ()))
        return [f"{__name__}.{each}" for each in names]

    def client_certificate_setting(self, settings: Settings) -> str | None:
        return "webid-tls" if settings.of(WebIdTlsSettings).webid_tls else None

    def in_worker(self, services: Services) -> WorkerFeature | None:
        is_on = services.settings.of(WebIdTlsSettings).webid_tls
        return WebIdTlsInWorker(services) if is_on else None


class WebIdTlsInWorker(WorkerFeature):
    """Finds and verifies client certificates, and manages those of accounts."""

    def __init__(self, services: Services) -> None:
        from podstead.features.webid_tls.presented import PresentedCertificates
        from podstead.features.webid_tls.verification import WebIdTls
        from podstead.web.authority import is_loopback_url

        self.client_certificates = PresentedCertificates(
            services.settings.of(WebIdTlsSettings),
            authorities=services.authorities,
            clock=services.clock,
            base_url=services.base_url,
        )
        self.credentials = (
            WebIdTls(
                services.profiles,
                lookups=services.lookups,
                allow_loopback=is_loopback_url(services.base_url),
            ),
        )
        if services.provider is not None:
            from podstead.features.webid_tls.pages import SECTION

            self.security_sections = (SECTION,)
        self._services = services

    @cached_property
    def account_collections(self) -> Sequence[Collection[Any]]:  # type: ignore[override]
        provider = self._services.provider
        if provider is None:
            return ()
        from podstead.features.webid_tls.pages import certificate_collection

        return (certificate_collection(provider),)


FEATURE = WebIdTlsFeature()
