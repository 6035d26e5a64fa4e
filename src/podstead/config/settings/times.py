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
    drain_timeout_s: int = setting(
        10,
        "drain-timeout-s",
        value_types.integer(1, 3600),
        Group.TIMES,
        ("How long requests in progress may take to finish after the server is told to stop."),
        unit="seconds",
        reason="Container platforms kill a process after ten seconds.",
    )
