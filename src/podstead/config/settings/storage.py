"""The settings for storing data."""

from dataclasses import dataclass
from pathlib import Path

from podstead.config import value_types
from podstead.config.table import Group, optional, setting
from podstead.storage.blobs.s3_location import S3Location

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class StorageSettings:
    """The settings of this part."""

    root: Path = setting(
        Path("data"),
        value_types.FOLDER,
        Group.STORAGE,
        "The data root, the folder that holds everything the server stores. It is created at the "
        "first start.",
        shown_default="./data",
    )
    database: str | None = optional(
        value_types.POSTGRESQL_URL,
        Group.STORAGE,
        "The PostgreSQL database for all records, instead of the one in the data root. Servers "
        "with the same database and the same place for bodies work as one. Requires "
        "podstead[cluster].",
        shown_default="SQLite in the data root",
        secret=True,
    )
    bodies: S3Location | Path | None = optional(
        value_types.BODIES,
        Group.STORAGE,
        "Where bodies above 64 KiB are kept: s3://BUCKET/PREFIX, which requires podstead[cluster], "
        "or another folder. Servers with the same database share it.",
        shown_default="the folder blobs in the data root",
    )
    redirect_large_reads: bool = setting(
        False,
        value_types.SWITCH,
        Group.STORAGE,
        "Whether readers without credentials get public images, sounds, films and archives of 1 "
        "MiB and more from S3, by a redirect to a URL that is valid for five minutes. Requires "
        "bodies in S3 at an address that they can reach.",
    )
    quota_bytes: int = setting(
        0,
        value_types.size_in_bytes(0),
        Group.STORAGE,
        "The maximum size of a pod: its resources, including about 800 bytes of metadata for each, "
        "and its repositories. 0 means no limit. It applies to all pods without a quota of their "
        "own.",
        unit="bytes",
        live=True,
    )
    min_free_bytes: int | None = optional(
        value_types.size_in_bytes(0),
        Group.STORAGE,
        "The amount of disk space to keep free. With less, requests that would store anything get "
        "507, while reading, deleting and revoking still work. 0 turns the check off.",
        unit="bytes",
        shown_default="64 MiB, or 1 % of a file system smaller than 6.25 GiB",
        reason="The database needs room to work, and so does the operator while freeing space.",
    )
    change_log_days: int = setting(
        30,
        value_types.integer(1, 36500),
        Group.STORAGE,
        "How long entries of the change log are kept.",
        unit="days",
        reason="Long enough to investigate what happened last month.",
    )
    rendering_cache_bytes: int = setting(
        64 * _MIB,
        value_types.size_in_bytes(0),
        Group.STORAGE,
        "The maximum amount of memory that each worker uses to cache converted documents and "
        "container listings; 0 turns the cache off.",
        unit="bytes",
        reason="Enough for thousands of documents of typical size.",
    )
