"""When has the server's certificate been renewed, and can the new one be used?

The files are checked at intervals, and when the operator sends SIGHUP. A change applies once two
checks in a row have seen it: whoever renews the files writes one after the other. Files that cannot
be used are reported and ignored, and the certificate in use stays.
"""

from __future__ import annotations

import logging
import signal
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from podstead.app.process.certificate import CertificatePair, read_key_pair, server_context
from podstead.config import Settings, StartRefused

if TYPE_CHECKING:
    from podstead.app.process.tls.engine import ServerContext

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
    if not settings.webid_tls:
        return ServerKeys(pair.content_hash, pair=pair, socket_context=for_sockets)
    from podstead.app.process.tls.engine import ServerContext, TlsFailed

    try:
        return ServerKeys(
            pair.content_hash, context=ServerContext(pair), socket_context=for_sockets
        )
    except TlsFailed as error:
        raise StartRefused(
            f"ssl-cert {settings.ssl_cert} and ssl-key {settings.ssl_key} cannot be used with "
            f"webid-tls ({error}). Supply a certificate for a key of a common type and size."
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
                "The certificate in use stays, since another was found that does not serve. %s",
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
