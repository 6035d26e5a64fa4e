"""What pages say about errors, in their language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import podstead
from podstead.core.codes import CoreCodes, ErrorCode
from podstead.core.errors import (
    BadRequest,
    BodyTimeout,
    Conflict,
    DiskFull,
    NotFound,
    PodsteadError,
    QuotaExceeded,
    RateLimited,
    StoreUnavailable,
)
from podstead.idp.passwords import check_password
from podstead.idp.records import check_email
from podstead.pods.names import check_name
from podstead.rdf.errors import MalformedRdf, UnavailableContext, UnknownContext
from podstead.resources.codes import ResourceCodes
from podstead.web.codes import WebCodes
from podstead.web.pages.rendering import is_translated, refusal_text
from podstead.web.pages.texts import LANGUAGES, texts_in, use_texts
from scripts.texts import error_codes

_PARAMETER = re.compile(r"%\(([a-z_]+)\)s")
_CODE = re.compile(r"\b([A-Z][a-z]+Codes)\.([A-Z][A-Z0-9_]+)\b")


def refused() -> Iterator[PodsteadError]:
    """What is said about values that are no good."""
    for name in ("a b", "a\u200bb", "a/b", "x" * 99, "idp", ""):
        with pytest.raises(PodsteadError) as error:
            check_name(name)
        yield error.value
    for password in ("short", "x" * 2000):
        with pytest.raises(PodsteadError) as error:
            check_password(password)
        yield error.value
    with pytest.raises(PodsteadError) as error:
        check_email("nobody")
    yield error.value
    yield RateLimited(retry_after_s=1)
    yield RateLimited(retry_after_s=30)
    yield QuotaExceeded(used_bytes=1, limit_bytes=2, needed_bytes=3)
    yield QuotaExceeded(used_bytes=1, limit_bytes=2)
    yield MalformedRdf("text/turtle", "no dot", line=3)
    yield MalformedRdf("text/turtle", "no dot")
    yield UnknownContext("https://a.example/")
    yield UnavailableContext("https://a.example/", 5)
    yield BodyTimeout(WebCodes.BODY_TOO_SLOW, number="100")
    yield DiskFull()
    yield StoreUnavailable()


@cache
def sources() -> tuple[str, ...]:
    """The source files of the package."""
    return tuple(path.read_text() for path in Path(podstead.__file__).parent.rglob("*.py"))


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Each call with a code among its arguments; the code is ``class.name``."""
    for source in sources():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                for argument in node.args:
                    if _CODE.fullmatch(ast.unparse(argument)):
                        yield ast.unparse(argument), node


def named(code: ErrorCode) -> str:
    return f"{type(code).__name__}.{code.name}"


def test_every_code_is_used() -> None:
    used = {".".join(found) for source in sources() for found in _CODE.findall(source)}
    assert used == set(map(named, error_codes()))


def test_no_code_has_two_names() -> None:
    for codes in {type(code) for code in error_codes()}:
        assert list(codes) == list(codes.__members__.values())


def test_errors_have_the_parameters_of_their_code() -> None:
    parameters = {named(code): set(_PARAMETER.findall(code.text)) for code in error_codes()}
    seen = 0
    for code, call in calls():
        given = {keyword.arg for keyword in call.keywords}
        assert None in given or parameters[code] <= given, ast.unparse(call)
        seen += 1
    assert seen > 200


def test_messages_for_programs_have_the_parameters() -> None:
    assert str(NotFound()) == "The resource does not exist"
    assert str(NotFound("Something else")) == "Something else"
    assert NotFound("Something else").code is None
    error = Conflict(ResourceCodes.TOO_MANY_FILES, number=10_000)
    assert str(error) == "An archive can contain at most 10,000 files"
    assert error.code is ResourceCodes.TOO_MANY_FILES


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_says_it_in_its_language(language: str) -> None:
    use_texts(texts_in(language))
    known, unknown = Conflict(ResourceCodes.NOT_EMPTY), Conflict("Something else")
    assert (refusal_text(known) == str(known)) is (language == "en")
    assert refusal_text(unknown) == str(unknown)
    assert is_translated(known)
    assert is_translated(unknown) is (language == "en")
    use_texts(texts_in("en"))


@pytest.mark.parametrize("error", list(refused()), ids=str)
@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_what_services_say_about_values_is_translated(error: PodsteadError, language: str) -> None:
    assert not re.search(r"\{[a-z_]+[:}]", str(error))
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
        limit = BadRequest(ResourceCodes.TOO_MANY_RESOURCES, number=10_000)
        assert "10.000 Einträge" in refusal_text(limit)
    finally:
        use_texts(texts_in("en"))


def test_what_somebody_sent_stays_as_it_is() -> None:
    error = MalformedRdf("text/turtle", "not %(reason)s or {reason} but <b>\n", line=1)
    assert "not %(reason)s or {reason} but <b>\n" in str(error)
    assert "not %(reason)s or {reason} but <b>\n" in refusal_text(error)
    assert refusal_text(BadRequest("100 % {of} %(it)s")) == "100 % {of} %(it)s"
    assert refusal_text(BadRequest(CoreCodes.ACCESS_DENIED)) == "Access denied"
