"""The plain model of the search: a scan of what the engines index."""

from __future__ import annotations

from collections.abc import Iterable

from podstead.features.search.analysis import Clause, Question


def matches(question: Question, *fields: str) -> bool:
    """Whether a document is what a question looks for, whatever its filters say.

    Each field is the :func:`index_text` of a text of the document, such as its name.
    """
    return all(_has(clause, fields) for clause in question.wanted) and not any(
        _has(clause, fields) for clause in question.excluded
    )


def _has(clause: Clause, fields: Iterable[str]) -> bool:
    sought = f" {' '.join(clause.words)}" + ("" if clause.is_prefix else " ")
    return any(
        sought in field or any(f"{stem} " in field for stem in clause.stems)
        for field in (f" {field} " for field in fields)
    )
