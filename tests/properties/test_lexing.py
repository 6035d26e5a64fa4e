"""The lexer of patches compared with a model that scans character by character.

The lexer's regular expressions are bounded and avoid what Python before 3.11.5 gets wrong. The
model has no regular expression that repeats a group, and no bound.
"""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podstead.core.errors import RequestRefused
from podstead.core.media_types import N3
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.lexing import Lexer, TokenKind
from podstead.rdf.patch_parsers import parse_sparql_update
from tests.support.rdf_oracle import BASE

KIB = 1024

Scanned = tuple[TokenKind, str, int]

# PN_CHARS_U and PN_CHARS of SPARQL 1.1, section 19.8.
NAME_START = re.compile(
    "[A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff]"
)
OTHER_IN_NAME = re.compile("[0-9\u00b7\u0300-\u036f\u203f\u2040-]")
IRI = re.compile(r'<[^<>"{}|^`\x00-\x20]*>')
NUMBER = re.compile(r"[+-]?([0-9]+([.][0-9]+)?|[.][0-9]+)([eE][+-]?[0-9]+)?")
DIRECTIVE = re.compile("@[A-Za-z][A-Za-z0-9-]*")
PERCENT = re.compile("%[0-9A-Fa-f][0-9A-Fa-f]")


def is_in_name(character: str) -> bool:
    return bool(NAME_START.match(character) or OTHER_IN_NAME.match(character))


def end_of_string(text: str, start: int) -> int | None:
    mark = text[start]
    is_long = text.startswith(mark * 3, start)
    closing = mark * 3 if is_long else mark
    at = start + len(closing)
    while at < len(text) and not text.startswith(closing, at):
        if not is_long and text[at] in "\r\n":
            return None
        at += 2 if text[at] == "\\" else 1
    return at + len(closing) if at < len(text) else None


def end_of_word(text: str, start: int) -> int:
    """The end of a prefix or a word, which can have dots in it but not after it."""
    at = end = start
    if at < len(text) and NAME_START.match(text[at]):
        while at < len(text) and (text[at] == "." or is_in_name(text[at])):
            at += 1
            if text[at - 1] != ".":
                end = at
    return end


def end_of_local_name(text: str, start: int) -> int:
    at = start
    while at < len(text):
        after_dots = at
        while text.startswith(".", after_dots):
            after_dots += 1
        following = text[after_dots : after_dots + 1]
        if following and (following == ":" or is_in_name(following)):
            at = after_dots + 1
        elif after_dots > at and following and following in "%\\":
            at = after_dots
        elif PERCENT.match(text, at):
            at += 3
        elif text[at] == "\\" and at + 1 < len(text):
            at += 2
        else:
            break
    return at


def scanned(text: str) -> Iterator[Scanned | None]:
    """The tokens, comments included; ``None``, at the end, for a string that does not end."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        kind, end = token_at(text, at)
        if end is None:
            yield None
            return
        yield kind, text[at:end], at
        at = end


def token_at(text: str, at: int) -> tuple[TokenKind, int | None]:  # noqa: C901, PLR0911 - one case for each kind
    first = text[at]
    if first == "#":
        ends = [end for end in (text.find("\n", at), text.find("\r", at)) if end >= 0]
        return TokenKind.COMMENT, min(ends, default=len(text))
    if first in "\"'":
        return TokenKind.STRING, end_of_string(text, at)
    if match := IRI.match(text, at):
        return TokenKind.IRI, match.end()
    following = text[at + 1 : at + 2]
    is_variable = following and (NAME_START.match(following) or following in "0123456789")
    if first in "?$" and is_variable:
        end = at + 2
        while end < len(text) and is_in_name(text[end]):
            end += 1
        return TokenKind.VARIABLE, end
    if match := DIRECTIVE.match(text, at):
        return TokenKind.DIRECTIVE_OR_LANGUAGE, match.end()
    end = end_of_word(text, at)
    if text.startswith(":", end):
        return TokenKind.NAME, end_of_local_name(text, end + 1)
    if end > at:
        return TokenKind.WORD, end
    if match := NUMBER.match(text, at):
        return TokenKind.NUMBER, match.end()
    if text.startswith("^^", at):
        return TokenKind.DATATYPE, at + 2
    return TokenKind.PUNCTUATION, at + 1


PLAIN_KINDS = (
    TokenKind.STRING,
    TokenKind.IRI,
    TokenKind.NAME,
    TokenKind.NUMBER,
    TokenKind.DATATYPE,
)


def is_notable(token: Scanned | None, text: str) -> bool:
    if token is None:
        return True
    kind, content, start = token
    if kind is TokenKind.WORD:
        return content != "a" or not text[start + 1 : start + 2].isspace()
    if kind is TokenKind.DIRECTIVE_OR_LANGUAGE:
        return content.startswith("@for")
    return kind not in PLAIN_KINDS and content not in tuple("[](),.;=")


def lexed(text: str, *, notable: bool) -> list[Scanned | None]:
    lexer = Lexer(text, N3)
    tokens: list[Scanned | None] = []
    try:
        while token := lexer.next_notable() if notable else lexer.next():
            tokens.append((token.kind, token.text, token.start))
    except MalformedRdf:
        tokens.append(None)
    return tokens


PIECES = st.sampled_from(
    [
        *"\"'\\<>{}#?$@:%.^=;,+-_aefZ0%\n\r\t \u00e9\u0301\u00b7\U0001f600\ufeff\0",
        *('"""', "'''", '""', "''", '\\"', "\\'", "\\\\", "\\u0041", "\\\n", '"a"', "'a'"),
        *("<a>", "<urn:a#b>", "ex:", "ex:a", "_:b", "%20", "%2", "\\,", "\\?", "..", "a.b"),
        *("a ", "@en", "@forAll", "@format", "1.5e3", ".5", "^^", "?x", "$y", "# ?x\n", "INSERT"),
    ]
)
# As often as a pattern repeats its groups, and more.
REPEATED = st.builds(str.__mul__, PIECES, st.sampled_from([1, 1, 1, 1, 1, 1, 100, 101]))
TEXTS = st.lists(REPEATED, max_size=8).map("".join)


@given(TEXTS)
@example('"""' + '\\"' * 250 + '""" ?x')
@example("'" + "\\n" * 101 + "' ?x")
@example('"' + "\\n" * 101 + "\n")
@example("ex:" + "%20.." * 101 + " ?x")
@example(":" + "\\?x." * 250 + "?x")
@example('"""a""""""b""" ?x ' + "''''''")
def test_tokens_are_those_of_the_model(text: str) -> None:
    tokens = list(scanned(text))
    kept = [token for token in tokens if token is None or token[0] is not TokenKind.COMMENT]
    assert lexed(text, notable=False) == kept


@given(TEXTS)
@example("?x <a> " + "ex:b . " * 101 + "?y")
@example("{ " + '"\\n" ' * 101 + "}" + ":" + "%20" * 101 + ". ?x")
@example("ex:a.%zz ?x ex:b.. ?y")
def test_what_is_skipped_is_what_the_model_finds_plain(text: str) -> None:
    expected = [
        token
        for token in scanned(text)
        if token is None or (token[0] is not TokenKind.COMMENT and is_notable(token, text))
    ]
    assert lexed(text, notable=True) == expected


@pytest.mark.parametrize(
    "piece",
    [
        "<>",
        '"" ',
        "'\\n' ",
        ":",
        ":.a",
        ":%20",
        ":\\, ",
        ".",
        "a.",
        " ",
        "a:b ",
        "1 ",
        "# \n",
        "a ",
    ],
)
@pytest.mark.parametrize("before", ["", '"""', "'", ":", "{"])
@pytest.mark.parametrize("after", ["", "?x", "\\"])
def test_a_large_text_takes_linear_time_and_little_memory(
    before: str, piece: str, after: str
) -> None:
    """In quadratic time, each would take hours; an unbounded repeated group, 60 MiB."""
    text = before + piece * (256 * KIB // len(piece)) + after
    lexer = Lexer(text, N3)
    tracemalloc.start()
    try:
        lexer.next_notable()
        _, peak_bytes = tracemalloc.get_traced_memory()
    except MalformedRdf:
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 * len(text) + 4096 * KIB


@pytest.mark.parametrize("characters", [99_000, 1000 * KIB])
@pytest.mark.parametrize(
    ("before", "piece"),
    [
        ("INSERT DATA {", "<>"),
        ("INSERT DATA { <a> <b> ", "'' ,"),
        ("INSERT DATA { <a> <b> '", "\\a"),
        ("", "PREFIX a:<> "),
        ("", "INSERT DATA {};"),
        ("INSERT DATA {", " "),
    ],
)
def test_a_large_update_takes_linear_time(before: str, piece: str, characters: int) -> None:
    """Below and above the length up to which a plain update is matched as a whole."""
    text = before + piece * (characters // len(piece))
    with suppress(RequestRefused):
        parse_sparql_update(text.encode(), base_iri=BASE)
