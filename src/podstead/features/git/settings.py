"""The settings for containers as git repositories."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import value_types
from podstead.config.table import setting


@dataclass(frozen=True, kw_only=True)
class GitSettings:
    """The settings of this part."""

    git: bool = setting(
        False,
        value_types.SWITCH,
        "Git",
        "Whether every container is also a git repository that clients can clone, fetch from and "
        "push to over HTTP. Requires git to be installed.",
        common=True,
    )
    git_processes: int = setting(
        8,
        value_types.integer(1, 1000),
        "Git",
        "The maximum number of git requests that each worker handles at once; a single address may "
        "use half of them. A request that has to wait longer than ten seconds gets 503.",
        unit="processes",
        reason="Each runs a process that may occupy one core and use several hundred MiB of "
        "memory.",
    )
