"""No JSON-LD document ends the process that reads it.

The RDF library's parser panics on some documents that are valid JSON, and takes the server with it;
``jsonld_reader`` keeps those from it that are known. Here documents that use every keyword,
container and alias of JSON-LD 1.1 in right and wrong places are read by a process of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.rdf_process import RdfProcess

EX = "http://e.example/"
TERMS = ("p", "q", "r", "T", "e:x", f"{EX}y", "g", "")
ALIASES = {
    "id": "@id",
    "type": "@type",
    "value": "@value",
    "language": "@language",
    "items": "@list",
    "members": "@set",
    "graph": "@graph",
    "back": "@reverse",
    "with": "@included",
    "nest": "@nest",
    "none": "@none",
    "index": "@index",
    "json": "@json",
}
CONTAINERS = ("@list", "@set", "@language", "@index", "@graph", "@id", "@type", "@none", "items")
TYPES = ("@id", "@vocab", "@json", "@none", f"{EX}d", "T", "json", "_:d")
TEXTS = ("", "x", "en", "ar", "rtl", "ltr", "#a", "_:b", "e:z", f"{EX}z", "@none", "@id", "T", "p")

texts = st.sampled_from(TEXTS)
names = st.sampled_from(TERMS)
scalars = st.one_of(
    texts, st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([1.5, 1e30, -0.0])
)


def optional(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    """Objects with some of the fields; names are keywords without their ``@``."""
    return st.fixed_dictionaries({}, optional={f"@{name}": each for name, each in fields.items()})


def definitions(contexts: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    containers = st.sampled_from(CONTAINERS)
    return st.one_of(
        st.sampled_from([f"{EX}p", "e:p", "p", "_:p", None, *ALIASES.values()]),
        optional(
            id=st.sampled_from([f"{EX}p", "e:p", "q", "_:p", "@type", None]),
            type=st.sampled_from(TYPES),
            container=containers | st.lists(containers, max_size=3, unique=True),
        ),
        optional(
            id=st.just(f"{EX}p"),
            type=st.sampled_from(TYPES),
            container=containers | st.lists(containers, max_size=3, unique=True),
            language=texts | st.none(),
            direction=st.sampled_from(["ltr", "rtl", None]),
            reverse=st.sampled_from([f"{EX}p", "p", "@type"]),
            nest=st.sampled_from(["@nest", "nest", "p"]),
            index=st.sampled_from(["@index", "q", f"{EX}i", "@type"]),
            prefix=st.booleans(),
            protected=st.booleans(),
            context=contexts,
        ),
    )


def of_terms(contexts: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    terms = st.dictionaries(names, definitions(contexts), max_size=4)
    aliases = st.lists(st.sampled_from(sorted(ALIASES)), max_size=5, unique=True).map(
        lambda chosen: {name: ALIASES[name] for name in chosen}
    )
    settings_ = optional(
        vocab=st.sampled_from([EX, "", "e:", "_:", None]),
        base=st.sampled_from([EX, "", "../x/", None]),
        language=st.sampled_from(["en", None]),
        direction=st.sampled_from(["ltr", None]),
        version=st.just(1.1),
        propagate=st.booleans(),
        protected=st.booleans(),
    )
    return st.builds(
        lambda first, second, third: {"e": EX, **first, **second, **third},
        terms,
        aliases,
        settings_,
    )


contexts: st.SearchStrategy[object] = st.recursive(
    of_terms(st.nothing()),
    lambda inner: of_terms(inner) | st.lists(st.none() | inner, max_size=2) | st.none(),
    max_leaves=3,
)
KEYS = (*TERMS[:4], *TERMS, *ALIASES, *ALIASES.values())


def objects(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    values = optional(
        value=scalars | inner,
        type=st.sampled_from(TYPES),
        language=texts,
        direction=st.sampled_from(["ltr", "rtl"]),
        index=texts,
    )
    return st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        st.builds(
            lambda context, node: {"@context": context, **node},
            contexts,
            st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        ),
        values,
        st.builds(lambda key, one: {key: one}, st.sampled_from(["@list", "@set", "@graph"]), inner),
        st.dictionaries(texts, inner, max_size=2),
    )


contents = st.recursive(scalars, objects, max_leaves=10)
anything = st.builds(
    lambda context, node: {"@context": context, **node},
    contexts,
    st.dictionaries(st.sampled_from(KEYS), contents, min_size=1, max_size=4),
)

# Most of the above is refused by its context. Here the context is right, and the values are of all
# forms, whether or not its containers want them.
_MAPS = ("@index", "@id", "@type", "@language", "@graph")
RIGHT_CONTAINERS = (
    *([kind] for kind in ("@list", "@set", *_MAPS)),
    *([kind, "@set"] for kind in _MAPS),
    *(["@graph", kind, *more] for kind in ("@id", "@index") for more in ([], ["@set"])),
)
right_terms = st.fixed_dictionaries(
    {"@id": st.sampled_from([f"{EX}p", f"{EX}q"])},
    optional={
        "@container": st.sampled_from(RIGHT_CONTAINERS),
        "@type": st.sampled_from(["@id", "@vocab", f"{EX}d"]),
    },
)
forms = st.recursive(
    st.sampled_from(["x", "#b", 1, None, True, {"@id": "#b"}, {"@value": "x"}]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(["@list", "@set", "@graph", "@included", "items", "members", "graph"]),
            inner,
            min_size=1,
            max_size=1,
        ),
        st.dictionaries(st.sampled_from(["p", "q", "en", "#k", "@none"]), inner, max_size=2),
    ),
    max_leaves=3,
)
right = st.builds(
    lambda p, q, node: {"@context": {**ALIASES, "p": p, "q": q}, "@id": "#a", **node},
    right_terms,
    right_terms,
    st.dictionaries(st.sampled_from("pq"), forms, min_size=1),
)
documents = st.one_of(right, anything).map(json.dumps)


@pytest.fixture(scope="module")
def process() -> Iterator[RdfProcess]:
    with RdfProcess() as process:
        yield process


@settings(max_examples=400)
@given(document=documents)
def test_whatever_the_document_its_reader_lives_on(process: RdfProcess, document: str) -> None:
    assert process.outcome(document) in {"read", "refused"}, document


def test_the_end_of_a_reader_is_noticed() -> None:
    mortal = "import os, sys; sys.stdin.readline(); os.abort()"
    with (
        RdfProcess(sys.executable, "-c", mortal) as process,
        pytest.raises(AssertionError, match=r"ended with -6: \{\}"),
    ):
        process.outcome("{}")
