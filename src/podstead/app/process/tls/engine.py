"""One TLS connection as a state machine with bytes in and bytes out, without I/O.

The only module that uses pyOpenSSL. The standard library cannot request a certificate without
verifying it: it requests none, or refuses those that no certificate authority has signed.

A client's certificate is requested, not required, and any certificate is accepted. The handshake
proves that the client holds its key, and nothing else (A-160). Every connection makes a full
handshake, since a resumed one would not present the certificate.
"""

from dataclasses import dataclass

from cryptography import x509
from OpenSSL import SSL, crypto

from podstead.app.process.certificate import CertificatePair
from podstead.core.caches import BoundedCache

_PIECE_BYTES = 64 * 1024
_RECORD_BYTES = 16 * 1024
_RECORD_OVERHEAD_BYTES = 256
"""More than what TLS adds to a record (RFC 8446 section 5.2, RFC 5246 section 6.2.3)."""
_CACHE_CHARACTERS = 2 * 1024 * 1024
"""Of the clients' certificates that are kept, and of their names."""
_SESSION_CONTEXT = b"podstead"
_PARTIAL_WRITE = 0x1
"""SSL_MODE_ENABLE_PARTIAL_WRITE: pyOpenSSL sets it, and a call would write one record only."""

_CIPHERS = b"ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2, those with forward secrecy and authenticated encryption; TLS 1.3 has no others."""
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
"""The IANA numbers of the cipher suites (TLS Parameters registry) by their OpenSSL names."""
_PROTOCOLS = (b"h2", b"http/1.1")
"""The protocols of the HTTP server behind, in order of preference (RFC 7301)."""


class TlsFailed(Exception):
    """The client violates TLS; or, at the start, the server's key cannot be used for it."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a handshake established."""

    chain: tuple[str, ...]
    """The client's certificate in PEM format, and those sent with it; empty if it sent none."""
    name: str | None
    """The subject of the client's certificate (RFC 4514), if it can be read."""
    version: int
    """The version as encoded in TLS: 0x0303 is TLS 1.2."""
    cipher: int | None
    """The number of the cipher suite in the IANA registry."""
    server_certificate: str | None
    """The certificate presented to the client, in PEM format."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A certificate that a client has presented."""

    pem: str
    name: str | None


class ServerContext:
    """What all connections share: the server's certificate and the TLS configuration."""

    def __init__(self, pair: CertificatePair) -> None:
        """Raises TlsFailed for a pair that cannot be used."""
        try:
            self._context = _make_context(pair)
        except SSL.Error as error:
            raise TlsFailed(_reason(error)) from error
        # The certificate of a context can only be read from a connection.
        own = SSL.Connection(self._context, None).get_certificate()
        self._certificate = None if own is None else _pem(own)
        self._known = BoundedCache[bytes, _Known](_CACHE_CHARACTERS)

    def connection(self) -> "TlsConnection":
        """The server's side of a new connection."""
        return TlsConnection(SSL.Connection(self._context, None), self)

    def handshake(self, connection: SSL.Connection) -> Handshake:
        """The result of a handshake: the client's certificate, and the protection of the
        connection."""
        presented = [self._read(each) for each in _chain(connection)]
        return Handshake(
            chain=tuple(each.pem for each in presented),
            name=presented[0].name if presented else None,
            version=connection.get_protocol_version(),
            cipher=_CIPHER_NUMBERS.get(connection.get_cipher_name() or ""),
            server_certificate=self._certificate,
        )

    def _read(self, certificate: crypto.X509) -> _Known:
        # Clients present the same certificate with each connection, and parsing it takes as long
        # as all the rest of introducing them. With one text for all of them, their requests can be
        # compared without comparing its characters.
        der = crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)
        known = self._known.get(der)
        if known is None:
            known = _Known(_pem(certificate), _name(der))
            weight = len(der) + len(known.pem) + len(known.name or "")
            self._known.put(der, known, weight=weight)
        return known


class TlsConnection:
    """One connection. :meth:`feed` takes received bytes; :meth:`taken` returns bytes to send."""

    __slots__ = ("_connection", "_context", "ended")

    def __init__(self, connection: SSL.Connection, context: ServerContext) -> None:
        self._connection = connection
        self._context = context
        self.ended = False
        """Whether the client has ended its side (close_notify)."""
        connection.set_accept_state()

    def feed(self, data: bytes) -> None:
        """Accept received bytes."""
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
        """All decrypted data from the client that has not been read yet. Raises TlsFailed."""
        # OpenSSL returns at most one record for each call.
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
        except SSL.ZeroReturnError:  # close_notify, the only authenticated end
            self.ended = True
            return b""
        except SSL.Error as error:
            raise TlsFailed(_reason(error)) from error

    def write(self, data: bytes) -> bytes:
        """The bytes to send so that the client reads ``data``. Raises TlsFailed."""
        try:
            self._connection.send(data)
        except SSL.Error as error:
            raise TlsFailed(_reason(error)) from error
        # Enough for all of it in one call. A larger value only costs the size of a buffer.
        records = len(data) // _RECORD_BYTES + 2
        return self._connection.bio_read(len(data) + records * _RECORD_OVERHEAD_BYTES)

    def close(self) -> bytes:
        """The bytes that end the server's side (close_notify)."""
        try:
            self._connection.shutdown()
        except SSL.Error:  # in the middle of a handshake, or after a failure
            return b""
        return self.taken()

    def taken(self) -> bytes:
        """What TLS itself has to send: handshake messages, answers to key updates, alerts."""
        pieces = []
        try:
            while True:
                pieces.append(self._connection.bio_read(_PIECE_BYTES))
        except SSL.WantReadError:
            return b"".join(pieces)

    def handshake(self) -> Handshake:
        """The result of the handshake: the client's certificate, and the protection of the
        connection."""
        return self._context.handshake(self._connection)


def _make_context(pair: CertificatePair) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(_CIPHERS)
    context.use_certificate_chain_file(str(pair.chain))
    context.use_privatekey_file(str(pair.key))
    context.check_privatekey()
    context.set_verify(SSL.VERIFY_PEER, _take_any)
    # No resumption. Without a session ID context, OpenSSL rejects clients that try to resume,
    # instead of performing a full handshake.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(_SESSION_CONTEXT)
    context.set_options(
        SSL.OP_NO_TICKET
        | SSL.OP_NO_RENEGOTIATION
        | SSL.OP_NO_COMPRESSION
        | SSL.OP_CIPHER_SERVER_PREFERENCE
    )
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)  # there are many idle connections
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


def _chain(connection: SSL.Connection) -> list[crypto.X509]:
    # On the server's side, the chain of OpenSSL lacks the client's own certificate.
    certificate = connection.get_peer_certificate()
    return [] if certificate is None else [certificate, *(connection.get_peer_cert_chain() or ())]


def _pem(certificate: crypto.X509) -> str:
    return crypto.dump_certificate(crypto.FILETYPE_PEM, certificate).decode("ascii")


def _name(der: bytes) -> str | None:
    try:
        return x509.load_der_x509_certificate(der).subject.rfc4514_string()
    except Exception:  # noqa: BLE001 - strangers' certificates can fail to parse in any way
        return None  # the connection does not depend on it; authentication checks the certificate


def _reason(error: SSL.Error) -> str:
    entries = error.args[0] if error.args else ()
    reasons = [entry[-1] for entry in entries] if isinstance(entries, (list, tuple)) else []
    return "; ".join(reasons) or type(error).__name__
