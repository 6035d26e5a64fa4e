"""How much is too much?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import kinds
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
        kinds.integer(1, 1_000_000),
        Group.LIMITS,
        (
            "How many connections each worker serves at once, those of clients that listen for "
            "notifications among them; more wait."
        ),
        unit="connections",
        reason="Each takes a file descriptor and some memory, a socket some 160 KiB.",
    )
    address_share_percent: int = setting(
        25,
        "address-share-percent",
        kinds.integer(1, 100),
        Group.LIMITS,
        (
            "How much of max-connections one client address may hold, IPv6 by its /64. Beyond it, "
            "the server closes connections without a request first, then idle ones, then the "
            "newest. Addresses of trusted-proxy may hold all of them."
        ),
        unit="percent",
        reason="A whole office behind one address fits in; a single attacker cannot take the rest.",
    )
    max_target_bytes: int = setting(
        8 * _KIB,
        "max-target-bytes",
        kinds.integer(256, 60_000),
        Group.LIMITS,
        (
            "The longest request target: path and query; longer ones get 414. The path of a new "
            "resource is 5 bytes shorter, which leaves room for `.acl` and `.meta`."
        ),
        unit="bytes",
        reason="RFC 9110 section 4.1 asks for at least 8,000.",
    )
    max_header_bytes: int = setting(
        64 * _KIB,
        "max-header-bytes",
        kinds.integer(8 * _KIB, _MIB),
        Group.LIMITS,
        "The size of a request's line and headers together; larger ones get 431.",
        unit="bytes",
        reason="Room for the largest signed tokens several times over.",
    )
    max_body_bytes: int = setting(
        _GIB,
        "max-body-bytes",
        kinds.integer(0),
        Group.LIMITS,
        "The largest body that is stored; larger ones get 413.",
        unit="bytes",
        reason="Bodies go to disk in pieces, so only disk space is at stake.",
    )
    max_rdf_bytes: int = setting(
        4 * _MIB,
        "max-rdf-bytes",
        kinds.integer(_KIB, 256 * _MIB),
        Group.LIMITS,
        "The largest RDF document that is parsed; larger ones get 413.",
        unit="bytes",
        reason="RDF is parsed in memory, at about a third of a second for this size.",
    )
    max_rdf_triples: int = setting(
        100_000,
        "max-rdf-triples",
        kinds.integer(100),
        Group.LIMITS,
        "The most triples that an RDF document may have.",
        unit="triples",
        reason="What four MiB of ordinary Turtle hold.",
    )
    max_rdf_depth: int = setting(
        100,
        "max-rdf-depth",
        kinds.integer(8, 256),
        Group.LIMITS,
        "How deep JSON objects, lists and Turtle brackets may be nested.",
        unit="levels",
        reason="Parsers use stack for each level; real documents stay below twenty.",
    )
    max_patch_bytes: int = setting(
        _MIB,
        "max-patch-bytes",
        kinds.integer(_KIB, 256 * _MIB),
        Group.LIMITS,
        "The largest patch that is read; larger ones get 413.",
        unit="bytes",
        reason="A patch is read word by word, at about half a second for this size.",
    )
    max_patch_steps: int = setting(
        1_000_000,
        "max-patch-steps",
        kinds.integer(1000),
        Group.LIMITS,
        "How much work one patch may be; one that takes more gets 422.",
        unit="steps",
        reason="One to three seconds; patches of applications take some hundreds of steps.",
    )
    max_json_bytes: int = setting(
        64 * _KIB,
        "max-json-bytes",
        kinds.integer(_KIB, 16 * _MIB),
        Group.LIMITS,
        "The largest body that the server's own API takes, such as POST /.pods.",
        unit="bytes",
    )
    max_slug_bytes: int = setting(
        255,
        "max-slug-bytes",
        kinds.integer(8, 1024),
        Group.LIMITS,
        "The longest name that a Slug header may propose for a new resource.",
        unit="bytes",
        reason="What file systems allow, so that every pod can be copied to one.",
    )
