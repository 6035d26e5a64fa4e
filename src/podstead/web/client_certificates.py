"""Finds the client certificate that may authenticate a request (A-2, A-170, A-171).

The certificate comes from the connection itself, or in a header field from a trusted proxy, which
has then verified the possession of its key. A trusted proxy's own certificate is always ignored,
because the proxy forwards requests of others.

Browsers send certificates with every request of any page. So a certificate is used only if no page
of another site has caused the request. Otherwise the request is treated as one of the public.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from podstead.core.clock import Clock
from podstead.web.asgi import HeaderFields, Scope
from podstead.web.authority import Authorities
from podstead.web.certificate_forms import CertificateForm, PresentedCertificate

logger = logging.getLogger("podstead.web")

_OWN_SITES: Final = (None, "none", "same-origin")
"""The values of Sec-Fetch-Site (Fetch Metadata section 2.3) that involve no other site."""
_MS_BETWEEN_WARNINGS: Final = 60_000


@dataclass(frozen=True, slots=True)
class ProxyField:
    """The header field in which trusted proxies forward certificates."""

    name: bytes
    """In lower case."""
    form: CertificateForm


class ClientCertificates:
    """Finds the certificate of a request."""

    def __init__(
        self,
        *,
        authorities: Authorities,
        clock: Clock,
        base_url: str,
        proxy_field: ProxyField | None = None,
        origins: frozenset[str] = frozenset(),
    ) -> None:
        """``origins`` are the origins whose pages may use the certificates of their visitors."""
        self._authorities = authorities
        self._clock = clock
        self._base_url = base_url
        self._scheme = base_url.partition(":")[0]
        self._field = proxy_field
        self._origins = origins
        self._quiet_until_ms = 0

    def of(
        self, scope: Scope, fields: HeaderFields, *, peer: str, host: str
    ) -> PresentedCertificate | None:
        """The certificate that may authenticate the request, not yet decoded; ``None`` without any.

        ``host`` is the requested host.
        """
        presented = self._presented(scope, peer)
        if presented is None or self._is_of_another_site(fields, host):
            return None
        return presented

    def _presented(self, scope: Scope, peer: str) -> PresentedCertificate | None:
        passed_on = self._passed_on(scope)
        if self._authorities.trusts(peer):
            return passed_on
        if passed_on is not None:
            self._warn(peer)
        return _of_connection(scope)

    def _passed_on(self, scope: Scope) -> PresentedCertificate | None:
        field = self._field
        if field is None:
            return None
        values = [value.strip(b" \t") for name, value in scope["headers"] if name == field.name]
        # For a client without a certificate, proxies send an empty field or none.
        return PresentedCertificate(values, field.form) if any(values) else None

    def _is_of_another_site(self, fields: HeaderFields, host: str) -> bool:
        origin, site = fields.get(b"origin"), fields.get(b"sec-fetch-site")
        if origin in self._origins:
            return False
        is_own = origin in {None, self._base_url, f"{self._scheme}://{host}"}
        return not is_own or site not in _OWN_SITES

    def _warn(self, peer: str) -> None:
        now_ms = self._clock.now_ms()
        if now_ms < self._quiet_until_ms:
            return
        self._quiet_until_ms = now_ms + _MS_BETWEEN_WARNINGS
        logger.warning(
            "Ignored a client certificate forwarded by %s, which is not a trusted proxy", peer
        )


def certificate_of_connection(scope: Scope) -> str | None:
    """The client certificate of the connection (ASGI TLS extension: PEM, the client's own first),
    used or not; ``None`` if the client presented none."""
    tls = scope.get("extensions", {}).get("tls")
    chain = tls.get("client_cert_chain") if tls else None
    return next(iter(chain)) if chain else None


def _of_connection(scope: Scope) -> PresentedCertificate | None:
    pem = certificate_of_connection(scope)
    return None if pem is None else PresentedCertificate([pem.encode("ascii")], CertificateForm.PEM)
