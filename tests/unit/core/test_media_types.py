"""What a Content-Type says (RFC 9110 section 8.3.1 and 5.6.6, R-13)."""

from __future__ import annotations

import pytest

from podstead.core.errors import BadRequest
from podstead.core.media_types import RDF_TYPES, MediaType, essence, is_passive, parse_media_type


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/turtle", MediaType("text/turtle")),
        ("Text/TURTLE", MediaType("text/turtle")),
        (" text/turtle ", MediaType("text/turtle")),
        ("text/html;charset=utf-8", MediaType("text/html", (("charset", "utf-8"),))),
        ('Text/HTML;Charset="utf-8"', MediaType("text/html", (("charset", "utf-8"),))),
        ('text/html; charset="utf-8"', MediaType("text/html", (("charset", "utf-8"),))),
        ("text/html ;\tcharset=UTF-8", MediaType("text/html", (("charset", "UTF-8"),))),
        ("a/b; x=1; y=2", MediaType("a/b", (("x", "1"), ("y", "2")))),
        ("a/b; x=1; x=2", MediaType("a/b", (("x", "1"), ("x", "2")))),
        ("a/b;", MediaType("a/b")),
        ("a/b; ; x=1;", MediaType("a/b", (("x", "1"),))),
        (r'a/b; x="q\"\\ ;,"', MediaType("a/b", (("x", 'q"\\ ;,'),))),
        ('a/b; x=""', MediaType("a/b", (("x", ""),))),
        ("image/svg+xml", MediaType("image/svg+xml")),
        ("application/vnd.a.b-c_d", MediaType("application/vnd.a.b-c_d")),
    ],
)
def test_a_media_type_is_read(value: str, expected: MediaType) -> None:
    """The first examples are those of RFC 9110 section 8.3.1, all the same type."""
    assert parse_media_type(value) == expected
    assert essence(value) == expected.essence


@pytest.mark.parametrize(
    "value",
    [
        "",
        "text",
        "text/",
        "/turtle",
        "text / turtle",
        "text/turtle text",
        "text/turtle, text/html",
        "text/tur\u00e9tle",
        "text/turtle; charset",
        "text/turtle; charset=",
        "text/turtle; charset =utf-8",
        "text/turtle; charset= utf-8",
        'text/turtle; charset="utf-8',
        'text/turtle; charset="utf-8"x',
        "text/turtle; =x",
        "text/turtle; a=b c",
        "text/turtle\r\nX: y",
        'text/turtle; a="\r\n"',
        "*/*;q=ä",
    ],
)
def test_an_invalid_media_type_is_refused(value: str) -> None:
    with pytest.raises(BadRequest):
        parse_media_type(value)


@pytest.mark.parametrize(
    ("value", "is_utf_8"),
    [
        ("text/turtle", True),
        ("text/turtle; charset=UTF-8", True),
        ("text/turtle; charset=utf8", True),
        ("text/turtle; charset=us-ascii", True),
        ("text/turtle; charset=iso-8859-1", False),
        ("text/turtle; charset=utf-16", False),
        ('text/turtle; charset=""', False),
        ("text/turtle; charset=latin1; charset=utf-8", False),
    ],
)
def test_the_charset_says_whether_it_is_utf_8(value: str, *, is_utf_8: bool) -> None:
    """R-13."""
    assert parse_media_type(value).is_utf_8() is is_utf_8


def test_json_is_not_rdf() -> None:
    """R-6."""
    assert "application/json" not in RDF_TYPES


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Image/PNG", True),
        ("video/mp4; codecs=avc1", True),
        ("application/zip", True),
        ("image/svg+xml", False),
        ("image/xml", False),
        ("text/html", False),
        ("application/xhtml+xml", False),
        ("text/javascript", False),
        ("application/wasm", False),
        ("model/gltf", False),
    ],
)
def test_only_types_that_are_known_to_be_passive_are(value: str, *, expected: bool) -> None:
    assert is_passive(value) is expected


@pytest.mark.parametrize("value", ["a/b", "a/b; x=1", 'a/b; x="1 2"', r'a/b; x="\"\\"; y=z'])
def test_written_again_it_reads_the_same(value: str) -> None:
    assert parse_media_type(str(parse_media_type(value))) == parse_media_type(value)
