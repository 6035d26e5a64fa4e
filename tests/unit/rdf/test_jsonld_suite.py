"""The W3C test suite for turning JSON-LD into RDF passes, but for a list with reasons."""

from __future__ import annotations

import pyoxigraph
import pytest
from pyoxigraph import CanonicalizationAlgorithm, RdfFormat

from podstead.core.media_types import JSON_LD, N_QUADS
from podstead.rdf.codecs import MalformedRdf, UnknownContext, parse, serialize
from tests.support.json_ld_suite import Case, SuiteContexts, cases, exceptions

MAX_EXCEPTIONS = 29
SUITE_SIZE = 467


def marked() -> list[object]:
    """The cases, of which the listed ones must fail (``xfail_strict``)."""
    reasons = exceptions()
    return [
        pytest.param(
            case,
            id=case.id,
            marks=[pytest.mark.xfail(reason=reasons[case.id])] if case.id in reasons else [],
        )
        for case in cases()
    ]


@pytest.mark.parametrize("case", marked())
def test_the_suite_of_the_specification(case: Case) -> None:
    if case.error is not None:
        refused = UnknownContext if case.error == "loading remote context failed" else MalformedRdf
        with pytest.raises(refused):
            parse(case.content, JSON_LD, base_iri=case.base_iri, contexts=SuiteContexts())
        return
    document = parse(case.content, JSON_LD, base_iri=case.base_iri, contexts=SuiteContexts())
    if case.expected is not None:
        assert canonical(serialize(document, N_QUADS)) == canonical(case.expected), case.name


def test_few_cases_are_excepted() -> None:
    listed = exceptions()
    assert len(listed) <= MAX_EXCEPTIONS
    assert listed.keys() <= {case.id for case in cases()}
    assert len(cases()) == SUITE_SIZE


def canonical(content: bytes) -> set[str]:
    """The statements of N-Quads, labelled as RDF Dataset Canonicalization (RDFC-1.0) does."""
    quads = pyoxigraph.Dataset(pyoxigraph.parse(content, format=RdfFormat.N_QUADS))
    quads.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return {str(quad) for quad in quads}
