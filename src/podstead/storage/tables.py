"""The tables that both engines have: their columns and keys, what a copy takes along of them, and
the values that their rows become.

A copy leaves out the tables in ``LEFT_OUT``: each engine keeps them for itself, or they mean
nothing to another server. A test compares this list with the migrations of both engines.
"""

from collections.abc import Sequence
from typing import Any, Final

from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage import records
from podstead.storage.schema import Row, SqlTable, feature_tables, table

RESOURCES: Final = table(
    "resources: path kind#number version content_type size_bytes#number modified_ms#number"
    " created_ms#number blob members_version members_modified_ms#number member_count#number"
    " container",
    has_root=True,
)
BODIES: Final = table("bodies: path content#bytes sha256#bytes", has_root=True)
STORAGES: Final = table("storages: root used_bytes#number")
CHANGES: Final = table("changes: sequence#number path activity#number agent version at_ms#number")
DELETED_ACLS: Final = table(
    "deleted_acls: write_version path version content_type content#bytes at_ms#number",
    has_root=True,
    key=2,
)
FORMER_STATES: Final = table(
    "former_states: root path modified_ms#number version ended_ms#number ended_version"
    " deleted#number agent client acl acl_version kind#number content_type size_bytes#number"
    " created_ms#number blob content#bytes sha256#bytes",
    key=4,
)
PODS: Final = table("pods: folded_name name root owner created_ms#number quota_bytes#number")
TOKENS: Final = table(
    "tokens: token_id pod web_id issued_s#number expires_s#number revoked_s#number"
)
ENTRIES: Final = table("entries: entry version value#bytes owner expires_ms#number")
FACTS: Final = table("facts: name value")

RECORD_TABLES: Final = (
    RESOURCES,
    BODIES,
    table("staged: blob staged_ms#number"),
    table("garbage: blob dropped_ms#number root size_bytes#number"),
    STORAGES,
    table("charges: charge root size_bytes#number"),
    CHANGES,
    table("counters: name value#number"),
    DELETED_ACLS,
    FORMER_STATES,
    PODS,
    TOKENS,
    ENTRIES,
    FACTS,
)
"""The server's own, in the order in which they are copied."""


def record_tables() -> tuple[SqlTable, ...]:
    """All tables that are copied, with those of features."""
    return (*RECORD_TABLES, *feature_tables())


# --- Records made of rows ---------------------------------------------------------------------

_KINDS: Final = {kind.value: kind for kind in records.ResourceKind}
_ACTIVITIES: Final = {activity.value: activity for activity in records.ChangeType}

METADATA: Final = ", ".join(records.Metadata.__struct_fields__)
DELETED_ACL: Final = DELETED_ACLS.names.partition(", ")[2]
POD: Final = PODS.names.partition(", ")[2]


def metadata_of(row: Sequence[Any]) -> records.Metadata:
    """From the columns :data:`METADATA`."""
    path, kind, *rest = row
    return records.Metadata(path, _KINDS[kind], *rest)


def change_of(row: Row) -> records.LoggedChange:
    """From the columns of :data:`CHANGES`."""
    sequence, path, activity, agent, version, at_ms = row
    return records.LoggedChange(
        sequence, records.Change(path, _ACTIVITIES[activity], agent), version, at_ms
    )


def deleted_acl_of(row: Row) -> records.DeletedAcl:
    """From the columns :data:`DELETED_ACL`."""
    path, version, content_type, content, at_ms = row
    known = content or b""
    metadata = records.Metadata(
        path, records.ResourceKind.ACL, version, content_type, len(known), at_ms, at_ms
    )
    return records.DeletedAcl(metadata, known)


def pod_of(row: Row) -> records.PodRecord:
    """From the columns :data:`POD`."""
    return records.PodRecord(*row)


def entry_of(row: Row) -> records.Entry:
    """From the columns of :data:`ENTRIES`."""
    return records.Entry(*row)


def token_of(row: Row) -> records.TokenRecord:
    """From the columns of :data:`TOKENS`."""
    return records.TokenRecord(*row)


def end_of(container: ResourcePath | str) -> str:
    """What follows all paths that begin with that of the container: "0" follows "/"."""
    return f"{container[:-1]}0"


def root_of(path: ResourcePath) -> str:
    """The first column of a key that has one: the storage that contains the path, empty for
    none."""
    return storage_root(path) or ""


LEFT_OUT: Final = frozenset(
    {
        *("schema_version", "feature_schemas", "rate_buckets", "used_once", "private_keys"),
        "registry_changes",
    }
)
"""The tables that are not copied; keys are, but not as rows, since not every engine has them."""

CHANGES_COUNTER: Final = "changes"
"""The row of ``counters`` that is copied; in others, each engine counts its own changes."""

COPYING_FACT: Final = "copying"
"""The fact that says that a copy is being made into this store, and how far it is. It is removed
when the copy is complete and verified."""

BODIES_FACT: Final = "bodies"
"""The fact that says where the large bodies are, if they are not in the data root."""

_MARK: Final = "-mark"
BODIES_MARK: Final = f"bodies{_MARK}"
"""The fact with the mark of the folder of large bodies, which all nodes with a database share."""


def folder_mark(name: str) -> str:
    """The fact with the mark of a folder that a feature has in the data root, likewise."""
    return f"{name}{_MARK}"


IS_FACT_OF_PLACE: Final = (
    f"(name IN {(COPYING_FACT, BODIES_FACT)} OR replace(name, '{_MARK}', '') <> name)"
)
"""The condition in SQL for facts that are about one store, and not about what is in it, so that
they are not copied."""

OWN_ROWS: Final = {
    "counters": f"name = '{CHANGES_COUNTER}'",
    "facts": f"NOT {IS_FACT_OF_PLACE}",
}
"""What is copied of tables that are not copied as a whole, as a condition in SQL."""


def filled_tables() -> list[str]:
    """The tables that have no rows in an empty store."""
    return [table.name for table in record_tables() if table.name not in OWN_ROWS]


MOVED_WITHOUT: Final = ("lease/", "upload/")
"""How those entries begin that a move leaves behind: leases belong to running servers, and what has
arrived of an unfinished upload is kept in another way by each store of bodies."""
