"""What a Content-Type says (RFC 9110 section 8.3.1 and 5.6.6, R-13)."""

from __future__ import annotations

import pytest

from podstead.core.errors import BadRequest
from podstead.core.media_types import (
    MAX_ACCEPT_CHARS,
    RDF_TYPES,
    MediaType,
    choose,
    essence,
    excludes,
    is_passive,
    parse_accept,
    parse_media_type,
    prefers_html,
)


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


# --- Which representation an Accept header selects (R-3 to R-5, C-27, P-17) --------------------


TURTLE, JSON_LD, HTML = "text/turtle", "application/ld+json", "text/html"
RDF = (TURTLE, JSON_LD)

CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
SOLID_CLIENT = "text/turtle"
RDFLIB = (
    "image/*;q=0.9, */*;q=0.1, application/rdf+xml;q=0.9, application/xhtml+xml, text/xml;q=0.5,"
    " application/xml;q=0.5, text/html;q=0.9, text/plain;q=0.5, text/n3;q=1.0, text/turtle;q=1"
)
LDO = "text/turtle, */*"
OLD_JAVA = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"


@pytest.mark.parametrize(
    ("media_type", "weight"),
    [("text/plain", 1.0), ("text/html", 0.3), ("image/jpeg", 0.5), ("text/css", 0.3)],
)
def test_the_example_of_the_specification(media_type: str, weight: float) -> None:
    """RFC 9110 section 12.5.1, last example; parameters other than q are ignored (R-3)."""
    header = (
        "text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed,"
        " text/plain;format=fixed;q=0.4, */*;q=0.5"
    )
    assert parse_accept(header).weight(media_type) == weight


@pytest.mark.parametrize(
    ("media_type", "weight"),
    [("text/html", 1), ("text/x-c", 1), ("text/x-dvi", 0.8), ("text/plain", 0.5), ("text/css", 0)],
)
def test_the_elaborate_example_of_the_specification(media_type: str, weight: float) -> None:
    """RFC 9110 section 12.5.1."""
    header = "text/plain; q=0.5, text/html,\n text/x-dvi; q=0.8, text/x-c".replace("\n", "")
    assert parse_accept(header).weight(media_type) == weight


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("text/turtle", TURTLE),
        ("application/ld+json", JSON_LD),
        ("Application/LD+JSON", JSON_LD),
        ("text/turtle;q=0.5, application/ld+json", JSON_LD),
        ("text/turtle, application/ld+json;q=0.999", TURTLE),
        ("application/ld+json;q=0.5, */*;q=0.1", JSON_LD),
        ("text/*, application/ld+json;q=0.9", TURTLE),
        ("application/*", JSON_LD),
        ("*/*, text/turtle;q=0", JSON_LD),
        ("text/*;q=0, */*", JSON_LD),
        ('application/ld+json; profile="http://www.w3.org/ns/json-ld#compacted"', JSON_LD),
        ('application/ld+json;profile="a, text/turtle;q=1, \\" b";q=0.5, text/x;q=1', JSON_LD),
        ("text/turtle ; q = 0.4 , application/ld+json;Q=0.3", TURTLE),
        ("text/turtle ; q = 0.4 , application/ld+json", JSON_LD),
        ("application/ld+json;q=0.2;ext=1, text/turtle;q=0.1;ext", JSON_LD),
        (",, text/turtle;q=0.1 ,,", TURTLE),
        ("text/turtle;;q=0.4;, application/ld+json;q=0.3", TURTLE),
        (SOLID_CLIENT, TURTLE),
        (RDFLIB, TURTLE),
        (CHROME, TURTLE),
    ],
)
def test_the_preferred_type_is_chosen(accept: str, chosen: str) -> None:
    """R-3: q-values, wildcards, specificity."""
    assert choose(accept, RDF) == chosen


@pytest.mark.parametrize("accept", [None, "", "*/*", "*", "*/*;q=0.1", "text/*, application/*"])
@pytest.mark.parametrize("offered", [(TURTLE, JSON_LD), (JSON_LD, TURTLE)])
def test_ties_go_to_the_first_offered(accept: str | None, offered: tuple[str, str]) -> None:
    """R-3, R-4: the caller puts the stored type first, and Turtle before JSON-LD."""
    assert choose(accept, offered) == offered[0]


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (LDO, TURTLE),
        ("*/*, application/ld+json", JSON_LD),
        ("text/*, application/ld+json", JSON_LD),
        ("application/*, text/turtle", TURTLE),
        ("*/*;q=0.5, text/turtle;q=0.5", TURTLE),
        ("text/turtle, */*, application/ld+json;q=0.9", TURTLE),
    ],
)
@pytest.mark.parametrize("offered", [(TURTLE, JSON_LD), (JSON_LD, TURTLE)])
def test_a_named_type_precedes_one_that_a_wildcard_accepts(
    accept: str, chosen: str, offered: tuple[str, str]
) -> None:
    """R-3: specificity, before the order in which types are offered."""
    assert choose(accept, offered) == chosen


@pytest.mark.parametrize("media_type", ["text/html", "image/png"])
def test_a_wildcard_that_weighs_more_than_a_name_decides(media_type: str) -> None:
    assert choose("text/turtle;q=0.9, */*", (TURTLE, media_type)) == media_type


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "image/*",
        "text/turtle;q=0",
        "*/*;q=0",
        "text/turtle;q=0.000, text/n3",
        "a/b;q=1",
    ],
)
def test_none_of_the_offered_types_may_be_acceptable(accept: str) -> None:
    """R-5: 406 for an RDF source; q=0 excludes."""
    assert choose(accept, RDF) is None


def test_nothing_offered_is_nothing_chosen() -> None:
    assert choose(None, ()) is None
    assert choose("*/*", []) is None


def test_a_long_list_with_turtle_highest_gives_turtle() -> None:
    """R-3, accept-acah 3: an Accept of more than 128 characters."""
    others = ", ".join(f"application/x-type-{index};q=0.{index % 9}" for index in range(40))
    accept = f"{others}, text/turtle;q=0.9, application/ld+json;q=0.8"
    assert len(accept) > 128
    assert choose(accept, (JSON_LD, TURTLE)) == TURTLE


@pytest.mark.parametrize(
    "malformed",
    [
        *(
            "text",
            "/",
            "text/",
            "/turtle",
            "*/turtle",
            "text/turtle/x",
            "text turtle",
            "<>",
            "=",
            ";",
        ),
        *("text/turtle x", "text/turtle;q=2", "text/turtle;q=1.1", "text/turtle;q=-1"),
        *("text/turtle;q=", "text/turtle;q", "text/turtle;q=a", "text/turtle;q=nan"),
        *("text/turtle;q=1e0", 'text/turtle;q="1"', "text/turtle;q=0.5 x", "text/turtle;a=b c"),
        *("text/turtle;q=\u0661", "text/türtle", "text/turtle\x00", 'text/turtle;a="open'),
    ],
)
def test_a_malformed_part_is_skipped(malformed: str) -> None:
    """R-3: it neither counts nor spoils the parts before it."""
    assert choose(f"application/ld+json;q=0.1, {malformed}", RDF) == JSON_LD
    assert choose(malformed, RDF) == TURTLE


@pytest.mark.parametrize("weight", [".5", "0.5", "0.50", "0.500000000"])
def test_a_weight_in_a_form_that_clients_send_is_understood(weight: str) -> None:
    """Old Java clients send ``q=.2``; some print more digits than RFC 9110 allows."""
    assert parse_accept(f"text/turtle;q={weight}").weight(TURTLE) == 0.5
    assert choose(OLD_JAVA, RDF) == TURTLE


def test_a_header_past_the_limit_is_read_as_absent() -> None:
    """At the limit and one past it."""
    accept = "application/ld+json".ljust(MAX_ACCEPT_CHARS)
    assert choose(accept, RDF) == JSON_LD
    assert choose(accept + " ", RDF) == TURTLE
    assert prefers_html("text/html".ljust(MAX_ACCEPT_CHARS))
    assert not prefers_html("text/html".ljust(MAX_ACCEPT_CHARS + 1))


@pytest.mark.parametrize(
    "accept",
    [
        CHROME,
        OLD_JAVA,
        "text/html",
        "text/*;q=0.5, text/html, text/turtle;q=0.9",
        "text/html;q=0.2, */*;q=0.1",
    ],
)
def test_html_is_preferred_where_it_outranks_json_and_rdf(accept: str) -> None:
    """C-27, P-17: browsers."""
    assert prefers_html(accept)


@pytest.mark.parametrize(
    "accept",
    [
        *(None, "", "*/*", "text/*", "text/turtle", "application/json", RDFLIB, SOLID_CLIENT),
        *("text/html, application/json", "text/html, text/turtle", "text/html;q=0", "nonsense"),
        *("text/html, */*", "text/html, application/n-quads", "text/html;q=0.3, text/*;q=0.4"),
    ],
)
def test_html_is_not_preferred_otherwise(accept: str | None) -> None:
    """C-27: strictly preferred only."""
    assert not prefers_html(accept)


@pytest.mark.parametrize(
    ("accept", "excluded"),
    [
        (None, False),
        ("*/*", False),
        ("image/png", False),
        ("text/turtle", False),
        ("text/turtle, application/ld+json", False),
        ("image/png;q=0", True),
        ("image/*;q=0", True),
        ("*/*;q=0", True),
        ("text/turtle, image/png;q=0", True),
        ("image/*;q=0, image/png", False),
        ("image/png;q=0, image/*", True),
        ("image/png;q=0, */*", False),
        ("image/png;q=0, */*;q=0.1", False),
        ("image/png;q=0, */*;q=0", True),
        ("image/jpeg;q=0", False),
    ],
)
def test_a_document_is_withheld_only_where_its_type_is_plainly_excluded(
    accept: str | None, *, excluded: bool
) -> None:
    """R-5: explicitly excluded, and no ``*/*`` is present."""
    assert excludes(accept, "image/png") is excluded
