"""How large may requests be, and how many connections does the server accept?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import value_types
from podstead.config.table import Group, setting

_KIB = 1024
_MIB = 1024 * 1024
_GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class LimitSettings:
    """The settings of this part."""

    max_connections: int = setting(
        4096,
        "max-connections",
        value_types.integer(1, 1_000_000),
        Group.LIMITS,
        (
            "The maximum number of connections that each worker serves at once, including "
            "those of clients that wait for notifications. Further connections wait."
        ),
        unit="connections",
        reason="Each uses a file descriptor and some memory; a WebSocket uses about 160 KiB.",
    )
    max_body_bytes: int = setting(
        _GIB,
        "max-body-bytes",
        value_types.integer(0),
        Group.LIMITS,
        "The maximum size of a body to store; larger ones get 413.",
        unit="bytes",
        reason="Bodies are written to disk in chunks, so only disk space is at stake.",
    )
    max_rdf_bytes: int = setting(
        4 * _MIB,
        "max-rdf-bytes",
        value_types.integer(_KIB, 256 * _MIB),
        Group.LIMITS,
        "The maximum size of an RDF document that the server parses; larger ones get 413.",
        unit="bytes",
        reason=(
            "RDF is parsed in memory; a document of this size takes about a third of a second."
        ),
    )
