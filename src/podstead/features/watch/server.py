"""Requests to a server on behalf of one agent, whose token is sent to that server only."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from podstead.features.watch.errors import WatchError, unreachable
from podstead.outbound.errors import FetchFailed, Refusal, Refused
from podstead.outbound.fetch import USER_AGENT
from podstead.outbound.guard import Guard
from podstead.outbound.requests import (
    LongLivedConnections,
    OutgoingRequest,
    ReceivedResponse,
    http_form,
    submit,
)
from podstead.outbound.transport import ClientWebSocket, RemoteResponse
from podstead.outbound.urls import Origin, resolve_reference

_MAX_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Server:
    """The server at ``origin``, and those that it refers to. All failures raise WatchError."""

    def __init__(
        self, guard: Guard, *, tls: ssl.SSLContext, origin: Origin, token: str | None
    ) -> None:
        self._guard = guard
        self._tls = tls
        self._origin = origin
        self._token = token
        self._lasting = LongLivedConnections(guard, tls=tls)

    @property
    def has_token(self) -> bool:
        """Whether requests are authenticated."""
        return self._token is not None

    async def look(self, method: str, url: str, *, accept: str) -> tuple[str, ReceivedResponse]:
        """HEAD or GET, following redirects; returns the final URL and the response."""
        try:
            for _ in range(_MAX_REDIRECTS + 1):
                headers = {**self._headers(url), "Accept": accept}
                reply = await submit(
                    OutgoingRequest(method, url, headers), self._guard, tls=self._tls
                )
                location = reply.field("location")
                if reply.status not in _REDIRECTS or not location:
                    return url, reply
                url = self._followed(url, location)
        except FetchFailed as failure:
            raise unreachable(failure, host=host_of(url)) from failure
        raise WatchError(f"{url} redirects too many times.")

    async def post(self, url: str, content: bytes, *, content_type: str) -> ReceivedResponse:
        """POST, with a response of the same media type."""
        headers = {**self._headers(url), "Content-Type": content_type, "Accept": content_type}
        try:
            return await submit(
                OutgoingRequest("POST", url, headers, content), self._guard, tls=self._tls
            )
        except FetchFailed as failure:
            raise unreachable(failure, host=host_of(url)) from failure

    async def delete(self, url: str) -> None:
        """DELETE, ignoring the status. Raises WatchError."""
        try:
            await submit(
                OutgoingRequest("DELETE", url, self._headers(url)), self._guard, tls=self._tls
            )
        except FetchFailed as failure:
            raise unreachable(failure, host=host_of(url)) from failure

    @asynccontextmanager
    async def stream(
        self, url: str, *, accept: str, last_id: str = "", with_token: bool
    ) -> AsyncIterator[RemoteResponse]:
        """A GET with a streamed response. An address created for one receiver needs no token."""
        headers = {
            **self._headers(url, with_token=with_token),
            "Accept": accept,
            "Accept-Encoding": "identity",  # compression would delay messages
        }
        if last_id:
            headers["Last-Event-ID"] = last_id
        try:
            async with self._lasting.stream(url, headers) as answer:
                yield answer
        except FetchFailed as failure:
            raise unreachable(failure, host=host_of(url)) from failure

    @asynccontextmanager
    async def web_socket(
        self, url: str, *, protocols: Sequence[str] = (), with_token: bool
    ) -> AsyncIterator[ClientWebSocket]:
        """Open a WebSocket; for the token, see :meth:`stream`."""
        headers = self._headers(url, with_token=with_token)
        try:
            async with self._lasting.web_socket(url, headers, protocols=protocols) as opened:
                yield opened
        except FetchFailed as failure:
            raise unreachable(failure, host=host_of(url)) from failure

    def _headers(self, url: str, *, with_token: bool = True) -> dict[str, str]:
        headers = {"User-Agent": USER_AGENT}
        if with_token and self._token is not None and self._is_ours(url):
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _is_ours(self, url: str) -> bool:
        try:
            return self._guard.admit(http_form(url)).origin == self._origin
        except Refused:
            return False

    def _followed(self, url: str, location: str) -> str:
        followed = resolve_reference(url, location)
        if url.startswith("https:") and not followed.startswith("https:"):
            raise Refused(Refusal.REDIRECT)
        return followed


def host_of(url: str) -> str:
    """The host of a URL, with the port if it has one."""
    return url.partition("://")[2].partition("/")[0].partition("?")[0]
