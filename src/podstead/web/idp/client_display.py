"""What is a person told of an application? Its name is what it says; where it is, we know.

Nobody must be able to seem another. A host is shown as the network knows it, so that letters of
another alphabet do not pass for ours. On this server every pod is somebody else's, though they
share a host: what is in a pod is shown with the pod.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from podstead.idp.client_metadata import is_document_url
from podstead.idp.connected_clients import ConnectedClient
from podstead.idp.records import Client
from podstead.idp.redirects import is_on_this_device, redirect_host

_ESCAPED_DOT: Final = re.compile(r"%2e", re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ClientDisplay:
    """What a page says of an application. The name is what the application calls itself."""

    name: str
    host: str | None
    """Who vouches for the application; ``None`` for one that registered itself."""
    redirect_host: str
    """Where the person is sent afterwards."""
    on_this_device: bool = False
    """Whether that is a program on the person's own device."""


def client_display(client: Client, redirect_uri: str, *, base_url: str) -> ClientDisplay:
    """What a page of the server at ``base_url`` says of an application that leads to an address."""
    host = None if client.registered else place_of(client.client_id, base_url=base_url)
    onward = place_of(redirect_uri, base_url=base_url)
    return ClientDisplay(
        client.client_name or host or onward, host, onward, is_on_this_device(redirect_uri)
    )


def places_of(client: ConnectedClient, *, base_url: str) -> Sequence[str]:
    """Where a connected application is, on the account page: where its document is, if it has one,
    and where the person was sent. A host that all pods of this server share names none of them, so
    of an application in a pod the pod is shown instead."""
    told = {redirect_host(each) for each in client.redirect_uris}
    named = [place_of(each, base_url=base_url) for each in client.redirect_uris]
    named += [_as_the_network_knows_it(h.lower()) for h in client.hosts if h not in told]
    hosts = list(dict.fromkeys(named))
    if not is_document_url(client.client_id):
        return hosts
    place = place_of(client.client_id, base_url=base_url)
    shared = place_of(base_url, base_url=base_url)
    in_a_pod = place.startswith(f"{shared}/")
    onward = [host for host in hosts if not (in_a_pod and host == shared)]
    return tuple(dict.fromkeys((place, *onward)))


def place_of(url: str, *, base_url: str) -> str:
    """Where a URL is, as a person is told: its host, and of one of this server the pod as well; of
    an application's own scheme the scheme."""
    parts = urlsplit(url)
    if not parts.netloc:
        return f"{parts.scheme}:"
    host = _as_the_network_knows_it(parts.netloc.lower())
    pod = _first_segment(url) if _origin(parts) == _origin(urlsplit(base_url)) else ""
    return f"{host}/{pod}" if pod else host


def _as_the_network_knows_it(authority: str) -> str:
    try:
        return authority.encode("idna").decode("ascii")
    except UnicodeError:
        return authority.encode("ascii", errors="backslashreplace").decode("ascii")


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _first_segment(url: str) -> str:
    """Of the path as browsers take it, which go up at each ``..``, however it is spelled."""
    path = _ESCAPED_DOT.sub(".", urlsplit(url).path)
    return urlsplit(urljoin(url, f"/{path.lstrip('/')}")).path.lstrip("/").partition("/")[0]
