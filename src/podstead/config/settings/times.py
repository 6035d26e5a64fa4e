"""How long is too long?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import kinds
from podstead.config.table import Group, setting


@dataclass(frozen=True, kw_only=True)
class TimeSettings:
    """The settings of this part."""

    header_read_timeout_s: int = setting(
        30,
        "header-read-timeout-s",
        kinds.integer(1, 3600),
        Group.TIMES,
        (
            "How long the headers of a request may take to arrive, and how long a connection "
            "may stay open without a request, whatever the version of HTTP."
        ),
        unit="seconds",
    )
    body_idle_timeout_s: int = setting(
        30,
        "body-idle-timeout-s",
        kinds.integer(1, 3600),
        Group.TIMES,
        (
            "How long a request body may stop arriving, and a client may take nothing of a "
            "response, before the server gives up."
        ),
        unit="seconds",
    )
    min_upload_bytes_per_s: int = setting(
        100,
        "min-upload-bytes-per-s",
        kinds.integer(0, 1_000_000),
        Group.TIMES,
        (
            "How fast a body has to arrive, or the request is given up. It may be slower, or stop, "
            "for body-idle-timeout-s taken together; what comes faster gives that time back. 0 is "
            "however slowly."
        ),
        unit="bytes a second",
        reason="A client that is slower holds a connection on purpose, or may as well give up.",
    )
    drain_timeout_s: int = setting(
        10,
        "drain-timeout-s",
        kinds.integer(1, 3600),
        Group.TIMES,
        "How long requests in flight may take to end when the server is stopped.",
        unit="seconds",
        reason="Container platforms kill after ten seconds.",
    )
    keep_alive: bool = setting(
        True,
        "keep-alive",
        kinds.SWITCH,
        Group.TIMES,
        "Whether a connection may carry several requests.",
    )
