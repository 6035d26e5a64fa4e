"""Watches a resource for ``podstead watch``, as any client would, on any Solid server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.errors import BadRequest
from podstead.outbound.errors import Refused
from podstead.outbound.fetch import trusted_certificates
from podstead.outbound.guard import Guard, SystemResolver
from podstead.outbound.urls import Target, UrlRules, is_loopback_host, parse_origin
from podstead.watch.server import Server
from podstead.watch.watching import WatchEvent, Watching


class NoSuchAddress(BadRequest):
    """The URL cannot be watched."""


@asynccontextmanager
async def watching(url: str, *, token: str | None) -> AsyncIterator[AsyncIterator[WatchEvent]]:
    """The changes of the resource at ``url``, without an end.

    Raises NoSuchAddress, and WatchError during the iteration.
    """
    target, rules = _admitted(url)
    resolver = SystemResolver()
    server = Server(
        Guard(rules, resolver),
        tls=trusted_certificates(),
        origin=target.origin,
        token=token,
    )
    told = Watching(server, bundled_contexts(), target.url).events()
    try:
        async with aclosing(told):
            yield told
    finally:
        resolver.close()


def _admitted(url: str) -> tuple[Target, UrlRules]:
    """The parsed URL, and the rules for requests while it is watched."""
    scheme, _, rest = url.partition("://")
    try:
        origin = parse_origin(f"{scheme}://{rest.partition('/')[0].partition('?')[0]}")
        # The user of the command chose the server, which may be in a private network.
        rules = UrlRules(private_origins=frozenset({origin}))
        target = rules.admit(url)
    except Refused as refused:
        raise _no_address(url) from refused
    if is_loopback_host(target.host):
        return target, UrlRules(loopback_allowed=True)
    if target.scheme != "https":
        raise _no_address(url)
    return target, rules


def _no_address(url: str) -> NoSuchAddress:
    return NoSuchAddress(
        f"Cannot watch '{url}': it must be the absolute URL of a resource and begin with https:// "
        "(or with http:// for a server on this machine), such as "
        "https://pods.example/alice/notes/."
    )
