"""Where is everything kept, and how?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from podstead.config import kinds
from podstead.config.table import Group, optional, setting

_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class StorageSettings:
    """The settings of this part."""

    root: Path = setting(
        Path("data"),
        "root",
        kinds.FOLDER,
        Group.STORAGE,
        "The folder that holds everything stored; the first start makes it.",
        shown_default="./data",
    )
    quota_bytes: int = setting(
        0,
        "quota-bytes",
        kinds.integer(0),
        Group.STORAGE,
        (
            "How much one pod may hold: its resources, with some 800 bytes for each beside its "
            "body, deleted large bodies until their files are removed, and its git repositories. "
            "0 is without limit."
        ),
        unit="bytes",
    )
    min_free_bytes: int | None = optional(
        "min-free-bytes",
        kinds.integer(0),
        Group.STORAGE,
        (
            "How much of the disk must be free for anything new to be stored; with less, requests "
            "that would store something get 507, while reading, deleting and revoking go on. "
            "0 is without such a bound."
        ),
        unit="bytes",
        shown_default="64 MiB, or 1 % of a file system smaller than 6.25 GiB",
        reason="Room for the database to work, and for the operator to make more.",
    )
    inline_body_bytes: int = setting(
        64 * _KIB,
        "inline-body-bytes",
        kinds.integer(0, _MIB),
        Group.STORAGE,
        "Bodies up to this size are kept in the database, larger ones in files.",
        unit="bytes",
        reason="A small body is written with its metadata, in one step to disk.",
    )
    change_log_days: int = setting(
        30,
        "change-log-days",
        kinds.integer(1, 36500),
        Group.STORAGE,
        "How long the log of changes is kept.",
        unit="days",
        reason="Long enough to look into what happened last month.",
    )
    rendering_cache_bytes: int = setting(
        64 * _MIB,
        "rendering-cache-bytes",
        kinds.integer(0),
        Group.STORAGE,
        (
            "How much memory each worker may use to keep converted documents and listings; "
            "0 keeps none."
        ),
        unit="bytes",
        reason="Thousands of documents of common size.",
    )
