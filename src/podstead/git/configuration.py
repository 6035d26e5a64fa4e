"""How is git told to behave? By settings of ours alone, whatever this machine has configured.

Pure. The settings travel in variables of the environment (git-config, GIT_CONFIG_COUNT), where they
take precedence over a repository's own, and no file of the system or of an account is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SETTINGS: Final[Mapping[str, str]] = {
    # Nothing but git itself runs, whatever lies in a repository; a push runs one hook of ours.
    "core.hooksPath": "/dev/null",
    # What is acknowledged is on the disk.
    "core.fsync": "all",
    "core.fsyncMethod": "fsync",
    # Only the smart protocol, and pushing only where a request is let through for it.
    "http.getanyfile": "false",
    "http.uploadpack": "true",
    "http.receivepack": "false",
    # Partial clones; nothing that no branch or tag leads to.
    "uploadpack.allowFilter": "true",
    # Objects are checked before they are kept. What is let pass is in the history of many a public
    # repository, and harmless.
    "transfer.fsckObjects": "true",
    "receive.fsck.badTimezone": "ignore",
    "receive.fsck.missingSpaceBeforeDate": "ignore",
    "receive.fsck.zeroPaddedFilemode": "ignore",
    # One push is one pack; many packs are joined by a process of their own, after the push.
    "transfer.unpackLimit": "1",
    "receive.autogc": "false",
    "gc.autoDetach": "false",
    # Whoever may push may choose the branch that clones begin with, by deleting the present one.
    "receive.denyDeleteCurrent": "ignore",
    # What one process takes: one core, and some hundred MiB at most.
    "pack.threads": "1",
    "pack.windowMemory": "64m",
    "pack.deltaCacheSize": "32m",
    "core.bigFileThreshold": "16m",
}

_MOST_AT_ONCE: Final = "512m"
"""How much memory git may ask for in one piece, which an object that is said to be huge would take.
As large as anything that git keeps whole by itself (core.bigFileThreshold)."""


def environment(
    search_path: str, *, repository: str, changes: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All that a process of git gets to see, for one repository; ``changes`` are settings.

    ``search_path`` is its ``PATH``.
    """
    settings = {**SETTINGS, "safe.directory": repository, **(changes or {})}
    variables = {
        "PATH": search_path,
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOC_LIMIT": _MOST_AT_ONCE,
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for index, (key, value) in enumerate(settings.items()):
        variables[f"GIT_CONFIG_KEY_{index}"] = key
        variables[f"GIT_CONFIG_VALUE_{index}"] = value
    return variables
