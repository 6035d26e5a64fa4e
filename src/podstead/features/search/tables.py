"""The tables of the index on PostgreSQL. On the other engine they are there and stay empty."""

from typing import Final

from podstead.storage.schema import Schema, table

DOCUMENTS: Final = table(
    "search_documents: path rule version media_type size_bytes#number modified_ms#number author"
)
CONTENTS: Final = table("search_contents: path names terms text language")
RULES: Final = table("search_rules: rule")
LANGUAGES: Final = table("search_languages: language")
POSITION: Final = table("search_position: one#number sequence#number version cursor")

VECTOR: Final = "array_to_tsvector(string_to_array(btrim(c.names || ' ' || c.terms), ' '))"
"""The lexemes of a document, which its index has as well."""

_TABLES: Final = """
    CREATE TABLE search_documents (
        path TEXT NOT NULL PRIMARY KEY, rule TEXT NOT NULL, version TEXT NOT NULL,
        media_type TEXT NOT NULL, size_bytes BIGINT NOT NULL, modified_ms BIGINT NOT NULL,
        author TEXT
    );
    CREATE TABLE search_contents (
        path TEXT NOT NULL PRIMARY KEY, names TEXT NOT NULL, terms TEXT NOT NULL,
        text TEXT NOT NULL, language TEXT
    );
    CREATE TABLE search_rules (rule TEXT NOT NULL PRIMARY KEY);
    CREATE TABLE search_languages (language TEXT NOT NULL PRIMARY KEY);
    CREATE TABLE search_position (
        one BIGINT NOT NULL PRIMARY KEY, sequence BIGINT NOT NULL, version TEXT NOT NULL,
        cursor TEXT
    );
"""
_INDEX: Final = f"""
    CREATE INDEX search_contents_by_term ON search_contents
        USING gin (({VECTOR.replace("c.", "")}));
"""

SCHEMA: Final = Schema(
    "search",
    (DOCUMENTS, CONTENTS, RULES, LANGUAGES, POSITION),
    (_TABLES,),
    postgresql={1: _TABLES.replace("TEXT", 'TEXT COLLATE "C"') + _INDEX},
)
