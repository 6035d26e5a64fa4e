"""The table with the dates of pictures."""

from typing import Final

from podstead.storage.schema import Schema, table

TAKEN: Final = table("previews_taken: path version taken_ms#number storage", storage="storage")

_TABLE: Final = """
    CREATE TABLE previews_taken (
        path TEXT NOT NULL PRIMARY KEY, version TEXT NOT NULL, taken_ms BIGINT, storage TEXT
    );
    CREATE INDEX previews_taken_by_storage ON previews_taken (storage);
"""

SCHEMA: Final = Schema("previews", (TAKEN,), (_TABLE,))
