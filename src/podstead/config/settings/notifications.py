"""Who hears of changes, and how many listen?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import kinds
from podstead.config.table import Group, setting


@dataclass(frozen=True, kw_only=True)
class NotificationSettings:
    """The settings of this part."""

    legacy_notifications_open: bool = setting(
        False,
        "legacy-notifications-open",
        kinds.SWITCH,
        Group.NOTIFICATIONS,
        (
            "Whether anybody may hear over the older protocol (solid-0.1) that a resource changed, "
            "also who may not read it. What is told is its URL, and nothing else."
        ),
        reason=(
            "Older servers told everybody, and most applications in a browser do not say who they "
            "are on a socket. Those hear of public resources only, unless you allow it."
        ),
    )
    sockets_per_address: int = setting(
        200,
        "sockets-per-address",
        kinds.integer(0, 1_000_000),
        Group.NOTIFICATIONS,
        (
            "How many sockets of solid-0.1 and of notifications one address may hold open at each "
            "worker; more get 429. 0 is without limit."
        ),
        unit="sockets",
        reason="A page has one or two; a household, or an office, has one address.",
    )
    sockets_per_agent: int = setting(
        100,
        "sockets-per-agent",
        kinds.integer(0, 1_000_000),
        Group.NOTIFICATIONS,
        "How many of them one agent that is signed in may hold open; 0 is without limit.",
        unit="sockets",
    )
    subscriptions_per_socket: int = setting(
        2000,
        "subscriptions-per-socket",
        kinds.integer(1, 1_000_000),
        Group.NOTIFICATIONS,
        "How many URLs one socket of solid-0.1 may be subscribed to.",
        unit="URLs",
        reason="Data browsers subscribe to every document that they show.",
    )
    max_watches: int = setting(
        100_000,
        "max-watches",
        kinds.integer(1),
        Group.NOTIFICATIONS,
        "How many subscriptions of all sorts each worker takes on; more are refused.",
        unit="subscriptions",
        reason="Each takes about a kilobyte of memory.",
    )
    max_waiting_notices: int = setting(
        1000,
        "max-waiting-notices",
        kinds.integer(1, 1_000_000),
        Group.NOTIFICATIONS,
        (
            "How many messages may wait for a client that does not take them; one more closes its "
            "connection."
        ),
        unit="messages",
        reason="Who is told of less than everything would not know it.",
    )
    heartbeat_s: int = setting(
        30,
        "heartbeat-s",
        kinds.integer(1, 3600),
        Group.NOTIFICATIONS,
        "After how long without a message a client is sent a sign that its connection lives.",
        unit="seconds",
        reason="Reverse proxies close connections on which nothing is sent for a minute.",
    )
    channels_per_agent: int = setting(
        100,
        "channels-per-agent",
        kinds.integer(0, 1_000_000),
        Group.NOTIFICATIONS,
        (
            "How many notification channels one agent may have at a time; more get 429. Where "
            "nobody has authenticated, how many one network (an IPv4 /24, an IPv6 /48) may have: "
            "there a new one ends the one unused for longest. 0 is without limit."
        ),
        unit="channels",
        reason=(
            "An application subscribes to what it shows; a channel lasts two weeks at most, and "
            "one of the public a day."
        ),
    )
    max_channels: int = setting(
        100_000,
        "max-channels",
        kinds.integer(0),
        Group.NOTIFICATIONS,
        (
            "How many notification channels there may be in all. Beyond that a new one ends one of "
            "the public, and gets 503 if there is none. 0 is without limit."
        ),
        unit="channels",
        reason="A channel is a small record in the database.",
    )
