"""The messages of services that the pages translate."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import podstead
from podstead.core.errors import Conflict, PodsteadError
from podstead.idp.passwords import check_password
from podstead.web.pod_pages.refusals import REFUSALS, is_translated, refusal_text
from podstead.web.pod_pages.texts import LANGUAGES, texts_in, use_texts


def said() -> set[str]:
    """Every text in the source, and those that contain a number."""
    folder = Path(podstead.__file__).parent
    found = set()
    for file in folder.rglob("*.py"):
        if file.name != "refusals.py":
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
    for password in ("short", "x" * 2000):
        with pytest.raises(PodsteadError) as refused:
            check_password(password)
        found.add(str(refused.value))
    return found


def test_services_still_say_what_is_translated() -> None:
    assert said() >= REFUSALS


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_says_it_in_its_language(language: str) -> None:
    use_texts(texts_in(language))
    known, unknown = Conflict("The container is not empty"), Conflict("Something else")
    assert (refusal_text(known) == str(known)) is (language == "en")
    assert refusal_text(unknown) == str(unknown)
    assert is_translated(known)
    assert is_translated(unknown) is (language == "en")
    use_texts(texts_in("en"))
