"""Reads the forms in which proxies forward a certificate as text (A-171).

Pure and strict: unexpected characters are refused, never skipped. Only the certificate itself is
read; the result of a proxy's own checks proves no WebID.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import unquote_to_bytes

from podstead.core.errors import NotAuthenticated

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
class PresentedCertificate:
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
