"""Orders the server's certificate by ACME (RFC 8555), with the challenge http-01, and renews it.

The key and the chain are in one file of the data root, which is replaced at once: two files could
be of different certificates after a crash. The rest of the server sees them as ``ssl-cert`` and
``ssl-key``, so a renewed certificate takes effect as that of any other program does
(``app/process/certificate.py``). A listener for plain HTTP answers the challenges of the authority
and nothing else, for as long as an order takes: a minute every two months.

The only module that uses the libraries for ACME.
"""

import errno
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlsplit

import requests
from acme import challenges, crypto_util, errors, messages
from acme.client import ClientNetwork, ClientV2
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from josepy.jwa import ES256
from josepy.jwk import JWKEC

from podstead import __version__
from podstead.app.process.admin_http import AdminHttpHandler, AdminHttpServer
from podstead.config import Settings
from podstead.core.errors import PodsteadError
from podstead.features.acme import CERTIFICATE, FOLDER, AcmeSettings
from podstead.storage.files import replace_private

_TIMEOUT_S: Final = 30
_MAX_ORDER_TIME: Final = timedelta(minutes=3)

Publish = Callable[[str, bytes], None]
"""Makes a body available at a path, by plain HTTP."""


class OrderFailed(PodsteadError):
    """No certificate was issued; the message says why."""


@dataclass(frozen=True, slots=True)
class CertificateOrder:
    """What to order, from whom, and as whom."""

    directory: str
    """The URL of the authority's directory."""
    ca_file: Path | None
    """The certificates by which the authority's HTTPS is verified; ``None`` for those of the
    system."""
    email: str
    names: Sequence[str]
    """The host names, all of which the certificate is to be valid for."""
    account_key: bytes
    """In PEM format, of the curve P-256; it identifies the account."""
    key: bytes
    """The new private key of the certificate, in PEM format."""


def order_certificate(order: CertificateOrder, publish: Publish) -> bytes:
    """Order a certificate and wait for it; the chain in PEM format. Raises OrderFailed."""
    try:
        return _order(order, publish)
    except errors.ValidationError as error:
        raise OrderFailed(_challenge_failure(error)) from error
    except errors.TimeoutError as error:
        raise OrderFailed(f"{order.directory} did not decide within three minutes.") from error
    except requests.exceptions.SSLError as error:
        raise OrderFailed(
            f"The certificate of {order.directory} is not trusted: for an authority of your own, "
            "set acme-ca-file to the file with its certificates."
        ) from error
    except requests.ConnectionError as error:
        raise OrderFailed(f"{order.directory} cannot be reached.") from error
    except (errors.Error, messages.Error, requests.RequestException, ValueError) as error:
        raise OrderFailed(f"{order.directory} refused the order: {_one_line(error)}") from error


def _order(order: CertificateOrder, publish: Publish) -> bytes:
    key = JWKEC(key=serialization.load_pem_private_key(order.account_key, None))
    network = ClientNetwork(
        key,
        alg=ES256,
        # The library hands it to requests, which takes a path as well.
        verify_ssl=order.ca_file is None or str(order.ca_file),  # type: ignore[arg-type]
        user_agent=f"podstead/{__version__}",
        timeout=_TIMEOUT_S,
    )
    client = ClientV2(ClientV2.get_directory(order.directory, network), network)
    _log_in(client, order.email)
    placed = client.new_order(crypto_util.make_csr(order.key, list(order.names)))
    for authorization in placed.authorizations:
        if authorization.body.status != messages.STATUS_VALID:
            _prove(client, authorization, publish)
    deadline = datetime.now() + _MAX_ORDER_TIME  # noqa: DTZ005 - what the library compares with
    finished = client.poll_and_finalize(placed, deadline)
    chain: str = finished.fullchain_pem
    return chain.encode("ascii")


def _log_in(client: ClientV2, email: str) -> None:
    """Create the account, or use the one that the key has."""
    wanted = messages.NewRegistration.from_data(email=email, terms_of_service_agreed=True)
    try:
        client.new_account(wanted)
    except errors.ConflictError as existing:
        client.net.account = messages.RegistrationResource(
            uri=existing.location, body=messages.Registration()
        )


def _prove(
    client: ClientV2, authorization: messages.AuthorizationResource, publish: Publish
) -> None:
    """Answer the challenge for one name (section 8.3)."""
    for offered in authorization.body.challenges:
        if isinstance(offered.chall, challenges.HTTP01):
            response, validation = offered.response_and_validation(client.net.key)
            publish(offered.chall.path, validation.encode("ascii"))
            client.answer_challenge(offered, response)
            return
    raise OrderFailed(
        f"The authority offers no challenge http-01 for {authorization.body.identifier.value}."
    )


def _challenge_failure(error: errors.ValidationError) -> str:
    reasons = [
        f"{failed.body.identifier.value}: {_one_line(challenge.error)}"
        for failed in error.failed_authzrs
        for challenge in failed.body.challenges
        if challenge.error is not None
    ]
    return f"The authority could not verify the host names. {'; '.join(reasons)}"


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:500]


_POLL_S: Final = 0.1


@contextmanager
def answering_challenges(host: str, port: int) -> Iterator[Publish]:
    """Listen, and answer what is published. Raises OrderFailed if the port cannot be opened."""
    answers: dict[str, bytes] = {}

    class Handler(_Handler):
        published = answers

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listener = socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise OrderFailed(_why(error, port)) from error
    server = AdminHttpServer(listener, Handler)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
    thread.start()
    try:
        yield answers.__setitem__
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(AdminHttpHandler):
    published: ClassVar[dict[str, bytes]]

    def do_GET(self) -> None:  # noqa: N802 - as http.server has it
        """Answer the path of a challenge."""
        body = self.published.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")


def _why(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        reason = "it is in use"
    elif error.errno == errno.EACCES:
        reason = "the current user may not"
    else:
        reason = str(error.strerror)
    return (
        f"Cannot open port {port} for the challenge of the authority: {reason}. The authority "
        "always asks port 80; forward that port to another one that you set with --acme-port."
    )


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
        self.file = settings.root / FOLDER / CERTIFICATE
        self._account = self.file.with_name("account.pem")

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
        settings = self._settings.of(AcmeSettings)
        names = host_names(self._settings)
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
        host = _listening_address(self._settings)
        with answering_challenges(host, settings.acme_port) as publish:
            chain = order_certificate(order, publish)
        _write(self.file, key + chain)
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
            return x509.load_pem_x509_certificate(self.file.read_bytes())
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
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    """Write a secret file in one step. Raises OrderFailed."""
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_private(path, content)
    except OSError as error:
        raise OrderFailed(f"Cannot write {path}: {error.strerror}.") from error
