"""Patches as the conformance tests send them, and what is there afterwards."""

from __future__ import annotations

from tests.conformance.agents import N3_PATCH, Agent, Response
from tests.support.rdf import TURTLE, Triples, triples

PREFIXES = (
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n@prefix ex: <http://example.org/>.\n"
)
TYPE = "a solid:InsertDeletePatch"


def n3(*, where: str = "", deletes: str = "", inserts: str = "", around: str = "") -> str:
    """An N3 Patch with the clauses that are not empty, and statements ``around`` them."""
    clauses = {"where": where, "deletes": deletes, "inserts": inserts}
    parts = [f"solid:{name} {{ {text} }}" for name, text in clauses.items() if text]
    return f"{PREFIXES}{around}\n<#patch> {'; '.join([*parts, TYPE])}."


def patch_n3(agent: Agent, target: str, text: str) -> Response:
    return agent.patch(target, text, N3_PATCH)


def said(agent: Agent, target: str) -> Triples:
    """What is there, read by rdflib."""
    return agent.read(target).triples


def expected(agent: Agent, target: str, turtle: str) -> Triples:
    """What Turtle with the prefixes above says at a target, read by rdflib."""
    return triples(PREFIXES + turtle, TURTLE, agent.url(target))
