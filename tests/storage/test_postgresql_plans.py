"""Does every statement of the PostgreSQL engine that requests and sweeps run find its rows by an
index, and could each table be partitioned as docs/operate/scale.md says?

The statements are taken from the source, so that a new one is looked at as well.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import psycopg
import pytest

from bench.pods_by_sql import create_pods
from podstead.features import features
from podstead.storage import base_store
from podstead.storage import maintenance as shared_maintenance
from podstead.storage import removal as shared_removal
from podstead.storage.postgresql import (
    apply,
    ephemeral,
    expectations,
    maintenance,
    migrate,
    prefetch,
    reads,
    writer,
)
from podstead.storage.tables import METADATA, TOKENS
from tests.support.postgresql import new_database

_MODULES: Final = (
    apply,
    base_store,
    ephemeral,
    expectations,
    maintenance,
    prefetch,
    reads,
    shared_maintenance,
    shared_removal,
    writer,
)
_VERB: Final = re.compile(r"\s*\(?(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
_PLACEHOLDER: Final = re.compile(r"%s|%\(\w+\)s")

PODS: Final = 200
ROWS: Final = 2_000
OTHER_TABLES: Final = {
    "changes": "n, '/p/' || n, 1, NULL, n::text, n",
    "charges": "n::text, '/p' || n || '/', 1",
    "deleted_acls": "n::text, '/p/' || n, n::text, 'text/turtle', NULL, n, '/p/'",
    "entries": "'kind/' || n, '1', 'value', '/p' || n || '/', n",
    "garbage": "n::text, n, NULL, 1",
    "rate_buckets": "n::text, n",
    "staged": "n::text, n",
    "tokens": "n::text, 'p' || n, 'https://ann.example/', n, NULL, NULL",
    "used_once": "int8send(n), n",
}
"""What to fill each table with that has no rows of pods, as columns in which ``n`` is a number."""

LEADING_COLUMNS: Final = (
    "SELECT i.indexrelid::regclass::text, a.attname FROM pg_index i JOIN pg_attribute a"
    " ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
)
SETTINGS: Final = (
    "plan_cache_mode = force_generic_plan",
    "enable_seqscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
)
"""A whole table is read only if nothing else is possible, as if the tables were large."""

WHOLE_TABLES: Final = {
    "SELECT count(*), CAST(coalesce(sum": "sums over all pods, for metrics and the console",
    f"SELECT {TOKENS.names} FROM tokens ORDER BY": "lists all tokens, for commands",
    f"(SELECT {METADATA} FROM resources WHERE path >= ": "the whole tree, for a command",
    "DELETE FROM rate_buckets": "a sweep; an index would cost each request that is counted",
}
"""Statements that read a whole table, by how they begin, and why."""


@pytest.fixture(scope="module")
def connection() -> Iterator[psycopg.Connection]:
    """A database with rows in every table."""
    with new_database() as database:
        migrate(database)
        create_pods(database, PODS, on_progress=lambda _: None)
        with psycopg.connect(database, autocommit=True) as connection:
            for table, columns in OTHER_TABLES.items():
                rows = f"SELECT {columns} FROM generate_series(1, {ROWS}) AS g (n)"
                connection.execute(f"INSERT INTO {table} {rows}".encode())
            connection.execute("ANALYZE")
            for setting in SETTINGS:
                connection.execute(f"SET {setting}".encode())
            yield connection


def test_every_statement_finds_its_rows_by_an_index(connection: psycopg.Connection) -> None:
    leading: dict[str, str] = dict(connection.execute(LEADING_COLUMNS).fetchall())
    statements = sorted({each for module in _MODULES for each in _statements_of(module)})
    assert len(statements) > 60
    bad = {}
    for statement in statements:
        if any(statement.startswith(known) for known in WHOLE_TABLES):
            continue
        plan = _plan(connection, statement)
        scans = list(_scans_of_all_rows(plan, leading, is_limited=False))
        if scans:
            bad[statement] = scans
    assert not bad, "\n".join(f"{scans}: {statement}" for statement, scans in bad.items())


def _statements_of(module: ModuleType) -> Iterator[str]:
    """The texts in a module that are statements, with the words of the module filled in, and those
    that it makes of the tables."""
    texts = [text for text in vars(module).values() if isinstance(text, str)]
    for node in _texts_in(ast.parse(inspect.getsource(module))):
        try:
            text = eval(compile(ast.Expression(node), "", "eval"), dict(vars(module)))
        except NameError:  # words of a function
            continue
        if isinstance(text, str):
            texts.append(text)
    yield from filter(_VERB.match, texts)


def _texts_in(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr | ast.Constant):
        yield node  # and not its parts
        return
    for child in ast.iter_child_nodes(node):
        yield from _texts_in(child)


def _plan(connection: psycopg.Connection, statement: str) -> Mapping[str, Any]:
    numbers = iter(range(1, 1000))
    named: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        if match[0] == "%s":
            return f"${next(numbers)}"
        return named.setdefault(match[0], f"${len(named) + 1}")

    text = _PLACEHOLDER.sub(numbered, statement)
    count = len(set(re.findall(r"\$\d+", text)))
    types = ["text" if name == "%(bucket)s" else "bigint" for name in named]
    declared = f"({', '.join(types)})" if types else ""
    connection.execute(f"PREPARE looked_at {declared} AS {text}".encode())
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    explained = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE looked_at{values}".encode())
    row = explained.fetchone()
    connection.execute("DEALLOCATE looked_at")
    assert row is not None
    plan: Mapping[str, Any] = row[0][0]["Plan"]
    return plan


def _scans_of_all_rows(
    plan: Mapping[str, Any], leading: Mapping[str, str], *, is_limited: bool
) -> Iterator[str]:
    """Scans that read more rows, the more there are: sequential ones, and those of an index without
    a condition on its first column that are not ended by a limit."""
    kind, table = plan["Node Type"], plan.get("Relation Name") or plan.get("Index Name")
    if kind == "Seq Scan" and table not in ("counters", "registry_changes"):
        yield f"{kind} on {table}"
    if kind.startswith(("Index", "Bitmap Index")):
        column, condition = leading[plan["Index Name"]], plan.get("Index Cond", "")
        if not re.search(rf"\b{column}\b", condition) and (condition or not is_limited):
            yield f"{kind} on {table}, of which {column} is not given"
    is_limited = is_limited or kind == "Limit"
    for part in plan.get("Plans", ()):
        yield from _scans_of_all_rows(part, leading, is_limited=is_limited)


BY_ROOT: Final = ("resources", "bodies", "storages", "charges", "deleted_acls", "former_states")
"""The tables of what is in pods, which are partitioned by the pod."""

BY_OWN_KEY: Final = {
    "pods": "folded_name",
    "tokens": "token_id",
    "entries": "entry",
    "staged": "blob",
    "garbage": "blob",
    "rate_buckets": "bucket",
    "used_once": "key",
    "changes": "sequence",
}
"""What is looked up before the pod is known, or is in no pod, with the first column of the key."""

WHOLE: Final = ("counters", "facts", "private_keys", "registry_changes", "schema_version")
"""A few rows each, which all nodes share."""


def test_every_table_can_be_partitioned_by_the_first_column_of_its_key(
    connection: psycopg.Connection,
) -> None:
    found = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
    ).fetchall()
    schemas = [each.schema for each in features() if each.schema is not None]
    of_features = {each.name: each.key[0] for schema in schemas for each in schema.tables}
    columns = {**dict.fromkeys(BY_ROOT, "root"), **BY_OWN_KEY, **of_features}
    whole = (*WHOLE, *(["feature_schemas"] if schemas else ()))
    assert [name for (name,) in found] == sorted((*columns, *whole))
    for table, column in columns.items():
        # Refused unless every unique index contains the column.
        parted = f"CREATE TABLE parted (LIKE {table} INCLUDING ALL) PARTITION BY HASH ({column})"
        connection.execute(parted.encode())
        for number in range(2):
            connection.execute(
                f"CREATE TABLE part{number} PARTITION OF parted"
                f" FOR VALUES WITH (MODULUS 2, REMAINDER {number})".encode()
            )
        connection.execute(f"INSERT INTO parted SELECT * FROM {table} LIMIT 10".encode())
        connection.execute("DROP TABLE parted")


def test_the_rows_of_a_pod_are_in_one_partition(connection: psycopg.Connection) -> None:
    """The statements about what is in pods then touch one partition of each table."""
    leading: dict[str, str] = dict(connection.execute(LEADING_COLUMNS).fetchall())
    for table in BY_ROOT:
        assert leading[f"{table}_pkey"] == "root"
