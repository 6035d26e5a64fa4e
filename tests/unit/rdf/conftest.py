"""rdflib, as the judge of RDF, keeps literals as they are written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.rdf_oracle import literals_as_written


@pytest.fixture(scope="module", autouse=True)
def _literals_as_written() -> Iterator[None]:
    with literals_as_written():
        yield
