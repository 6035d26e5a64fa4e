"""What a copy takes along of the tables that both engines have, and what it leaves out.

A copy leaves out what is listed in ``LEFT_OUT``: each engine keeps that for itself, or it means
nothing to another server. A test compares this list with the migrations of both engines.
"""

from __future__ import annotations

from typing import Final

from podstead.storage.tables import record_tables

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
