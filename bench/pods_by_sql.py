"""How are many pods created in a PostgreSQL database in little time? By statements on its tables.

Each pod has ten resources with the same content, apart from its name: references in the documents
are relative. One agent, the owner of the pod `bench`, may read and write in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import psycopg

from podstead.storage.records import ResourceKind

AGENT_POD: Final = "bench"
RESOURCES_OF_A_POD: Final = 10
PUBLIC_NOTE: Final = "public/note.ttl"
PRIVATE_NOTE: Final = "private/note.ttl"
PRIVATE: Final = "private/"
_BATCH_PODS: Final = 20_000
_MODIFIED_MS: Final = 1_790_000_000_000

_RULES: Final = f"""@prefix acl: <http://www.w3.org/ns/auth/acl#>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>.

<#owner> a acl:Authorization;
    acl:agent <#me>, </{AGENT_POD}/#me>;
    acl:accessTo <./>;
    acl:default <./>;
    acl:mode acl:Read, acl:Write, acl:Control.
"""
_PUBLIC_RULES: Final = f"""{_RULES}
<#public> a acl:Authorization;
    acl:agentClass foaf:Agent;
    acl:accessTo <./>;
    acl:default <./>;
    acl:mode acl:Read.
"""
_CARD: Final = "<#me> a <http://xmlns.com/foaf/0.1/Person>.\n"
_NOTE: Final = "".join(f'<#n{number}> <http://schema.org/text> "A note.".\n' for number in range(8))


@dataclass(frozen=True, slots=True)
class _Template:
    """A resource of each pod, by its path below the root."""

    path: str
    kind: ResourceKind
    body: str = ""
    container: str | None = None
    """Below the root, too."""
    members: int = 0


_TEMPLATES: Final = (
    _Template("", ResourceKind.STORAGE, _CARD, members=2),
    _Template(".acl", ResourceKind.ACL, _RULES),
    _Template("public/", ResourceKind.CONTAINER, container="", members=2),
    _Template("public/.acl", ResourceKind.ACL, _PUBLIC_RULES),
    _Template(PUBLIC_NOTE, ResourceKind.DOCUMENT, _NOTE, "public/"),
    _Template("public/other.ttl", ResourceKind.DOCUMENT, _NOTE, "public/"),
    _Template(PRIVATE, ResourceKind.CONTAINER, container="", members=3),
    _Template(PRIVATE_NOTE, ResourceKind.DOCUMENT, _NOTE, PRIVATE),
    _Template("private/other.ttl", ResourceKind.DOCUMENT, _NOTE, PRIVATE),
    _Template("private/third.ttl", ResourceKind.DOCUMENT, _NOTE, PRIVATE),
)
_CREATE_TEMPLATES: Final = """
    CREATE TEMPORARY TABLE templates (number BIGINT, path TEXT, kind BIGINT, body BYTEA,
        container TEXT, members BIGINT, is_container BOOLEAN)
"""
_POD: Final = "'p' || lpad(n::text, 8, '0')"
_PODS: Final = f"(SELECT n, {_POD} AS name, '/' || {_POD} || '/' AS root"
_PODS_OF_BATCH: Final = f"{_PODS} FROM generate_series(%s::bigint, %s::bigint) AS g (n)) AS p"
_VERSION: Final = "lpad(to_hex(p.n * 10 + t.number), 16, '0')"
_STATEMENTS: Final = (
    (
        "INSERT INTO resources (root, path, kind, version, content_type, size_bytes, modified_ms,"
        " created_ms, members_version, members_modified_ms, member_count, container)"
        f" SELECT p.root, p.root || t.path, t.kind, {_VERSION}, 'text/turtle', length(t.body),"
        f" {_MODIFIED_MS}, {_MODIFIED_MS}, CASE WHEN t.is_container THEN {_VERSION} END,"
        f" CASE WHEN t.is_container THEN {_MODIFIED_MS} END, t.members, p.root || t.container"
        f' FROM {_PODS_OF_BATCH}, templates t ORDER BY p.n, t.path COLLATE "C"'
    ),
    (
        "INSERT INTO bodies (root, path, content, sha256)"
        " SELECT p.root, p.root || t.path, t.body, sha256(t.body)"
        f' FROM {_PODS_OF_BATCH}, templates t ORDER BY p.n, t.path COLLATE "C"'
    ),
    f"INSERT INTO storages (root, used_bytes) SELECT p.root, 10000 FROM {_PODS_OF_BATCH}",
    (
        "INSERT INTO pods (folded_name, name, root, owner, created_ms)"
        f" SELECT p.name, p.name, p.root, p.root || '#me', {_MODIFIED_MS} FROM {_PODS_OF_BATCH}"
    ),
)
# Otherwise the server would read all ACLs once, to know who is named in them.
_INDEX_IS_BUILT: Final = (
    "INSERT INTO entries (entry, version, value)"
    " VALUES ('access-rules-building/rules', '1', '{\"after\":\"\",\"is_complete\":true}')"
    " ON CONFLICT (entry) DO UPDATE SET value = excluded.value"
)


def pod_name(number: int) -> str:
    """The name of a pod, counted from 0."""
    return f"p{number:08d}"


def create_pods(database: str, count: int, *, on_progress: Callable[[int], None]) -> None:
    """Create the pods in a migrated database without any, and collect statistics."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(_CREATE_TEMPLATES)
        for number, each in enumerate(_TEMPLATES):
            is_container = each.kind.is_container
            connection.execute(
                "INSERT INTO templates VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (
                    *(number, each.path, each.kind.value, each.body.encode()),
                    *(each.container, each.members, is_container),
                ),
            )
        connection.execute(_INDEX_IS_BUILT)
        for first, last in _batches(count):
            for statement in _STATEMENTS:
                connection.execute(statement.encode(), (first, last))
            on_progress(last + 1)
        connection.execute("VACUUM (ANALYZE)")


def _batches(count: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, _BATCH_PODS):
        yield first, min(first + _BATCH_PODS, count) - 1
