"""Answers to requests for access, as people see them."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.resources.sharing.access_requests import AccessAnswer
from podstead.web.pod_pages.files.names import shown_name
from podstead.web.pod_pages.sharing.sentences import Names, shown_role


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer to a request of the person."""

    answer: AccessAnswer
    actor: str
    role_text: str
    name: str


def shown_answer(answer: AccessAnswer, names: Names) -> ShownAnswer:
    """An answer in the language of the current request."""
    return ShownAnswer(
        answer, names.iri(answer.actor), shown_role(answer.modes), shown_name(answer.resource)
    )
