"""Are containers repositories of git?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import kinds
from podstead.config.table import Group, setting


@dataclass(frozen=True, kw_only=True)
class GitSettings:
    """The settings of this part."""

    git: bool = setting(
        False,
        "git",
        kinds.SWITCH,
        Group.GIT,
        (
            "Whether each container is a repository of git as well, to clone, fetch and push over "
            "HTTP. Needs the program git."
        ),
    )
    git_processes: int = setting(
        8,
        "git-processes",
        kinds.integer(1, 1000),
        Group.GIT,
        (
            "How many requests of git each worker answers at once, half of them for one address; "
            "one that still has to wait after ten seconds gets 503."
        ),
        unit="processes",
        reason="Each is a process that may take a core and some hundred MiB.",
    )
    git_idle_timeout_s: int = setting(
        60,
        "git-idle-timeout-s",
        kinds.integer(5, 3600),
        Group.GIT,
        (
            "How long git, or a client that takes its answer, may do nothing before the request is "
            "given up."
        ),
        unit="seconds",
        reason="A client that stops reading must not keep a process for good.",
    )
