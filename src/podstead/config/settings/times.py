"""How long does the server wait?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import value_types
from podstead.config.table import Group, setting


@dataclass(frozen=True, kw_only=True)
class TimeSettings:
    """The settings of this part."""

    header_read_timeout_s: int = setting(
        30,
        "header-read-timeout-s",
        value_types.integer(1, 3600),
        Group.TIMES,
        (
            "How long the headers of a request may take to arrive, and how long a connection "
            "may stay open without a request, in every version of HTTP."
        ),
        unit="seconds",
    )
    body_idle_timeout_s: int = setting(
        30,
        "body-idle-timeout-s",
        value_types.integer(1, 3600),
        Group.TIMES,
        (
            "How long a request body may stop arriving, or a client may stop reading a "
            "response, before the server aborts the request."
        ),
        unit="seconds",
    )
    min_upload_bytes_per_s: int = setting(
        100,
        "min-upload-bytes-per-s",
        value_types.integer(0, 1_000_000),
        Group.TIMES,
        (
            "The minimum rate at which a request body must arrive. A body may be slower, or "
            "stop, for a total of body-idle-timeout-s; faster data restores that time. When "
            "the time is used up, the server aborts the request. 0 means no minimum."
        ),
        unit="bytes per second",
        reason="A slower client holds the connection deliberately or has no chance of finishing.",
    )
    drain_timeout_s: int = setting(
        10,
        "drain-timeout-s",
        value_types.integer(1, 3600),
        Group.TIMES,
        ("How long requests in progress may take to finish after the server is told to stop."),
        unit="seconds",
        reason="Container platforms kill a process after ten seconds.",
    )
    keep_alive: bool = setting(
        True,
        "keep-alive",
        value_types.SWITCH,
        Group.TIMES,
        "Whether a connection may carry more than one request.",
    )
