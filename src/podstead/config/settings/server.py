"""The settings for listening, serving and logging, and for trusted proxies, hosts and origins."""

from dataclasses import dataclass
from pathlib import Path

from podstead.config import value_types
from podstead.config.table import Group, Sources, optional, setting, several
from podstead.config.value_types import Network
from podstead.outbound.urls import Origin


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The settings of this part."""

    host: str = setting(
        "localhost",
        value_types.HOST,
        Group.SERVER,
        "The host name or IP address to listen on.",
        reason="With the default, only this machine can connect.",
    )
    port: int = setting(
        3000,
        value_types.integer(0, 65535),
        Group.SERVER,
        "The TCP port to listen on; 0 lets the system choose a free one.",
    )
    base_url: str = setting(
        "http://localhost:3000",
        value_types.BASE_URL,
        Group.SERVER,
        "The URL at which clients reach this server. The URL of every stored resource begins with "
        "it, so do not change it once pods exist. Required unless the host is localhost.",
        shown_default="http or https (with ssl-cert), localhost, and the port",
    )
    workers: int | None = setting(
        None,
        value_types.automatic_or(value_types.integer(1, 64)),
        Group.SERVER,
        "The number of worker processes that answer requests, or auto for one for each core that "
        "the server may use.",
        reason="Each further worker needs memory of its own; set a lower number to save some.",
        shown_default="auto, which respects CPU affinity and the CPU limits of containers",
    )
    admin_listen: value_types.ListenAddress | None = setting(
        value_types.ListenAddress("127.0.0.1", 9090),
        value_types.LISTEN_ADDRESS,
        Group.SERVER,
        "The private address of health checks (/health/live, /health/ready) and metrics for "
        "Prometheus (/metrics), or off. Whoever can reach it can read them, so it must not be "
        "reachable from the internet. If another program uses the default address, the server logs "
        "a warning and runs without it; it refuses to start if it cannot open an address that you "
        "set.",
    )
    config: Path | None = optional(
        value_types.FILE,
        Group.SERVER,
        "A TOML file with further settings.",
        sources=Sources.OPTION | Sources.VARIABLE,
    )
    log_level: str = setting(
        "info",
        value_types.one_of("debug", "info", "warning", "error"),
        Group.SERVER,
        "The lowest level of messages to log. Logs go to standard error.",
    )
    log_format: str = setting(
        "text",
        value_types.one_of("text", "json"),
        Group.SERVER,
        "The format of log messages: plain text, or one JSON object per line.",
    )
    access_log: str = setting(
        "off",
        value_types.one_of("off", "common", "json"),
        Group.SERVER,
        "The format of a line about each request on standard output: the Common Log Format, JSON, "
        "or no lines. If it is on, each response has the field X-Request-Id, which is also in the "
        "line.",
        reason="It contains the addresses and WebIDs of people, and costs time.",
    )
    access_log_percent: int = setting(
        100,
        value_types.integer(1, 100),
        Group.SERVER,
        "How many of a hundred requests the access log contains. It always contains those that the "
        "server failed to answer (status 500 and above).",
        unit="percent",
    )
    quiet: bool = setting(
        False,
        value_types.SWITCH,
        Group.SERVER,
        "Print only errors: no summary at startup, and no log messages below the level error.",
    )
    list_storages: bool = setting(
        False,
        value_types.SWITCH,
        Group.SERVER,
        "Whether /.well-known/solid lists the pods of this server, up to 1,000, for everybody.",
        reason="Whether to disclose that a person has a pod here is up to that person.",
    )
    advertise_owners: bool = setting(
        False,
        value_types.SWITCH,
        Group.SERVER,
        "Whether responses for the root of a pod link to the WebID of its owner, for everybody who "
        "may read the root.",
        reason="An owner whose profile is private may want to remain unknown.",
    )
    registration: str = setting(
        "open",
        value_types.one_of("open", "invited", "closed"),
        Group.SERVER,
        "Who may create a pod and, if the identity provider is on, an account for it: anybody "
        "(open), whoever has the code of an invitation (invited; 'podstead invite create'), or "
        "only the operator (closed; 'podstead account create').",
        live=True,
    )
    operator_name: str | None = optional(
        value_types.LINE,
        Group.SERVER,
        "Who runs this server, as the first page and the registration page say it.",
        live=True,
    )
    operator_contact: str | None = optional(
        value_types.CONTACT,
        Group.SERVER,
        "How people reach the operator: an e-mail address or a URL. Shown on the first page, on "
        "the registration page, and to people who have lost their password.",
        live=True,
    )
    terms: Path | None = optional(
        value_types.FILE,
        Group.SERVER,
        "The terms of use, as a text file, or in Markdown if its name ends in .md. People accept "
        "them when they register, and find them at /.pages/terms. After a change, restart the "
        "server; pages then ask everybody to accept them again.",
    )
    ssl_cert: Path | None = optional(
        value_types.FILE,
        Group.SERVER,
        "The certificate chain in PEM format. With ssl-cert and ssl-key, the server speaks HTTPS "
        "(TLS 1.2 and later).",
    )
    ssl_key: Path | None = optional(
        value_types.FILE,
        Group.SERVER,
        "The private key for ssl-cert in PEM format, without a passphrase.",
    )


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """The settings of this part."""

    trusted_proxies: tuple[Network, ...] = several(
        value_types.NETWORK,
        Group.TRUST,
        "The address or network of a reverse proxy whose X-Forwarded-… headers the server trusts.",
        reason="Otherwise anybody could claim any address.",
        name="trusted-proxy",
    )
    host_aliases: tuple[str, ...] = several(
        value_types.AUTHORITY,
        Group.TRUST,
        "A further value of the Host header to accept. Requests with any value other than these "
        "and the host of the base URL get 421.",
        name="host-alias",
    )
    context_origins: tuple[Origin, ...] = several(
        value_types.ORIGIN,
        Group.TRUST,
        "An origin from which the server may fetch JSON-LD contexts, in addition to the contexts "
        "that it includes.",
        reason="The server fetches nothing merely because a document refers to it. If you list an "
        "origin, you trust it to define what documents mean, including documents stored earlier.",
        name="context-origin",
    )
    private_origins: tuple[Origin, ...] = several(
        value_types.ORIGIN,
        Group.TRUST,
        "An origin in a private network that the server may fetch documents from.",
        reason="By default, no request can make the server access its own network.",
        name="allow-private-origin",
    )
