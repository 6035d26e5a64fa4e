"""What goes over the wire of a TLS connection? A machine of bytes in and bytes out, without I/O.

The only module that knows pyOpenSSL. The standard library cannot ask for a certificate that nobody
vouches for: it asks for none, or refuses what no certificate authority has signed.

A client's certificate is asked for, not demanded, and whatever certificate is shown is taken. The
handshake proves that the client has its key, and nothing else (A-160). Every connection makes a
full handshake, since a resumed one would not show the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

from OpenSSL import SSL, crypto

from podstead.app.certificate import KeyPair

_PIECE_BYTES = 64 * 1024
_RECORD_BYTES = 16 * 1024
_RECORD_OVERHEAD_BYTES = 256
"""More than what TLS adds to a record (RFC 8446 section 5.2, RFC 5246 section 6.2.3)."""
_SESSION_CONTEXT = b"podstead"
_PARTIAL_WRITE = 0x1
"""SSL_MODE_ENABLE_PARTIAL_WRITE: pyOpenSSL sets it, and a call would write one record only."""

_CIPHERS = b"ECDHE+AESGCM:ECDHE+CHACHA20"
"""Those of TLS 1.2 with forward secrecy and authenticated encryption; TLS 1.3 has no others."""
_CIPHER_NUMBERS = {
    "TLS_AES_128_GCM_SHA256": 0x1301,
    "TLS_AES_256_GCM_SHA384": 0x1302,
    "TLS_CHACHA20_POLY1305_SHA256": 0x1303,
    "ECDHE-ECDSA-AES128-GCM-SHA256": 0xC02B,
    "ECDHE-ECDSA-AES256-GCM-SHA384": 0xC02C,
    "ECDHE-RSA-AES128-GCM-SHA256": 0xC02F,
    "ECDHE-RSA-AES256-GCM-SHA384": 0xC030,
    "ECDHE-RSA-CHACHA20-POLY1305": 0xCCA8,
    "ECDHE-ECDSA-CHACHA20-POLY1305": 0xCCA9,
}
"""The registry of TLS parameters at IANA, by OpenSSL's names."""
_PROTOCOLS = (b"h2", b"http/1.1")
"""What the HTTP server speaks, best first (RFC 7301)."""


class TlsFailed(Exception):
    """The other side does not keep to TLS; or, at the start, the key does not serve for it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a handshake brought to light."""

    chain: tuple[str, ...]
    """The client's certificate in PEM format, and those it sent along; empty if it has none."""
    name: str | None
    """The subject of the client's certificate (RFC 4514), if it can be read."""
    version: int
    """As on the wire: 0x0303 is TLS 1.2."""
    cipher: int | None
    """Its number at IANA."""
    server_certificate: str | None
    """What the client was shown, in PEM format."""


class ServerContext:
    """What the connections have in common: the server's certificate, and the rules."""

    def __init__(self, pair: KeyPair) -> None:
        """Raises TlsFailed for a pair that cannot be used."""
        try:
            self._context = _make_context(pair)
        except SSL.Error as error:
            raise TlsFailed(_reason(error)) from error
        own = SSL.Connection(self._context, None).get_certificate()
        self._certificate = None if own is None else _pem(own)

    def connection(self) -> TlsConnection:
        """The server's side of a new connection."""
        return TlsConnection(SSL.Connection(self._context, None), self._certificate)


class TlsConnection:
    """One connection. Bytes of the wire go in by :meth:`feed`, and come out by :meth:`taken`."""

    __slots__ = ("_connection", "_server_certificate", "ended")

    def __init__(self, connection: SSL.Connection, server_certificate: str | None) -> None:
        self._connection = connection
        self._server_certificate = server_certificate
        self.ended = False
        """Whether the client has said that it sends no more (close_notify)."""
        connection.set_accept_state()

    def feed(self, data: bytes) -> None:
        """Take in what came over the wire."""
        self._connection.bio_write(data)

    def shake_hands(self) -> bool:
        """Whether the handshake is complete. Raises TlsFailed."""
        try:
            self._connection.do_handshake()
        except SSL.WantReadError:
            return False
        except SSL.Error as error:
            raise TlsFailed(_reason(error)) from error
        return True

    def read(self) -> bytes:
        """All that the client has said and that is not read yet. Raises TlsFailed."""
        piece = self._read_record()
        if not piece:
            return b""
        following = self._read_record()
        if not following:  # by far the most frequent case
            return piece
        pieces = [piece]
        while following:
            pieces.append(following)
            following = self._read_record()
        return b"".join(pieces)

    def _read_record(self) -> bytes:
        try:
            return self._connection.recv(_RECORD_BYTES)
        except SSL.WantReadError:
            return b""
        except SSL.ZeroReturnError:
            self.ended = True
            return b""
        except SSL.Error as error:
            raise TlsFailed(_reason(error)) from error

    def write(self, data: bytes) -> bytes:
        """What to send over the wire for the client to read ``data``. Raises TlsFailed."""
        try:
            self._connection.send(data)
        except SSL.Error as error:
            raise TlsFailed(_reason(error)) from error
        records = len(data) // _RECORD_BYTES + 2
        return self._connection.bio_read(len(data) + records * _RECORD_OVERHEAD_BYTES)

    def close(self) -> bytes:
        """What to send to say that no more will come."""
        try:
            self._connection.shutdown()
        except SSL.Error:  # in the middle of a handshake, or after a failure
            return b""
        return self.taken()

    def taken(self) -> bytes:
        """What TLS itself has to send: its part of the handshake, its answers, its alerts."""
        pieces = []
        try:
            while True:
                pieces.append(self._connection.bio_read(_PIECE_BYTES))
        except SSL.WantReadError:
            return b"".join(pieces)

    def shown(self) -> Shown:
        """After the handshake: who the client says it is, and how the connection is protected."""
        connection = self._connection
        certificate = connection.get_peer_certificate()
        return Shown(
            chain=() if certificate is None else _chain(certificate, connection),
            name=None if certificate is None else _name(certificate),
            version=connection.get_protocol_version(),
            cipher=_CIPHER_NUMBERS.get(connection.get_cipher_name() or ""),
            server_certificate=self._server_certificate,
        )


def _make_context(pair: KeyPair) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(_CIPHERS)
    context.use_certificate_chain_file(str(pair.chain))
    context.use_privatekey_file(str(pair.key))
    context.check_privatekey()
    context.set_verify(SSL.VERIFY_PEER, _take_any)
    # No resumption. Without a context of sessions, clients that try one all the same would fail.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(_SESSION_CONTEXT)
    context.set_options(
        SSL.OP_NO_TICKET
        | SSL.OP_NO_RENEGOTIATION
        | SSL.OP_NO_COMPRESSION
        | SSL.OP_CIPHER_SERVER_PREFERENCE
    )
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)  # idle connections are many
    context.clear_mode(_PARTIAL_WRITE)
    context.set_alpn_select_callback(_choose_protocol)
    return context


def _take_any(
    _connection: SSL.Connection, _certificate: crypto.X509, _error: int, _depth: int, _good: int
) -> bool:
    return True


def _choose_protocol(_connection: SSL.Connection, offered: list[bytes]) -> bytes:
    for protocol in _PROTOCOLS:
        if protocol in offered:
            return protocol
    raise TlsFailed("The client speaks no version of HTTP that the server does")  # RFC 7301, 3.2


def _chain(certificate: crypto.X509, connection: SSL.Connection) -> tuple[str, ...]:
    # On this side of a connection OpenSSL does not count the client's own among the chain.
    others = connection.get_peer_cert_chain() or []
    return tuple(_pem(each) for each in (certificate, *others))


def _pem(certificate: crypto.X509) -> str:
    return crypto.dump_certificate(crypto.FILETYPE_PEM, certificate).decode("ascii")


def _name(certificate: crypto.X509) -> str | None:
    try:
        return certificate.to_cryptography().subject.rfc4514_string()
    except Exception:  # noqa: BLE001 - of any kind, by what strangers make up
        return None  # it is taken all the same; whoever asks more of it will see


def _reason(error: SSL.Error) -> str:
    entries = error.args[0] if error.args else ()
    reasons = [entry[-1] for entry in entries] if isinstance(entries, (list, tuple)) else []
    return "; ".join(reasons) or type(error).__name__
