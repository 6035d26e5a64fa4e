"""Arrays arrive at PostgreSQL as they were sent."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.storage.postgresql.connecting import register_arrays
from tests.support.postgresql import new_database

_texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
_arrays = st.one_of(
    st.tuples(st.just("text"), st.lists(st.none() | _texts | st.sampled_from(["NULL", "null"]))),
    st.tuples(st.just("bigint"), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just("bytea"), st.lists(st.none() | st.binary())),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with new_database() as url, psycopg.connect(url, autocommit=True) as connection:
        register_arrays(connection.adapters)
        yield connection


@given(array=_arrays)
def test_an_array_arrives_as_it_was_sent(
    connection: psycopg.Connection[tuple[object, ...]], array: tuple[str, list[object]]
) -> None:
    kind, values = array
    select = f"SELECT %s::{kind}[]".encode()
    assert connection.execute(select, (values,)).fetchone() == (values,)


@pytest.mark.parametrize("values", [["a\0b"], ["a", "b\0", None]])
def test_a_text_that_the_database_does_not_know_is_refused(
    connection: psycopg.Connection[tuple[object, ...]], values: list[str | None]
) -> None:
    with pytest.raises(psycopg.DataError):
        connection.execute("SELECT %s::text[]", (values,))
