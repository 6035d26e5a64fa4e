"""The W3C tests of SPARQL 1.1 Query evaluation, through the endpoint.

The data of each test are documents of a pod, and the request names those that are its dataset.
"""

from __future__ import annotations

import csv
import io
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import pytest
import rdflib
from rdflib.collection import Collection
from rdflib.compare import isomorphic
from rdflib.namespace import XSD
from rdflib.query import Result

from tests.support.application import BASE, Server
from tests.support.asgi import Answer, Client

ARCHIVE = Path(__file__).parents[2] / "vectors/rdf/sparql-suite/sparql11.tar.xz"
MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")
TYPES = {".ttl": "text/turtle", ".rdf": "application/rdf+xml", ".nt": "application/n-triples"}
TABLES = {".csv": "text/csv", ".tsv": "text/tab-separated-values"}
FOLDERS = [
    "aggregates",
    "bind",
    "bindings",
    "cast",
    "construct",
    "csv-tsv-res",
    "exists",
    "functions",
    "grouping",
    "json-res",
    "negation",
    "project-expression",
    "property-path",
    "subquery",
]
_ABSENT = "the library finds no path of length zero at a term that is in no document"
_GRAPH = "the library evaluates what is inside GRAPH without binding its variable"
_LANGUAGE = "the library keeps a language tag that all parts have, as SPARQL 1.2 does"
EXCEPTIONS = {
    "aggregates: COUNT: no GROUP BY inside of GRAPH": _GRAPH,
    "aggregates: GROUP_CONCAT with one element": _LANGUAGE,
    "aggregates: GROUP_CONCAT with same language tag": _LANGUAGE,
    "bindings: VALUES inside GRAPH binding the same variable as the graph name": _GRAPH,
    "csv-tsv-res: tsv03 - TSV Result Format": "the library has subtypes of integers as integers",
    "functions: BNODE(str)": "the library makes one blank node for equal texts of all solutions",
    "negation: outer GRAPH operator does not affect MINUS disjointness": _GRAPH,
    "property-path: * with end being a constant on the empty dataset": _ABSENT,
    "property-path: * with start being a constant on the empty dataset": _ABSENT,
    "property-path: ? with end being a constant on the empty dataset": _ABSENT,
    "property-path: ? with start being a constant on the empty dataset": _ABSENT,
}
"""The tests that are not passed, by folder and name, with the reason."""


@cache
def files() -> dict[str, bytes]:
    """The files of the suite by folder and name."""
    with tarfile.open(ARCHIVE) as archive:
        members = ((each.name, archive.extractfile(each)) for each in archive.getmembers())
        return {name: content.read() for name, content in members if content is not None}


@dataclass(frozen=True)
class Case:
    """One test; the files are URLs, as the pod has them."""

    name: str
    kind: str
    query: str
    data: tuple[str, ...]
    graphs: tuple[str, ...]
    result: str


def cases(folder: str) -> Iterator[Case]:
    """The tests of a folder."""
    base = f"{BASE}/alice/suite/{folder}/"
    text = files()[f"{folder}/manifest.ttl"]
    manifest = rdflib.Graph().parse(data=text, format="turtle", publicID=base)
    entries = next(manifest.objects(None, MF.entries))
    for entry in Collection(manifest, entries):
        kind = str(manifest.value(entry, rdflib.RDF.type)).removeprefix(str(MF))
        action = manifest.value(entry, MF.action)
        if (action, QT.query, None) not in manifest:  # of a syntax
            yield Case(str(manifest.value(entry, MF.name)), kind, str(action), (), (), "")
            continue
        yield Case(
            str(manifest.value(entry, MF.name)),
            kind,
            str(manifest.value(action, QT.query)),
            tuple(map(str, manifest.objects(action, QT.data))),
            tuple(map(str, manifest.objects(action, QT.graphData))),
            str(manifest.value(entry, MF.result)),
        )


def content_of(url: str) -> bytes:
    return files()[url.removeprefix(f"{BASE}/alice/suite/")]


async def ask(client: Client, folder: str, case: Case, accept: str) -> Answer:
    text = content_of(case.query).decode()
    fields = {"query": [text]}
    if not re.search(r"\bFROM\b", text):
        fields["default-graph-uri"] = list(case.data or [f"{BASE}/alice/suite/nothing"])
        fields["named-graph-uri"] = list(case.graphs)
    return await client.request(
        "POST",
        f"/.sparql/query/alice/suite/{folder}/",
        headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": accept},
        body=urlencode(fields, doseq=True).encode(),
    )


@pytest.mark.parametrize("folder", FOLDERS)
async def test_the_suite(server: Server, folder: str) -> None:
    for name, content in files().items():
        suffix = Path(name).suffix
        if name.startswith(f"{folder}/") and suffix in TYPES and "manifest" not in name:
            await server.alice.put(f"/alice/suite/{name}", content, TYPES[suffix])
    failed = set()
    found = list(cases(folder))
    for case in found:
        if not await passes(server.alice, folder, case):
            failed.add(f"{folder}: {case.name}")
    assert failed == {each for each in EXCEPTIONS if each.startswith(f"{folder}:")}


async def passes(client: Client, folder: str, case: Case) -> bool:
    if "NegativeSyntax" in case.kind:
        return (await ask(client, folder, case, "*/*")).status == 400
    suffix = Path(case.result).suffix
    if suffix in TABLES:
        answer = await ask(client, folder, case, TABLES[suffix])
        return answer.status == 200 and table(answer.body) == table(content_of(case.result))
    construct = re.search(rb"\bCONSTRUCT\b", content_of(case.query))
    accept = "application/n-triples" if construct else "application/sparql-results+json"
    answer = await ask(client, folder, case, accept)
    if answer.status != 200:
        return False
    if construct:
        found, expected = rdflib.Graph(), rdflib.Graph()
        found.parse(data=answer.text, format="nt")
        expected.parse(data=content_of(case.result), publicID=case.result, format="turtle")
        return isomorphic(by_value(found), by_value(expected))
    return same(Result.parse(source=io.BytesIO(answer.body), format="json"), result(case))


def result(case: Case) -> Result:
    content, suffix = content_of(case.result), Path(case.result).suffix
    if suffix in (".srx", ".srj"):
        return Result.parse(
            source=io.BytesIO(content), format="xml" if suffix == ".srx" else "json"
        )
    graph = rdflib.Graph().parse(data=content, publicID=case.result, format="turtle")
    found = Result("SELECT")
    found.vars = [rdflib.Variable(str(each)) for each in graph.objects(None, RS.resultVariable)]
    found.bindings = [
        {
            rdflib.Variable(str(graph.value(each, RS.variable))): graph.value(each, RS.value)  # type: ignore[misc]  # terms
            for each in graph.objects(row, RS.binding)
        }
        for row in graph.objects(None, RS.solution)
    ]
    return found


def same(found: Result, expected: Result) -> bool:
    """Whether two results are equal, whatever blank nodes are called, and the order."""
    if found.type == "ASK" or expected.type == "ASK":
        return found.askAnswer == expected.askAnswer
    names = {str(each) for each in found.vars or ()}, {str(each) for each in expected.vars or ()}
    return names[0] == names[1] and isomorphic(rows(found), rows(expected))


def rows(found: Result) -> rdflib.Graph:
    graph = rdflib.Graph()
    for row in found.bindings:
        solution = rdflib.BNode()
        graph.add((solution, rdflib.RDF.type, RS.ResultSolution))
        for name, value in row.items():
            graph.add((solution, rdflib.URIRef(f"urn:variable:{name}"), value))
    return by_value(graph)


def by_value(graph: rdflib.Graph) -> rdflib.Graph:
    """The graph with numbers that are equal if their values are."""
    found = rdflib.Graph()
    for subject, predicate, object_ in graph:
        value = object_
        if isinstance(object_, rdflib.Literal):
            text = str(object_)
            if isinstance(object_.value, int | float | Decimal) and object_.datatype != XSD.boolean:
                text = f"{float(object_.value):.9g}"
            language = object_.language and object_.language.lower()
            value = rdflib.Literal(text, datatype=object_.datatype, lang=language, normalize=False)
        found.add((subject, predicate, value))
    return found


def table(content: bytes) -> list[list[tuple[str, str]]]:
    """The cells of each row by column, with equal texts for equal numbers."""
    text = re.sub(r"_:\w+", "_:", content.decode())
    delimiter = "\t" if text.startswith("?") else ","
    names, *found = csv.reader(text.splitlines(), delimiter=delimiter)
    return sorted(sorted(zip(names, map(_plain, row), strict=True)) for row in found)


def _plain(cell: str) -> str:
    try:
        return f"{float(cell):.9g}"
    except ValueError:
        return cell
