"""Can the server's certificate and key be used? Checked before anything else starts.

A valid pair is copied into memory and used from there: whoever renews the files writes one after
the other, and a worker that starts in between must not read one old and one new file.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import sys
from dataclasses import dataclass, field
from pathlib import Path

from podstead.config import Settings, StartRefused


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate chain and its key, checked to belong together."""

    chain: Path
    """In PEM format, the server's own certificate first."""
    key: Path
    """In PEM format, without a passphrase."""
    content_hash: bytes
    """The hash of both, to compare pairs."""
    _descriptors: tuple[int, ...] = field(default=(), repr=False)

    def forget(self) -> None:
        """Free the memory. To be called once, when no process will read the pair again."""
        for descriptor in self._descriptors:
            os.close(descriptor)


def read_key_pair(settings: Settings) -> CertificatePair | None:
    """The certificate and key of the settings; ``None`` without TLS. Raises StartRefused if the
    files cannot be used."""
    if settings.ssl_cert is None or settings.ssl_key is None:
        return None
    chain = _read("ssl-cert", settings.ssl_cert)
    key = _read("ssl-key", settings.ssl_key)
    if sys.platform == "linux":
        pair = _in_memory(chain, key)
    else:
        pair = CertificatePair(settings.ssl_cert, settings.ssl_key, _hash(chain, key))
    try:
        server_context(pair)
    except (ssl.SSLError, ValueError) as error:
        pair.forget()
        raise StartRefused(
            f"ssl-cert {settings.ssl_cert} and ssl-key {settings.ssl_key} cannot be used "
            f"({_reason(error)}). Supply a certificate chain in PEM format and its own key, "
            "without a passphrase."
        ) from error
    return pair


def _read(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartRefused(f"Cannot read {name} {path}: {error.strerror}.") from error


if sys.platform == "linux":

    def _in_memory(chain: bytes, key: bytes) -> CertificatePair:
        descriptors = _memory_file("ssl-cert", chain), _memory_file("ssl-key", key)
        # Workers inherit the descriptors. Opened by these names, they are read from the beginning.
        chain_path, key_path = (Path(f"/proc/self/fd/{each}") for each in descriptors)
        return CertificatePair(chain_path, key_path, _hash(chain, key), descriptors)

    def _memory_file(name: str, content: bytes) -> int:
        descriptor = os.memfd_create(name)
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        return descriptor


def _hash(chain: bytes, key: bytes) -> bytes:
    return hashlib.sha256(chain + b"\0" + key).digest()


def server_context(pair: CertificatePair) -> ssl.SSLContext:
    """The configuration of the standard library's TLS. Raises ssl.SSLError and ValueError for a
    pair that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Without a password callback, OpenSSL would prompt for one at the terminal.
    context.load_cert_chain(pair.chain, pair.key, password="")
    return context


def _reason(error: ssl.SSLError | ValueError) -> str:
    if isinstance(error, ssl.SSLError) and not error.reason:
        # OpenSSL gives no reason for a file that it cannot parse at all.
        return "one of them is not in PEM format, or has a passphrase"
    return str(getattr(error, "reason", error)).lower().replace("_", " ")
