"""Finds the client certificate that may authenticate a request (A-2, A-170, A-171).

The certificate comes from the connection itself, or in a header field from a trusted proxy, which
has then verified the possession of its key. A trusted proxy's own certificate is always ignored,
because the proxy forwards requests of others.

Browsers send certificates with every request of any page. So a certificate is used only if no page
of another site has caused the request. Otherwise the request is treated as one of the public.
"""

import base64
import binascii
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import unquote_to_bytes

from podstead.core.clock import Clock
from podstead.core.errors import NotAuthenticated
from podstead.features.webid_tls import WebIdTlsSettings
from podstead.web.asgi import HeaderFields, Scope, certificate_of_connection
from podstead.web.authority import Authorities

logger = logging.getLogger("podstead.web")

_OWN_SITES: Final = (None, "none", "same-origin")
"""The values of Sec-Fetch-Site (Fetch Metadata section 2.3) that involve no other site."""
_MS_BETWEEN_WARNINGS: Final = 60_000

# The forms in which proxies forward a certificate are read strictly: unexpected characters are
# refused, never skipped. Only the certificate itself is read; the result of a proxy's own checks
# proves no WebID.

_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/= \t\r\n]*)-----END CERTIFICATE-----"
)
_WHITESPACE: Final = b" \t\r\n"
_RFC_9440: Final = re.compile(rb":([A-Za-z0-9+/]*={0,2}):")
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class CertificateForm(Enum):
    """The forms. The values are the words used in the settings."""

    RFC_9440 = "rfc9440"
    """A byte sequence of structured fields (RFC 9440 section 2.1, RFC 8941 section 3.3.5)."""
    PEM_URLENCODED = "pem-urlencoded"
    """PEM in percent-encoding, with or without its first and last lines."""
    PEM = "pem"
    """PEM, possibly with spaces in place of line ends."""
    BASE64_DER = "base64der"
    """The DER encoding in base64."""


class UnreadableForm(NotAuthenticated):
    """The forwarded certificate is not in the configured form."""

    def __init__(self) -> None:
        super().__init__(
            "Client certificate not accepted: the proxy did not forward it in the configured form",
            invalid=True,
            scheme="Bearer",
        )


@dataclass(frozen=True, slots=True)
class ForwardedCertificate:
    """A certificate as received: the values of the header field, of which there must be one."""

    values: Sequence[bytes]
    form: CertificateForm

    def der(self) -> bytes:
        """The certificate in DER. Raises UnreadableForm."""
        if len(self.values) != 1:
            raise UnreadableForm
        return decode_certificate(self.values[0], self.form)


def decode_certificate(value: bytes, form: CertificateForm) -> bytes:
    """Decode the bytes of a certificate, without parsing them. Raises UnreadableForm."""
    match form:
        case CertificateForm.RFC_9440:
            return _from_base64(_only(_RFC_9440, value))
        case CertificateForm.PEM_URLENCODED:
            return _from_percent_encoding(value)
        case CertificateForm.PEM:
            return _from_pem(value)
        case CertificateForm.BASE64_DER:
            return _from_base64(value)


def _only(pattern: re.Pattern[bytes], value: bytes) -> bytes:
    found = pattern.fullmatch(value)
    if found is None:
        raise UnreadableForm
    return found[1]


def _from_percent_encoding(value: bytes) -> bytes:
    if _BAD_ESCAPE.search(value):
        raise UnreadableForm
    # A plus sign is a plus sign, since base64 uses it; it is a space only in HTML forms.
    text = unquote_to_bytes(value)
    return _from_pem(text) if b"-" in text else _from_base64(text)


def _from_pem(value: bytes) -> bytes:
    return _from_base64(_only(_PEM, value.strip(_WHITESPACE)).translate(None, _WHITESPACE))


def _from_base64(text: bytes) -> bytes:
    if not _BASE64.fullmatch(text):
        raise UnreadableForm
    bare = text.rstrip(b"=")
    try:
        return base64.b64decode(bare + b"=" * (-len(bare) % 4), validate=True)
    except binascii.Error as error:
        raise UnreadableForm from error


class PresentedCertificates:
    """Finds the certificate of a request."""

    def __init__(
        self, settings: WebIdTlsSettings, *, authorities: Authorities, clock: Clock, base_url: str
    ) -> None:
        header = settings.client_cert_header
        self._authorities = authorities
        self._clock = clock
        self._base_url = base_url
        self._scheme = base_url.partition(":")[0]
        self._header = None if header is None else header.encode("ascii")  # in lower case
        self._form = CertificateForm(settings.client_cert_format)
        self._origins = frozenset(settings.client_cert_origins)
        self._quiet_until_ms = 0

    def of(
        self, scope: Scope, fields: HeaderFields, *, peer: str, host: str
    ) -> ForwardedCertificate | None:
        """The certificate that may authenticate the request, not yet decoded; ``None`` without any.

        ``host`` is the requested host.
        """
        presented = self._presented(scope, peer)
        if presented is None or self._is_of_another_site(fields, host):
            return None
        return presented

    def _presented(self, scope: Scope, peer: str) -> ForwardedCertificate | None:
        passed_on = self._passed_on(scope)
        if self._authorities.trusts(peer):
            return passed_on
        if passed_on is not None:
            self._warn(peer)
        return _of_connection(scope)

    def _passed_on(self, scope: Scope) -> ForwardedCertificate | None:
        if self._header is None:
            return None
        values = [value.strip(b" \t") for name, value in scope["headers"] if name == self._header]
        # For a client without a certificate, proxies send an empty field or none.
        return ForwardedCertificate(values, self._form) if any(values) else None

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


def _of_connection(scope: Scope) -> ForwardedCertificate | None:
    pem = certificate_of_connection(scope)
    return None if pem is None else ForwardedCertificate([pem.encode("ascii")], CertificateForm.PEM)
