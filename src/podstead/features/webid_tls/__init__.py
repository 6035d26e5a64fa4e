"""WebID-TLS: client certificates authenticate requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from podstead.config.errors import StartRefused
from podstead.features import Feature, WorkerFeature
from podstead.features.webid_tls.settings import WebIdTlsSettings

if TYPE_CHECKING:  # a server without client certificates loads none of this
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.web.account.collections import Collection


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
