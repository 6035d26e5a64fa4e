"""Requests to a server on behalf of one agent, whose token is sent to that server only; and the
errors in watching a resource.

    PodsteadError
    └── WatchError           the message says what the person can do about it
        ├── AccessLost        the resource may no longer be read
        ├── Interrupted       the server is temporarily unreachable or failing
        └── NotServed         the address for receiving changes responds with something else

Each message is a sentence for the person at the terminal.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from podstead.core.errors import PodsteadError
from podstead.outbound import errors, fetch, requests, transport, urls
from podstead.outbound.guard import Guard


class WatchError(PodsteadError):
    """The resource cannot be watched."""


class AccessLost(WatchError):
    """The watched resource may no longer be read, or no longer exists."""


class Interrupted(WatchError):
    """The server is temporarily unreachable or failing."""


class NotServed(WatchError):
    """The address for receiving changes responded with an unexpected ``status``."""

    def __init__(self, status: int, *, host: str) -> None:
        super().__init__(f"{host} does not send changes: it answers {status}.")
        self.status = status


def unreachable(failure: errors.FetchFailed, *, host: str) -> WatchError:
    """Convert a failed request to an error for the user; ``host`` is the server's name."""
    if isinstance(failure, errors.BadStatus):
        return NotServed(failure.status, host=host)
    if isinstance(failure, errors.Refused):
        return WatchError(f"The server refers to {host}, to which no connection is allowed.")
    if isinstance(failure, errors.TooLarge | errors.WrongType):
        return WatchError(f"Cannot read the response of {host}: {failure}.")
    return Interrupted(_trouble(failure, host))


@contextmanager
def _reaching(url: str) -> Iterator[None]:
    try:
        yield
    except errors.FetchFailed as failure:
        raise unreachable(failure, host=host_of(url)) from failure


def _trouble(failure: errors.FetchFailed, host: str) -> str:
    if isinstance(failure, errors.TooSlow):
        return f"{host} did not respond in time."
    for cause in _causes(failure):
        match cause:
            case ssl.CertificateError():
                return (
                    f"The certificate of {host} is not trusted. To trust it, set SSL_CERT_FILE to "
                    "the PEM file of the authority that issued it."
                )
            case ssl.SSLError():
                return f"{host} does not speak TLS on that port. Is it an http:// address?"
            case socket.gaierror():
                return f"Cannot resolve {host}: no such host, or no name server can be reached."
            case ConnectionRefusedError():
                return f"No server is listening at {host}."
    return f"Cannot reach {host}."


def _causes(error: BaseException) -> Iterator[BaseException]:
    following: BaseException | None = error
    while following is not None:
        yield following
        following = following.__cause__ or following.__context__


_MAX_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Server:
    """The server at ``origin``, and those that it refers to. All failures raise WatchError."""

    def __init__(
        self, guard: Guard, *, tls: ssl.SSLContext, origin: urls.Origin, token: str | None
    ) -> None:
        self._guard = guard
        self._tls = tls
        self._origin = origin
        self._token = token
        self._lasting = requests.LongLivedConnections(guard, tls=tls)

    @property
    def has_token(self) -> bool:
        """Whether requests are authenticated."""
        return self._token is not None

    async def look(
        self, method: str, url: str, *, accept: str
    ) -> tuple[str, requests.ReceivedResponse]:
        """HEAD or GET, following redirects; returns the final URL and the response."""
        for _ in range(_MAX_REDIRECTS + 1):
            with _reaching(url):
                reply = await self._submit(method, url, {"Accept": accept})
                location = reply.field("location")
                if reply.status not in _REDIRECTS or not location:
                    return url, reply
                url = self._followed(url, location)
        raise WatchError(f"{url} redirects too many times.")

    async def post(
        self, url: str, content: bytes, *, content_type: str
    ) -> requests.ReceivedResponse:
        """POST, with a response of the same media type."""
        with _reaching(url):
            fields = {"Content-Type": content_type, "Accept": content_type}
            return await self._submit("POST", url, fields, content)

    async def delete(self, url: str) -> None:
        """DELETE, ignoring the status. Raises WatchError."""
        with _reaching(url):
            await self._submit("DELETE", url, {})

    @asynccontextmanager
    async def stream(
        self, url: str, *, accept: str, last_id: str = "", with_token: bool
    ) -> AsyncIterator[transport.RemoteResponse]:
        """A GET with a streamed response. An address created for one receiver needs no token."""
        headers = {
            **self._headers(url, with_token=with_token),
            "Accept": accept,
            "Accept-Encoding": "identity",  # compression would delay messages
        }
        if last_id:
            headers["Last-Event-ID"] = last_id
        with _reaching(url):
            async with self._lasting.stream(url, headers) as answer:
                yield answer

    @asynccontextmanager
    async def web_socket(
        self, url: str, *, protocols: Sequence[str] = (), with_token: bool
    ) -> AsyncIterator[transport.ClientWebSocket]:
        """Open a WebSocket; for the token, see :meth:`stream`."""
        headers = self._headers(url, with_token=with_token)
        with _reaching(url):
            async with self._lasting.web_socket(url, headers, protocols=protocols) as opened:
                yield opened

    async def _submit(
        self, method: str, url: str, fields: dict[str, str], content: bytes = b""
    ) -> requests.ReceivedResponse:
        request = requests.OutgoingRequest(method, url, {**self._headers(url), **fields}, content)
        return await requests.submit(request, self._guard, tls=self._tls)

    def _headers(self, url: str, *, with_token: bool = True) -> dict[str, str]:
        headers = {"User-Agent": fetch.USER_AGENT}
        if with_token and self._token is not None and self._is_ours(url):
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _is_ours(self, url: str) -> bool:
        try:
            return self._guard.admit(requests.http_form(url)).origin == self._origin
        except errors.Refused:
            return False

    def _followed(self, url: str, location: str) -> str:
        followed = urls.resolve_reference(url, location)
        if url.startswith("https:") and not followed.startswith("https:"):
            raise errors.Refused(errors.Refusal.REDIRECT)
        return followed


def host_of(url: str) -> str:
    """The host of a URL, with the port if it has one."""
    return url.partition("://")[2].partition("/")[0].partition("?")[0]
