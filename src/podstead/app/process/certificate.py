"""Reads and checks the server's certificate and key, and notices when they have been renewed.

A valid pair is copied into memory and used from there: whoever renews the files writes one after
the other, and a worker that starts in between must not read one old and one new file.

The files are checked at intervals, and when the operator sends SIGHUP. A change applies once two
checks in a row have seen it. Files that cannot be used are reported and ignored, and the
certificate in use stays.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import ssl
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from podstead.config import Settings, StartRefused
from podstead.features import client_certificate_setting

if TYPE_CHECKING:
    from podstead.app.process.tls.engine import ServerContext


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


logger = logging.getLogger("podstead.app")

RENEWAL_SIGNAL = signal.SIGHUP
CHECK_INTERVAL_S: Final = 60
"""How often the server checks the files for a renewed certificate."""

Signature = tuple[tuple[int, ...], ...]
"""A value that changes when the files change."""


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """The certificate and key in the form that workers need."""

    content_hash: bytes
    """Identifies the pair."""
    pair: CertificatePair | None = None
    """For the HTTP server's own TLS."""
    context: ServerContext | None = None
    """Used instead of ``pair`` by the listener that requests client certificates."""
    socket_context: ssl.SSLContext | None = None
    """For the listener for WebSockets, if there is one."""


def prepare_keys(settings: Settings) -> ServerKeys | None:
    """The keys for the TLS of the settings; ``None`` without TLS. Raises StartRefused."""
    pair = read_key_pair(settings)
    if pair is None:
        return None
    for_sockets = None if settings.sockets_port is None else server_context(pair)
    asking = client_certificate_setting(settings)
    if asking is None:
        return ServerKeys(pair.content_hash, pair=pair, socket_context=for_sockets)
    from podstead.app.process.tls.engine import ServerContext, TlsFailed

    try:
        return ServerKeys(
            pair.content_hash, context=ServerContext(pair), socket_context=for_sockets
        )
    except TlsFailed as error:
        raise StartRefused(
            f"ssl-cert {settings.ssl_cert} and ssl-key {settings.ssl_key} cannot be used with "
            f"{asking} ({error}). Supply a certificate for a key of a common type and size."
        ) from error
    finally:
        pair.forget()


class Renewal:
    """Checks for renewed files, and passes on those that can be used."""

    def __init__(
        self, settings: Settings, in_use: Callable[[], bytes], adopt: Callable[[ServerKeys], None]
    ) -> None:
        """``in_use`` returns the content hash of the keys in use."""
        self._settings = settings
        self._in_use = in_use
        self._adopt = adopt
        self._judged = self._signature()
        self._last_seen = self._judged

    def watch(self) -> None:
        """Check forever. To be called in its own thread, with RENEWAL_SIGNAL blocked."""
        asked = threading.Event()
        threading.Thread(target=_note_signals, args=(asked,), daemon=True).start()
        self.look_regularly(asked)

    def look_regularly(self, asked: threading.Event) -> NoReturn:
        """Check every CHECK_INTERVAL_S, and immediately when ``asked`` is set."""
        while True:
            is_asked = asked.wait(CHECK_INTERVAL_S)
            asked.clear()
            self.look(at_once=is_asked)

    def look(self, *, at_once: bool) -> None:
        """Check once. With ``at_once``, even files that have just changed are used."""
        seen = self._signature()
        is_settled = seen == self._last_seen
        self._last_seen = seen
        if at_once or (is_settled and seen != self._judged):
            self._judged = seen
            self._judge()

    def _judge(self) -> None:
        try:
            keys = prepare_keys(self._settings)
        except StartRefused as error:
            logger.error(  # noqa: TRY400 - expected trouble has no traceback
                "The certificate in use stays, because the new one cannot be used. %s",
                error,
            )
            return
        if keys is None:
            return
        if keys.content_hash != self._in_use():
            self._adopt(keys)
        elif keys.pair is not None:
            keys.pair.forget()

    def _signature(self) -> Signature | None:
        files = (self._settings.ssl_cert, self._settings.ssl_key)
        try:
            facts = [file.stat() for file in files if file is not None]
        except OSError:
            return None
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in facts)


def _note_signals(asked: threading.Event) -> None:
    while True:
        signal.sigwait({RENEWAL_SIGNAL})
        asked.set()
