"""The settings for notifications: who may receive them, and how many subscriptions are allowed."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import value_types
from podstead.config.table import Group, optional, setting


@dataclass(frozen=True, kw_only=True)
class NotificationSettings:
    """The settings of this part."""

    sockets_port: int | None = optional(
        value_types.integer(0, 65535),
        Group.NOTIFICATIONS,
        "A TCP port on which only WebSockets are served, with less memory and processor time for "
        "each; 0 lets the system choose a free one. Clients are sent there; sockets on the "
        "ordinary port still work.",
        reason="Worth its firewall rule or proxy route for a server with hundreds of open sockets.",
    )
    sockets_url: str | None = optional(
        value_types.ORIGIN,
        Group.NOTIFICATIONS,
        "The URL at which clients reach sockets-port. Set it to the base URL if a reverse proxy "
        "routes the handshakes of WebSockets to that port.",
        shown_default="the base URL with the port of sockets-port",
    )
    sockets_per_address: int = setting(
        200,
        value_types.integer(0, 1_000_000),
        Group.NOTIFICATIONS,
        "The maximum number of WebSockets (solid-0.1 and notifications) that one address may hold "
        "open at each worker; further ones get 429. 0 means no limit.",
        unit="sockets",
        reason="A page opens one or two; a household or an office shares one address.",
    )
    heartbeat_s: int = setting(
        30,
        value_types.integer(1, 3600),
        Group.NOTIFICATIONS,
        "How long a connection may be silent before the server sends a message to keep it open.",
        unit="seconds",
        reason="Many reverse proxies close a connection after a minute without traffic.",
    )
    channels_per_agent: int = setting(
        100,
        value_types.integer(0, 1_000_000),
        Group.NOTIFICATIONS,
        "The maximum number of notification channels that one agent may have at a time; further "
        "ones get 429. Unauthenticated clients share this limit per network (an IPv4 /24 or an "
        "IPv6 /48); there, a new channel replaces the one that has been unused for longest. 0 "
        "means no limit.",
        unit="channels",
        reason="An application subscribes to what it displays. A channel lasts at most two weeks, "
        "or one day for unauthenticated clients.",
    )
    max_channels: int = setting(
        100_000,
        value_types.integer(0),
        Group.NOTIFICATIONS,
        "The maximum number of notification channels in total. When it is reached, a new channel "
        "replaces one of an unauthenticated client; if there is none, the request gets 503. 0 "
        "means no limit.",
        unit="channels",
        reason="A channel is a small record in the database.",
    )
