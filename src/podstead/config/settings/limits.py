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
    address_share_percent: int = setting(
        25,
        "address-share-percent",
        value_types.integer(1, 100),
        Group.LIMITS,
        (
            "The share of max-connections that one client address (for IPv6, one /64 network) "
            "may hold. Above it, the server first closes connections without a request, then "
            "idle ones, then the newest. Addresses of a trusted-proxy may hold all "
            "connections."
        ),
        unit="percent",
        reason=(
            "A whole office behind one address has enough; a single attacker cannot take the rest."
        ),
    )
    max_target_bytes: int = setting(
        8 * _KIB,
        "max-target-bytes",
        value_types.integer(256, 60_000),
        Group.LIMITS,
        (
            "The maximum length of a request target (path and query); longer ones get 414. "
            "The limit for the path of a new resource is 5 bytes lower, which leaves room for "
            "`.acl` and `.meta`."
        ),
        unit="bytes",
        reason="RFC 9110 section 4.1 recommends at least 8,000.",
    )
    max_header_bytes: int = setting(
        64 * _KIB,
        "max-header-bytes",
        value_types.integer(8 * _KIB, _MIB),
        Group.LIMITS,
        ("The maximum size of a request line and its headers together; larger ones get 431."),
        unit="bytes",
        reason="Several times the size of the largest signed tokens.",
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
    max_rdf_triples: int = setting(
        100_000,
        "max-rdf-triples",
        value_types.integer(100),
        Group.LIMITS,
        "The maximum number of triples in an RDF document.",
        unit="triples",
        reason="About as many as four MiB of ordinary Turtle contain.",
    )
    max_rdf_depth: int = setting(
        100,
        "max-rdf-depth",
        value_types.integer(8, 256),
        Group.LIMITS,
        "The maximum nesting depth of JSON objects, lists and Turtle brackets.",
        unit="levels",
        reason="Each level uses parser stack; real documents have fewer than twenty.",
    )
    max_patch_bytes: int = setting(
        _MIB,
        "max-patch-bytes",
        value_types.integer(_KIB, 256 * _MIB),
        Group.LIMITS,
        "The maximum size of a patch; larger ones get 413.",
        unit="bytes",
        reason="A patch of this size takes about half a second to parse.",
    )
    max_patch_steps: int = setting(
        1_000_000,
        "max-patch-steps",
        value_types.integer(1000),
        Group.LIMITS,
        (
            "The maximum number of steps that applying one patch may take; a patch that needs "
            "more gets 422."
        ),
        unit="steps",
        reason=(
            "This many steps take one to three seconds; patches of applications take a few hundred."
        ),
    )
    max_json_bytes: int = setting(
        64 * _KIB,
        "max-json-bytes",
        value_types.integer(_KIB, 16 * _MIB),
        Group.LIMITS,
        ("The maximum size of a request body for the server's own API, such as POST /.pods."),
        unit="bytes",
    )
    max_slug_bytes: int = setting(
        255,
        "max-slug-bytes",
        value_types.integer(8, 1024),
        Group.LIMITS,
        ("The maximum length of the name that a Slug header may propose for a new resource."),
        unit="bytes",
        reason="File systems have the same limit, so every pod can be copied to one.",
    )
