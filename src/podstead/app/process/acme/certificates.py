"""When is a certificate ordered, and where is it kept? In the data root, renewed in time.

The key and the chain are in one file, which is replaced at once: two files could be of different
certificates after a crash. The rest of the server sees them as ``ssl-cert`` and ``ssl-key``, so a
renewed certificate takes effect as that of any other program does (``process/certificate.py``).
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from podstead.app.process.acme.client import CertificateOrder, OrderFailed, order_certificate
from podstead.app.process.acme.responder import answering_challenges
from podstead.config import Settings
from podstead.storage.layout import RootLayout

logger = logging.getLogger("podstead.app")

CHECK_INTERVAL_S: Final = 3600
"""How often to look whether it is time, and to try again after a failure."""
_RENEWED_LAST_PART: Final = 3
"""A certificate is renewed when a third of its time is left."""

Clock = Callable[[], float]


class AutomaticCertificate:
    """The certificate that this server orders for itself."""

    def __init__(self, settings: Settings, *, now_s: Clock = time.time) -> None:
        """``acme_email`` is set, and the data root is there."""
        self._settings = settings
        self._now_s = now_s
        folder = RootLayout(settings.root).acme
        self._file = folder / "certificate.pem"
        self._account = folder / "account.pem"

    def used_in(self, settings: Settings) -> Settings:
        """The settings with the file as certificate and key."""
        return dataclasses.replace(settings, ssl_cert=self._file, ssl_key=self._file)

    def ensure(self) -> None:
        """Order a certificate if there is none that can be used. Raises OrderFailed if there is
        none afterwards."""
        if not self._is_due():
            return
        try:
            self.order()
        except OrderFailed as error:
            if self._read() is None:
                raise
            logger.error("The certificate could not be renewed. %s", error)  # noqa: TRY400

    def keep(self) -> None:
        """Renew the certificate in time, forever. To be called in its own thread."""
        while True:
            time.sleep(CHECK_INTERVAL_S)
            self.look()

    def look(self) -> None:
        """Renew the certificate if it is time, and have the server use it."""
        if not self._is_due():
            return
        try:
            self.order()
        except OrderFailed as error:
            logger.error(  # noqa: TRY400 - expected trouble has no traceback
                "The certificate could not be renewed; it is tried again in an hour. %s", error
            )
        else:
            os.kill(os.getpid(), signal.SIGHUP)  # which has the server read the file at once

    def order(self) -> None:
        """Order a certificate, and store it. Raises OrderFailed."""
        settings = self._settings
        names = host_names(settings)
        logger.info("Ordering a certificate for %s", ", ".join(names))
        key = _new_key()
        order = CertificateOrder(
            directory=settings.acme_directory,
            ca_file=settings.acme_ca_file,
            email=settings.acme_email or "",
            names=names,
            account_key=self._account_key(),
            key=key,
        )
        with answering_challenges(_listening_address(settings), settings.acme_port) as publish:
            chain = order_certificate(order, publish)
        _write(self._file, key + chain)
        logger.info("The certificate for %s was issued", ", ".join(names))

    def _is_due(self) -> bool:
        certificate = self._read()
        if certificate is None:
            return True
        begin_s = certificate.not_valid_before_utc.timestamp()
        end_s = certificate.not_valid_after_utc.timestamp()
        is_late = self._now_s() > end_s - (end_s - begin_s) / _RENEWED_LAST_PART
        return is_late or not set(host_names(self._settings)) <= _names_of(certificate)

    def _read(self) -> x509.Certificate | None:
        try:
            return x509.load_pem_x509_certificate(self._file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            logger.warning("The stored certificate cannot be used: %s", error)
            return None

    def _account_key(self) -> bytes:
        try:
            return self._account.read_bytes()
        except FileNotFoundError:
            key = _new_key()
            _write(self._account, key)
            return key


def host_names(settings: Settings) -> list[str]:
    """The host names of this server, that of the base URL first."""
    urls = [settings.base_url, settings.issuer, settings.sockets_base_url]
    urls += [f"https://{alias}" for alias in settings.host_aliases]
    names = [urlsplit(url).hostname for url in urls]
    return list(dict.fromkeys(name for name in names if name is not None))


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return set(found.value.get_values_for_type(x509.DNSName))


def _listening_address(settings: Settings) -> str:
    try:
        return str(ip_address(settings.host))
    except ValueError:
        return "127.0.0.1" if settings.host == "localhost" else "0.0.0.0"


def _new_key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, content: bytes) -> None:
    """Write a secret file in one step. Raises OrderFailed."""
    new = path.with_suffix(".new")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise OrderFailed(f"Cannot write {path}: {error.strerror}.") from error
