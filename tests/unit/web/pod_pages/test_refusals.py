"""The messages of services that the pages translate."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import podstead
from podstead.core.errors import (
    BadRequest,
    Conflict,
    DiskFull,
    PodsteadError,
    QuotaExceeded,
    RateLimited,
    StoreUnavailable,
)
from podstead.idp.names import check_email
from podstead.idp.passwords import check_password
from podstead.pods.names import check_name
from podstead.rdf.errors import MalformedRdf, UnavailableContext, UnknownContext
from podstead.web.pod_pages.refusal_texts import REFUSALS
from podstead.web.pod_pages.refusals import is_translated, refusal_text
from podstead.web.pod_pages.reworded_refusals import REWORDED, WITH_VALUES
from podstead.web.pod_pages.texts import LANGUAGES, texts_in, use_texts

_VALUE = re.compile(r"%\([a-z_]+\)s")


def refused() -> Iterator[str]:
    """What is said about values that are no good."""
    for name in ("a b", "a\u200bb", "a/b", "x" * 99):
        with pytest.raises(PodsteadError) as error:
            check_name(name)
        yield str(error.value)
    for password in ("short", "x" * 2000):
        with pytest.raises(PodsteadError) as error:
            check_password(password)
        yield str(error.value)
    with pytest.raises(PodsteadError) as error:
        check_email("nobody")
    yield str(error.value)
    yield str(RateLimited(retry_after_s=1))
    yield str(RateLimited(retry_after_s=30))
    yield str(QuotaExceeded(used_bytes=1, limit_bytes=2, needed_bytes=3))
    yield str(QuotaExceeded(used_bytes=1, limit_bytes=2))
    yield str(MalformedRdf("text/turtle", "no dot", line=3))
    yield str(MalformedRdf("text/turtle", "no dot"))
    yield str(UnknownContext("https://a.example/"))
    yield str(UnavailableContext("https://a.example/", 5))
    yield "The request body did not arrive in time; the minimum rate is 100 bytes per second"


@cache
def said() -> frozenset[str]:
    """Every text in the source, those with values with a mark in place of each."""
    found = set(refused())
    for file in Path(podstead.__file__).parent.rglob("*.py"):
        if file.name not in {"refusal_texts.py", "reworded_refusals.py"}:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
                elif isinstance(node, ast.JoinedStr):
                    found.add(
                        "".join(
                            str(part.value) if isinstance(part, ast.Constant) else "\0"
                            for part in node.values
                        )
                    )
    return frozenset(found)


def fits(template: str, text: str) -> bool:
    return bool(re.fullmatch(".+?".join(map(re.escape, _VALUE.split(template))), text, re.DOTALL))


def test_services_still_say_what_is_translated() -> None:
    assert said() >= REFUSALS | REWORDED.keys()


@pytest.mark.parametrize("template", WITH_VALUES)
def test_services_still_say_what_has_values(template: str) -> None:
    assert any(fits(template, text) for text in said())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_says_it_in_its_language(language: str) -> None:
    use_texts(texts_in(language))
    known, unknown = Conflict("The container is not empty"), Conflict("Something else")
    assert (refusal_text(known) == str(known)) is (language == "en")
    assert refusal_text(unknown) == str(unknown)
    assert is_translated(known)
    assert is_translated(unknown) is (language == "en")
    use_texts(texts_in("en"))


@pytest.mark.parametrize("error", [*refused(), str(DiskFull()), str(StoreUnavailable())])
@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_what_services_say_about_values_is_translated(error: str, language: str) -> None:
    try:
        use_texts(texts_in("en"))
        in_english = refusal_text(error)
        use_texts(texts_in(language))
        assert is_translated(error)
        assert refusal_text(error) != in_english
        assert "%(" not in refusal_text(error)
    finally:
        use_texts(texts_in("en"))


def test_sizes_and_numbers_are_those_of_the_language() -> None:
    full = QuotaExceeded(used_bytes=9_500_000, limit_bytes=10_000_000, needed_bytes=1_300_000)
    try:
        use_texts(texts_in("en"))
        assert refusal_text(full) == (
            "There is no room for this: it needs 1.3 MB, and the pod already uses 9.5 MB of its "
            "10 MB"
        )
        use_texts(texts_in("de"))
        assert "1,3 MB" in refusal_text(full)
        limit = BadRequest(
            "One request can concern at most 10000 resources, including access "
            "rules and descriptions. Copy, move or delete parts of it first"
        )
        assert "10.000 Einträge" in refusal_text(limit)
    finally:
        use_texts(texts_in("en"))


def test_what_somebody_sent_stays_as_it_is() -> None:
    error = MalformedRdf("text/turtle", "not %(reason)s but <b>\n", line=1)
    assert "not %(reason)s but <b>\n" in refusal_text(error)
    assert refusal_text(f"Malformed {'x' * 5000}: y") == f"Malformed {'x' * 5000}: y"
