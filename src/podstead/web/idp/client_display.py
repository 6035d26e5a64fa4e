"""How is an application described to a person? By the name it gives itself, and by where it is.

No application must be able to pose as another. A host is shown in ASCII, so that letters of another
alphabet cannot imitate it. The pods of this server share a host but belong to different people, so
for an application in a pod the pod is shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from podstead.idp.client_metadata import is_document_url, is_on_this_device, redirect_host
from podstead.idp.grants import ConnectedClient
from podstead.idp.records import Client

_ESCAPED_DOT: Final = re.compile(r"%2e", re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ClientDisplay:
    """The description of an application on a page. The application chooses its name."""

    name: str
    host: str | None
    """The place of the application's document; ``None`` for one that registered itself."""
    redirect_host: str
    """The place that the person is sent to afterwards."""
    on_this_device: bool = False
    """Whether this is a program on the person's own device."""


def client_display(client: Client, redirect_uri: str, *, base_url: str) -> ClientDisplay:
    """How a page of the server at ``base_url`` describes an application that redirects to a URL."""
    host = None if client.registered else place_of(client.client_id, base_url=base_url)
    onward = place_of(redirect_uri, base_url=base_url)
    return ClientDisplay(
        client.client_name or host or onward, host, onward, is_on_this_device(redirect_uri)
    )


def places_of(client: ConnectedClient, *, base_url: str) -> Sequence[str]:
    """The places of a connected application on the account page: that of its document, if it has
    one, and those that the person was sent to. A host that all pods of this server share does not
    identify an application, so for one in a pod the pod is shown."""
    redirect_hosts = {redirect_host(each) for each in client.redirect_uris}
    named = [place_of(each, base_url=base_url) for each in client.redirect_uris]
    named += [_ascii_host(h.lower()) for h in client.hosts if h not in redirect_hosts]
    hosts = list(dict.fromkeys(named))
    if not is_document_url(client.client_id):
        return hosts
    place = place_of(client.client_id, base_url=base_url)
    shared = place_of(base_url, base_url=base_url)
    in_a_pod = place.startswith(f"{shared}/")
    onward = [host for host in hosts if not (in_a_pod and host == shared)]
    return tuple(dict.fromkeys((place, *onward)))


def place_of(url: str, *, base_url: str) -> str:
    """The place of a URL as people read it: its host; on this server the pod, too; for a private
    scheme the scheme."""
    parts = urlsplit(url)
    if not parts.netloc:
        return f"{parts.scheme}:"
    host = _ascii_host(parts.netloc.lower())
    pod = _first_segment(url) if _origin(parts) == _origin(urlsplit(base_url)) else ""
    return f"{host}/{pod}" if pod else host


def _ascii_host(authority: str) -> str:
    try:
        return authority.encode("idna").decode("ascii")
    except UnicodeError:
        return authority.encode("ascii", errors="backslashreplace").decode("ascii")


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _first_segment(url: str) -> str:
    """The pod of a path as browsers resolve it: they go up at each ``..``, encoded or not."""
    path = _ESCAPED_DOT.sub(".", urlsplit(url).path)
    return urlsplit(urljoin(url, f"/{path.lstrip('/')}")).path.lstrip("/").partition("/")[0]
