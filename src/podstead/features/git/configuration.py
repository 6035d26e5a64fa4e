"""The configuration of git processes, independent of the machine's configuration.

Pure. The settings are passed in environment variables (git-config, GIT_CONFIG_COUNT), which take
precedence over a repository's own. No configuration file of the system or of an account is read.
"""

from collections.abc import Mapping
from typing import Final

IGNORED_DEFECTS: Final = ("badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode")
"""Defects of objects that are common in public repositories, and harmless."""

SETTINGS: Final[Mapping[str, str]] = {
    # Only git itself runs, whatever a repository contains; a push runs one hook of ours.
    "core.hooksPath": "/dev/null",
    # What is acknowledged is on disk.
    "core.fsync": "all",
    "core.fsyncMethod": "fsync",
    # Only the smart protocol, and pushes only where a request is authorized to push.
    "http.getanyfile": "false",
    "http.uploadpack": "true",
    "http.receivepack": "false",
    # Partial clones, but only objects that are reachable from a branch or tag.
    "uploadpack.allowFilter": "true",
    # Objects are checked before they are stored.
    "transfer.fsckObjects": "true",
    **{f"receive.fsck.{each}": "ignore" for each in IGNORED_DEFECTS},
    # Each push is stored as one pack; a separate process merges packs after the push.
    "transfer.unpackLimit": "1",
    "receive.autogc": "false",
    "gc.autoDetach": "false",
    # A push may delete the default branch, and thereby choose another.
    "receive.denyDeleteCurrent": "ignore",
    # The resources of one process: one core, and a few hundred MiB at most.
    "pack.threads": "1",
    "pack.windowMemory": "64m",
    "pack.deltaCacheSize": "32m",
    "core.bigFileThreshold": "16m",
}

_MAX_ALLOCATION: Final = "512m"
"""The maximum size of one memory allocation by git, which bounds objects that claim to be huge."""


def environment(
    search_path: str, *, repository: str, changes: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The complete environment of a git process for one repository.

    ``search_path`` is its ``PATH``; ``changes`` are additional settings.
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
        "GIT_ALLOC_LIMIT": _MAX_ALLOCATION,
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for index, (key, value) in enumerate(settings.items()):
        variables[f"GIT_CONFIG_KEY_{index}"] = key
        variables[f"GIT_CONFIG_VALUE_{index}"] = value
    return variables
