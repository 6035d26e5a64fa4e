"""RDF that several conformance tests send."""

from __future__ import annotations

from tests.conformance.agents import N3_PATCH, SOLID, SPARQL_UPDATE

EX = "http://example.org/"

DOCUMENT = f"""
@prefix ex: <{EX}>.
<#me> a ex:Person; ex:name "Zoë"@fr, "two\\nlines", "5"^^ex:code; ex:age 42, 4.2, 4.2e1, true;
    ex:likes ( 1 "two" <other> () ); ex:knows [ ex:name "nobody"; ex:knows _:one ], _:one .
<> ex:about <#me>, <../>, <{EX}>, <mailto:me@example.org>.
"""
"""Turtle with one of each: languages, datatypes, numbers, lists, blank nodes, relative IRIs."""

INSERTED = f"<#a> <{EX}b> 'c'."
PATCHES = {
    SPARQL_UPDATE: f"INSERT DATA {{ {INSERTED} }}",
    N3_PATCH: f"@prefix s: <{SOLID}>. [] a s:InsertDeletePatch; s:inserts {{ {INSERTED} }}.",
}
"""By media type, patches that add what ``INSERTED`` says in Turtle."""
