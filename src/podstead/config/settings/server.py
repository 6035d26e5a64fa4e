"""How is the server reached, and how does it speak to who reaches it?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from podstead.config import kinds
from podstead.config.table import Group, Sources, optional, setting


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The settings of this part."""

    host: str = setting(
        "localhost",
        "host",
        kinds.HOST,
        Group.SERVER,
        "The name or address of this machine to listen on.",
        reason="Only this machine can connect until you decide otherwise.",
    )
    port: int = setting(
        3000,
        "port",
        kinds.integer(0, 65535),
        Group.SERVER,
        "The TCP port to listen on; 0 lets the system choose one.",
    )
    base_url: str = setting(
        "http://localhost:3000",
        "base-url",
        kinds.BASE_URL,
        Group.SERVER,
        (
            "The URL under which clients reach this server: the beginning of the name of "
            "everything stored, so do not change it once pods exist. It must be given when "
            "the host is not localhost."
        ),
        shown_default="http or https (with ssl-cert) at localhost and the port",
    )
    workers: int = setting(
        1,
        "workers",
        kinds.integer(1, 64),
        Group.SERVER,
        "How many processes answer requests.",
        unit="processes",
        reason="One serves thousands of requests a second; more pay off with free cores.",
    )
    config: Path | None = optional(
        "config",
        kinds.FILE,
        Group.SERVER,
        "A TOML file with further settings.",
        sources=Sources.OPTION | Sources.VARIABLE,
    )
    log_level: str = setting(
        "info",
        "log-level",
        kinds.one_of("debug", "info", "warning", "error"),
        Group.SERVER,
        "The least important kind of message that is logged, on standard error.",
    )
    log_format: str = setting(
        "text",
        "log-format",
        kinds.one_of("text", "json"),
        Group.SERVER,
        "How log messages are written: lines to read, or one JSON object a line.",
    )
    quiet: bool = setting(
        False,
        "quiet",
        kinds.SWITCH,
        Group.SERVER,
        "Print nothing but errors: no summary at the start, no messages below error.",
    )
    list_storages: bool = setting(
        False,
        "list-storages",
        kinds.SWITCH,
        Group.SERVER,
        "Whether /.well-known/solid names the pods of this server to everybody, up to 1,000.",
        reason="Who has a pod here is for its owner to tell.",
    )
    advertise_owners: bool = setting(
        False,
        "advertise-owners",
        kinds.SWITCH,
        Group.SERVER,
        "Whether the root of a pod links to its owner's WebID, for all who may read the root.",
        reason="An owner who closes the profile may want to stay unknown.",
    )
    registration: str = setting(
        "open",
        "registration",
        kinds.one_of("open", "closed"),
        Group.SERVER,
        (
            "Whether anybody may make a pod, and an account with it at the identity provider; if "
            "closed, the operator makes them with 'podstead account create'."
        ),
    )
    ssl_cert: Path | None = optional(
        "ssl-cert",
        kinds.FILE,
        Group.SERVER,
        (
            "The certificate chain in PEM format; given with ssl-key, the server speaks "
            "HTTPS (TLS 1.2 and later)."
        ),
    )
    ssl_key: Path | None = optional(
        "ssl-key",
        kinds.FILE,
        Group.SERVER,
        "The private key of ssl-cert in PEM format, without a password.",
    )

    ssl_check_interval_s: int = setting(
        60,
        "ssl-check-interval-s",
        kinds.integer(1, 86_400),
        Group.SERVER,
        (
            "How often the files of ssl-cert and ssl-key are looked at. A renewed certificate is "
            "used from the second look on, or at once if the server gets the signal SIGHUP."
        ),
        unit="seconds",
    )
