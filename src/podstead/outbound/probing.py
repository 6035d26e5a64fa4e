"""Probes this server as a client elsewhere sees it: one request, and the state of its certificate.

Only for the operator's command, which chooses the URLs itself, so the rules for URLs that strangers
name do not apply, and the call may block.
"""

import http.client
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

TIMEOUT_S: Final = 10.0
MAX_CONTENT_BYTES: Final = 256 * 1024
_DAY_S: Final = 86_400

_EXPIRED: Final = 10
_NOT_YET_VALID: Final = 9
_SELF_SIGNED: Final = frozenset({18, 19})
_NO_ISSUER: Final = frozenset({2, 20, 21})
_WRONG_NAME: Final = frozenset({62, 64})
"""The codes of OpenSSL for errors of verification."""


class CertificateFault(Enum):
    """Why clients refuse a certificate."""

    EXPIRED = "it has expired"
    NOT_YET_VALID = "it is not valid yet"
    WRONG_NAME = "it is for another name"
    SELF_SIGNED = "it is signed by itself, or by an authority that nobody knows"
    NO_ISSUER = "the certificate of its issuer is missing"
    OTHER = "it is not valid"


class NotReached(Exception):
    """There was no response."""


class BadCertificate(NotReached):
    """The server has no certificate that clients accept."""

    def __init__(self, fault: CertificateFault, reason: str) -> None:
        super().__init__(f"{fault.value} ({reason})")
        self.fault = fault


@dataclass(frozen=True, slots=True)
class ProbeReply:
    """A response; names of ``fields`` are in lower case."""

    status: int
    fields: Mapping[str, str]
    content: bytes
    certificate_days: float | None
    """How long the certificate is still valid; ``None`` without TLS."""


def probe(
    url: str, *, fields: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> ProbeReply:
    """Send a GET, following no redirect. Raises NotReached and BadCertificate."""
    parts = urlsplit(url)
    connection = _connection(parts.scheme, parts.hostname or "", parts.port, timeout_s)
    try:
        connection.connect()
        days = _days_left(connection.sock)
        path = parts.path or "/"
        connection.request("GET", path, headers={"User-Agent": "Podstead", **(fields or {})})
        response = connection.getresponse()
        return ProbeReply(
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(MAX_CONTENT_BYTES),
            days,
        )
    except ssl.SSLCertVerificationError as error:
        raise BadCertificate(_fault(error.verify_code), error.verify_message) from error
    except ssl.SSLError as error:
        raise NotReached(f"there is no TLS ({error.reason})") from error
    except TimeoutError as error:
        raise NotReached(f"there was no answer within {timeout_s:.0f} seconds") from error
    except OSError as error:
        raise NotReached(error.strerror or str(error)) from error
    except http.client.HTTPException as error:
        raise NotReached(f"the answer is not HTTP ({type(error).__name__})") from error
    finally:
        connection.close()


def _connection(
    scheme: str, host: str, port: int | None, timeout_s: float
) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


def _days_left(connection: object) -> float | None:
    if not isinstance(connection, ssl.SSLSocket):
        return None
    certificate = connection.getpeercert() or {}
    until_s = ssl.cert_time_to_seconds(str(certificate["notAfter"]))
    return (until_s - time.time()) / _DAY_S


def _fault(code: int) -> CertificateFault:
    if code == _EXPIRED:
        return CertificateFault.EXPIRED
    if code == _NOT_YET_VALID:
        return CertificateFault.NOT_YET_VALID
    if code in _WRONG_NAME:
        return CertificateFault.WRONG_NAME
    if code in _SELF_SIGNED:
        return CertificateFault.SELF_SIGNED
    return CertificateFault.NO_ISSUER if code in _NO_ISSUER else CertificateFault.OTHER
