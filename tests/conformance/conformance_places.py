"""The resources of each kind that conformance tests only read."""

from __future__ import annotations

OPTIONS = ("--pod-creations-per-hour", "0", "--invalid-credentials-per-minute", "0")
PLACES = {
    "root": "",
    "container": "shown/",
    "rdf": "shown/rdf.ttl",
    "text": "shown/text.txt",
    "root ACL": ".acl",
    "ACL": "shown/.acl",
    "description": "shown/rdf.ttl.meta",
    "storage description": ".well-known/solid",
    "missing": "shown/missing.ttl",
    "missing container": "shown/missing/",
    "missing ACL": "shown/rdf.ttl.acl",
}
"""What ``places`` has, by kind: paths in Alice's pod."""
EXISTING = tuple(kind for kind in PLACES if not kind.startswith("missing"))
