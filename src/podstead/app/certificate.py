"""Can the certificate and its key be used? Asked before anything else is started."""

from __future__ import annotations

import ssl
from pathlib import Path

from podstead.config import Settings, StartRefused


def check_certificate(settings: Settings) -> None:
    """Raises StartRefused if TLS is asked for and the files do not serve."""
    if settings.ssl_cert is None or settings.ssl_key is None:
        return
    for name, path in (("ssl-cert", settings.ssl_cert), ("ssl-key", settings.ssl_key)):
        _check_readable(name, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password of ours, OpenSSL would ask for one at the terminal.
        context.load_cert_chain(settings.ssl_cert, settings.ssl_key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise StartRefused(
            f"ssl-cert {settings.ssl_cert} and ssl-key {settings.ssl_key} cannot be used "
            f"({_reason(error)}): give a certificate chain in PEM format and its own key, without "
            "a password."
        ) from error


def _check_readable(name: str, path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise StartRefused(f"{name} {path} cannot be read ({error.strerror}).") from error


def _reason(error: ssl.SSLError | ValueError) -> str:
    if isinstance(error, ssl.SSLError) and not error.reason:
        # OpenSSL names no reason for what it cannot read at all.
        return "one of them is not in PEM format, or has a password"
    return str(getattr(error, "reason", error)).lower().replace("_", " ")
