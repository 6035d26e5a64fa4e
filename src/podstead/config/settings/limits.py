"""Limits for connections, requests, clients and notifications, and how long the server waits."""

from dataclasses import dataclass

from podstead.config import value_types
from podstead.config.table import Group, optional, setting

_KIB = 1024
_MIB = 1024 * 1024
_GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class LimitSettings:
    """The settings of this part."""

    max_connections: int = setting(
        4096,
        value_types.integer(1, 1_000_000),
        Group.LIMITS,
        "The maximum number of connections that each worker serves at once, including those of "
        "clients that wait for notifications. Further connections wait.",
        unit="connections",
        reason="Each uses a file descriptor and some memory; a WebSocket uses about 160 KiB.",
    )
    max_body_bytes: int = setting(
        _GIB,
        value_types.size_in_bytes(0),
        Group.LIMITS,
        "The maximum size of a body to store; larger ones get 413.",
        unit="bytes",
        reason="Bodies are written to disk in chunks, so only disk space is at stake.",
    )
    max_rdf_bytes: int = setting(
        4 * _MIB,
        value_types.size_in_bytes(_KIB, 256 * _MIB),
        Group.LIMITS,
        "The maximum size of an RDF document that the server parses; larger ones get 413.",
        unit="bytes",
        reason="RDF is parsed in memory; a document of this size takes about a third of a second.",
    )

    header_read_timeout_s: int = setting(
        30,
        value_types.integer(1, 3600),
        Group.TIMES,
        "How long the headers of a request may take to arrive, and how long a connection may stay "
        "open without a request, in every version of HTTP.",
        unit="seconds",
    )
    body_idle_timeout_s: int = setting(
        30,
        value_types.integer(1, 3600),
        Group.TIMES,
        "How long a request body may stop arriving, or a client may stop reading a response, "
        "before the server aborts the request.",
        unit="seconds",
    )
    drain_timeout_s: int = setting(
        10,
        value_types.integer(1, 3600),
        Group.TIMES,
        "How long requests in progress may take to finish after the server is told to stop.",
        unit="seconds",
        reason="Container platforms kill a process after ten seconds.",
    )

    pod_creations_per_hour: int = setting(
        60,
        value_types.integer(0, 1_000_000),
        Group.RATES,
        "The maximum number of pods that one address may create in an hour; 0 means no limit. "
        "While the base URL is a loopback address, the limit does not apply to requests from this "
        "machine.",
        unit="pods",
    )
    invalid_credentials_per_minute: int = setting(
        120,
        value_types.integer(0, 1_000_000),
        Group.RATES,
        "The maximum number of requests with invalid credentials that one address may send in a "
        "minute; further requests get 429. 0 means no limit.",
        unit="requests",
    )

    registrations_per_hour: int = setting(
        60,
        value_types.integer(0, 1_000_000),
        Group.RATES,
        "The maximum number of applications that one address may register with the identity "
        "provider in an hour; 0 means no limit.",
        unit="applications",
    )
    sign_in_failures_per_minute: int = setting(
        60,
        value_types.integer(0, 1_000_000),
        Group.RATES,
        "The maximum number of password sign-ins from one address that may fail in a minute; "
        "further attempts get 429. 0 means no limit. Successful sign-ins do not count towards the "
        "limit, nor do failures in browsers that have signed in to the account before.",
        unit="sign-ins",
    )


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
