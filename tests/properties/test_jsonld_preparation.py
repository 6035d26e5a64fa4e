"""A document that is passed on to the parser as it is would not have been changed or refused.

Most JSON-LD documents skip the preparation of their contexts (``prepare_json_ld``). Whatever is
sent, the result must be what the preparation (``prepared``) gives: the same bytes for the parser,
or the same refusal.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podstead.core.errors import BadRequest
from podstead.rdf.jsonld_contexts import Context, decode_json, encode_json
from podstead.rdf.jsonld_reader import prepare_json_ld, prepared
from podstead.rdf.limits import RdfLimits
from tests.support.rdf_oracle import BASE

URL = "https://contexts.example/known"
CONTEXTS = {URL: Context(URL, {"p": "http://v.example/p"})}

# A depth and an amount of work that the documents below can exceed.
LIMITS = st.builds(
    RdfLimits, max_depth=st.integers(3, 12), max_context_work=st.sampled_from([64, 640, 64_000])
)

_NAMES = st.sampled_from(["p", "q", "r", "T", "@id", "@type", "@list", "@none", "v:p"])
_IRIS = st.sampled_from(["http://v.example/p", "v:q", "p", "q", "r", "@id", "@set", "@none"])
_DEFINITIONS = st.one_of(
    _IRIS,
    st.none(),
    st.fixed_dictionaries(
        {"@id": _IRIS},
        optional={
            "@type": st.sampled_from(["@id", "@json", "@vocab", "v:date"]),
            "@container": st.sampled_from(
                ["@list", "@set", "@type", "@graph", ["@graph", "@id"], ["@type", "@set"], []]
            ),
            "@context": st.sampled_from([None, {}, URL, {"q": "v:q"}, ["unknown"], 5]),
        },
    ),
)
_KEYWORDS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {},
    optional={
        "@import": st.sampled_from([URL, None, 5, {}]),
        "@base": st.sampled_from(["x/", "http://other.example/"]),
        "@vocab": st.just("http://v.example/"),
        "@propagate": st.booleans(),
        "v": st.just("http://v.example/"),
    },
)
_PARTS = st.builds(
    lambda keywords, terms: terms | keywords,
    _KEYWORDS,
    st.dictionaries(st.sampled_from(["p", "q", "r", "T", "v", "@type"]), _DEFINITIONS, max_size=4),
)
_CONTEXTS = st.one_of(
    _PARTS, st.sampled_from([URL, "unknown", None, 5]), st.lists(_PARTS, max_size=2)
)
_TEXTS = st.sampled_from(["p", "T", "v:p", '"@context"', "@context", "{{[[", "\\u0040context"])
_NODES = st.recursive(
    st.one_of(_TEXTS, st.integers(), st.none(), st.booleans()),
    lambda values: st.one_of(
        st.lists(values, max_size=3),
        st.dictionaries(_NAMES, values, max_size=3),
        st.builds(
            lambda node, context: {**node, "@context": context},
            st.dictionaries(_NAMES, values, max_size=2),
            _CONTEXTS,
        ),
        st.builds(lambda value: {"@value": value}, values),
    ),
    max_leaves=8,
)
_WITH_CONTEXT = st.builds(
    lambda context, node: {"@context": context, **node},
    _CONTEXTS,
    st.dictionaries(_NAMES, _NODES, max_size=3),
)
_DOCUMENTS = st.one_of(_WITH_CONTEXT, _WITH_CONTEXT, _NODES)

_WHOLE = RdfLimits()
_PLAIN = {"@context": {"v": "http://v.example/", "p": {"@id": "v:p", "@type": "@json"}}}
_CHAIN = {str(n): {"@id": f"{n + 1}:x"} for n in range(20)}


@given(document=_DOCUMENTS, limits=LIMITS)
@example(document={**_PLAIN, "p": {"@context": {"p": 5}}}, limits=_WHOLE)
@example(document={**_PLAIN, "p": {"@context": URL}}, limits=_WHOLE)
@example(document={**_PLAIN, "p": "@context"}, limits=_WHOLE)
@example(document={"@context": {"@import": None, "p": "v:p"}}, limits=_WHOLE)
@example(document={"@context": {"@import": 5}}, limits=_WHOLE)
@example(document={"@context": {"p": {"@id": "v:p", "@context": "unknown"}}}, limits=_WHOLE)
@example(document={"@context": {"p": {"@id": "v:p", "@container": "@type"}}}, limits=_WHOLE)
@example(
    document={
        "@context": {"p": {"@id": "v:p", "@container": "@graph"}},
        "p": {"@list": []},
    },
    limits=_WHOLE,
)
@example(
    document={"@context": {"p": {"@id": "v:p", "@context": {}}}, "p": ["a"] * 9, "q": ["p"] * 9},
    limits=RdfLimits(max_context_work=60),
)
@example(document={"@context": _CHAIN}, limits=RdfLimits(max_depth=12))
@example(document=[{"@context": _CHAIN}], limits=RdfLimits(max_depth=12))
def test_what_skips_the_preparation_comes_to_the_same(document: object, limits: RdfLimits) -> None:
    for content in (json.dumps(document), json.dumps(document).replace("@", "\\u0040")):
        assert _outcome(content, limits) == _prepared_outcome(content, limits)


def _outcome(content: str, limits: RdfLimits) -> bytes | tuple[type[BadRequest], str]:
    try:
        return prepare_json_ld(content.encode(), base_iri=BASE, contexts=CONTEXTS, limits=limits)
    except BadRequest as error:
        return type(error), str(error)


def _prepared_outcome(content: str, limits: RdfLimits) -> bytes | tuple[type[BadRequest], str]:
    try:
        document = decode_json(content.encode(), max_depth=limits.max_depth)
        if not isinstance(document, dict | list):
            return _outcome(content, limits)
        names = encode_json(document).count(b'"') // 2
        return encode_json(
            prepared(document, base_iri=BASE, contexts=CONTEXTS, limits=limits, names=names)
        )
    except BadRequest as error:
        return type(error), str(error)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_documents_are_refused_from_one_level_beyond_the_limit(opening: str) -> None:
    """Whether their brackets are few or many, and texts with brackets add no levels."""
    closing = opening.replace('"a":', "").translate(str.maketrans("[{", "]}"))[::-1]
    brackets = opening.count("[") + opening.count("{")
    for times in (2, 4, 6):
        levels = times * brackets
        content = (opening * times + '"[[[[{{{{"' + closing * times).encode()
        assert decode_json(content, max_depth=levels)
        with pytest.raises(BadRequest, match="nested objects and arrays"):
            decode_json(content, max_depth=levels - 1)
