"""What some property tests need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import rdf_oracle as oracle


@pytest.fixture(scope="module")
def literals_as_written() -> Iterator[None]:
    """Let rdflib, as the judge, keep literals as they are written."""
    with oracle.literals_as_written():
        yield
