"""Does a request come with a client certificate that may speak for it? (A-2, A-170, A-171)

It comes from the connection itself, or in a header field of a trusted proxy, which then has seen
the proof of its key. A trusted proxy's own certificate never counts: it carries requests of others.

Browsers send certificates along with whatever any page asks for. So a certificate is only seen
where no other site's page is behind the request; otherwise the request is the public's.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from podstead.core.clock import Clock
from podstead.web.asgi import Scope
from podstead.web.authority import Authorities
from podstead.web.certificate_forms import CertificateForm, ShownCertificate
from podstead.web.fields import HeaderFields

logger = logging.getLogger("podstead.web")

_OWN_SITES: Final = (None, "none", "same-origin")
"""Values of Sec-Fetch-Site (Fetch Metadata section 2.3) where no other site is involved."""
_MS_BETWEEN_WARNINGS: Final = 60_000


@dataclass(frozen=True, slots=True)
class ProxyField:
    """The header field in which trusted proxies pass certificates on."""

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
        """``origins`` are those whose pages may use the certificates of their visitors."""
        self._authorities = authorities
        self._clock = clock
        self._base_url = base_url
        self._scheme = base_url.partition(":")[0]
        self._field = proxy_field
        self._origins = origins
        self._quiet_until_ms = 0

    def is_shown(self, scope: Scope) -> bool:
        """Whether a request holds anything like a certificate, seen or not; costs next to nothing.

        The answer to such a request is nobody else's.
        """
        if _of_connection(scope) is not None:
            return True
        field = self._field
        return field is not None and any(name == field.name for name, _ in scope["headers"])

    def of(
        self, scope: Scope, fields: HeaderFields, *, peer: str, host: str
    ) -> ShownCertificate | None:
        """The certificate that may speak for the request, not yet decoded; ``None`` without any.

        ``host`` is the name under which the server was asked.
        """
        shown = self._shown(scope, peer)
        if shown is None or self._is_of_another_site(fields, host):
            return None
        return shown

    def _shown(self, scope: Scope, peer: str) -> ShownCertificate | None:
        passed_on = self._passed_on(scope)
        if self._authorities.trusts(peer):
            return passed_on
        if passed_on is not None:
            self._warn(peer)
        return _of_connection(scope)

    def _passed_on(self, scope: Scope) -> ShownCertificate | None:
        field = self._field
        if field is None:
            return None
        values = [value.strip(b" \t") for name, value in scope["headers"] if name == field.name]
        # Proxies send an empty field, or none, for a client without a certificate.
        return ShownCertificate(values, field.form) if any(values) else None

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
            "A client certificate passed on by %s was ignored, since that is no trusted proxy", peer
        )


def _of_connection(scope: Scope) -> ShownCertificate | None:
    """The certificate of the connection (ASGI TLS extension: PEM, the client's own first)."""
    tls = scope.get("extensions", {}).get("tls")
    chain = tls.get("client_cert_chain") if tls else None
    if not chain:
        return None
    first: str = next(iter(chain))
    return ShownCertificate([first.encode("ascii")], CertificateForm.PEM)
