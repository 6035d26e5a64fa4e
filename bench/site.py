"""How are single requests sent to one server, outside the measured time?

A `Site` is a server as its client sees it: an address, a pod, and the headers that give access to
it. The checks before and after each round, and the documents they need, use this module.
"""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Final

from bench.messages import ADDRESS, PROOF, Answer, NotMeasurable, Request, address_text

if TYPE_CHECKING:
    from pathlib import Path

    from bench.provider import Application

LOOPBACK: Final = "127.0.0.1"
TIMEOUT_S: Final = 120.0
WRITERS: Final = 8
_FIRST_ERROR: Final = 400

# Addresses of single requests start here, far above the blocks that the load generator uses.
_FIRST_SINGLE_ADDRESS: Final = 200 * 65_536

Headers = Mapping[str, str]


def _no_headers() -> Headers:
    return {}


@dataclass(frozen=True, slots=True)
class Stored:
    """A representation to be stored: path below the pod, media type without parameters, bytes."""

    path: str
    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class TlsClient:
    """A client that speaks TLS. It trusts one certificate of a server; it may have one itself,
    with its key in the same file."""

    trusted: Path
    certificate: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return what connections need to know of that."""
        context = ssl.create_default_context(cafile=str(self.trusted))
        if self.certificate is not None:
            context.load_cert_chain(self.certificate)
        return context


@dataclass
class Site:
    """A running server. `pod` is the path of the pod, with both slashes.

    `application` acts for the owner as well, with a token that needs a proof for each request.
    `certificate` is the owner's, with its key in the same file; it is only shown if asked for.
    `attempts` is how often a document may be sent until the server accepts it.
    """

    port: int
    pod: str = "/"
    authorization: Callable[[], Headers] = _no_headers
    write_headers: Headers = field(default_factory=dict)
    application: Application | None = None
    tls: TlsClient | None = None
    certificate: Path | None = None
    attempts: int = 1
    _addresses: itertools.count[int] = field(
        default_factory=lambda: itertools.count(_FIRST_SINGLE_ADDRESS)
    )

    @property
    def authority(self) -> str:
        """Host and port as they stand in URLs and in the Host header."""
        return f"localhost:{self.port}"

    @property
    def scheme(self) -> str:
        """What its URLs begin with."""
        return "http" if self.tls is None else "https"

    def connect(self) -> HTTPConnection:
        """Return a new connection, not yet opened."""
        if self.tls is None:
            return HTTPConnection(LOOPBACK, self.port, timeout=TIMEOUT_S)
        return HTTPSConnection(LOOPBACK, self.port, timeout=TIMEOUT_S, context=self.tls.context())

    def url(self, path: str) -> str:
        """Return the absolute URL of a path below the pod."""
        return f"{self.scheme}://{self.authority}{self.pod}{path}"

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Headers | None = None,
        body: str | bytes = b"",
        authorized: bool = False,
    ) -> Request:
        """Return a request for a path below the pod, with the owner's credentials if asked."""
        credentials = self.authorization() if authorized else {}
        limits = {} if method == "GET" else self.write_headers
        together = {"Host": self.authority, **credentials, **limits, **(headers or {})}
        return Request(method, self.pod + path, together, body)

    def proven_request(self, method: str, path: str, *, headers: Headers) -> Request:
        """Return a request of the application, with `PROOF` in the place of its proof."""
        if self.application is None:
            raise NotMeasurable("has no application with a token that is bound to a key")
        credentials = {"Authorization": self.application.authorization, "DPoP": PROOF}
        limits = {} if method == "GET" else self.write_headers
        together = {"Host": self.authority, **credentials, **limits, **headers}
        return Request(method, self.pod + path, together)

    def proof(self, method: str, path: str) -> str:
        """Return a fresh proof for the request."""
        if self.application is None:
            raise NotMeasurable("has no application with a token that is bound to a key")
        return self.application.proof(method, self.url(path))

    def send(self, request: Request, connection: HTTPConnection | None = None) -> Answer:
        """Send one request, on this connection or on a new one.

        Raises:
            OSError, http.client.HTTPException: no whole answer came.
        """
        own = connection or self.connect()
        try:
            return self._exchange(own, request)
        finally:
            if connection is None:
                own.close()

    def filled(self, headers: Headers) -> Headers:
        """Return the headers with an address of its own in the place of `ADDRESS`."""
        address = address_text(next(self._addresses))
        return {name: value.replace(ADDRESS, address) for name, value in headers.items()}

    def get(self, path: str, accept: str, *, authorized: bool = False) -> Answer:
        """Ask for a representation, whatever the answer is."""
        wanted = {"Accept": accept}
        return self.send(self.request("GET", path, headers=wanted, authorized=authorized))

    def certified(self) -> Site:
        """Return the same site as its owner sees it who shows a certificate."""
        if self.tls is None or self.certificate is None:
            raise NotMeasurable("has no owner with a certificate")
        return Site(self.port, self.pod, tls=TlsClient(self.tls.trusted, self.certificate))

    def store(self, items: Iterable[Stored]) -> None:
        """Store all of these, over a few connections at once.

        Raises:
            WrongAnswer: one was not accepted.
        """
        queue = iter(list(items))
        with ThreadPoolExecutor(WRITERS) as pool:
            for done in [pool.submit(self._store_from, queue) for _ in range(WRITERS)]:
                done.result()

    def _store_from(self, queue: Iterator[Stored]) -> None:
        # `next` on a list iterator is atomic, so the writers can share one queue.
        connection = self.connect()
        try:
            for item in queue:
                typed = {"Content-Type": item.media_type}
                request = self.request(
                    "PUT", item.path, headers=typed, body=item.body, authorized=True
                )
                answer = self.send(request, connection)
                for _ in range(self.attempts - 1):
                    if answer.status < _FIRST_ERROR:
                        break
                    answer = self.send(request, connection)
                answer.require(200, 201, 204, 205)
        finally:
            connection.close()

    def _exchange(self, connection: HTTPConnection, request: Request) -> Answer:
        body = request.body.encode() if isinstance(request.body, str) else request.body
        connection.putrequest(
            request.method, request.path, skip_host=True, skip_accept_encoding=True
        )
        for name, value in self.filled(request.headers).items():
            connection.putheader(name, value)
        if request.method != "GET":
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        return _answer(connection.getresponse())


@dataclass
class ProvenSite(Site):
    """A server that only the application opens."""

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Headers | None = None,
        body: str | bytes = b"",
        authorized: bool = False,
    ) -> Request:
        """Return a request with a proof of its own, if it is authorized."""
        if not authorized:
            return super().request(method, path, headers=headers, body=body)
        proven = self.proven_request(method, path, headers=headers or {})
        together = {**proven.headers, "DPoP": self.proof(method, path)}
        return Request(method, proven.path, together, body)


@dataclass
class StaticSite(Site):
    """A server of plain files: storing is writing below its document root."""

    root: Path | None = None

    def store(self, items: Iterable[Stored]) -> None:
        """Write the files.

        Raises:
            OSError: a file cannot be written.
        """
        assert self.root is not None
        for item in items:
            target = self.root / item.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(item.body)


def _answer(response: HTTPResponse) -> Answer:
    body = response.read()
    pairs = response.getheaders()
    line = len(f"HTTP/1.1 {response.status} {response.reason}\r\n")
    section = sum(len(name) + len(value) + len(": \r\n") for name, value in pairs) + len("\r\n")
    headers = {name.lower(): value for name, value in pairs}
    chunked = "transfer-encoding" in headers
    size_bytes = None if chunked else line + section + len(body)
    return Answer(response.status, headers, body, size_bytes)
