"""Content negotiation against a plain model of RFC 9110 section 12.5.1 (R-3, R-5)."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from podstead.core.media_types import choose, excludes, parse_accept, prefers_html

TYPES = ("text/turtle", "application/ld+json", "text/html", "image/png", "application/json")
RANGES = (*TYPES, "text/*", "application/*", "image/*", "*/*", "text/n3")
WEIGHTS = st.integers(0, 1000)
MALFORMED = st.sampled_from(["", "text", "text/", "*/html", "a/b;q=7", "a/b;q", "text/html x", "@"])
OFFERED = st.lists(st.sampled_from(TYPES), unique=True)


@st.composite
def accepts(draw: st.DrawFn) -> tuple[str, list[tuple[str, float]]]:
    """A header, and the ranges with weights that it was made of."""
    wanted = draw(st.lists(st.tuples(st.sampled_from(RANGES), WEIGHTS), min_size=1, max_size=6))
    parts = []
    for media_range, thousandths in wanted:
        spelled = draw(st.sampled_from([media_range, media_range.upper()]))
        parameter = draw(st.sampled_from(["", ";a=b", ' ; profile="x,y;q=0;\\"z"', ";"]))
        blank = draw(st.sampled_from(["", " ", "\t"]))
        weight = f"{blank};{blank}q={thousandths / 1000:.3f}"
        parts.append(spelled + parameter + ("" if thousandths == 1000 else weight))
        parts.extend(draw(st.lists(MALFORMED, max_size=1)))
    return ",".join(parts), [(name, thousandths / 1000) for name, thousandths in wanted]


def covering(media_type: str) -> tuple[str, str, str]:
    """The ranges that cover a type, most specific first."""
    return media_type, media_type.partition("/")[0] + "/*", "*/*"


def modelled_weight(ranges: list[tuple[str, float]], media_type: str) -> float:
    """The most specific ranges decide, the highest of them."""
    for candidate in covering(media_type):
        weights = [weight for media_range, weight in ranges if media_range == candidate]
        if weights:
            return max(weights)
    return 0.0


@given(accepts(), st.sampled_from(TYPES))
def test_weights_are_those_of_the_model(
    accept: tuple[str, list[tuple[str, float]]], media_type: str
) -> None:
    header, ranges = accept
    assert parse_accept(header).weight(media_type) == modelled_weight(ranges, media_type)


@given(accepts(), OFFERED)
def test_the_choice_is_the_first_of_the_heaviest_that_are_named_or_else_of_all(
    accept: tuple[str, list[tuple[str, float]]], offered: list[str]
) -> None:
    header, ranges = accept
    weighed = [(modelled_weight(ranges, media_type), media_type) for media_type in offered]
    heaviest = max((weight for weight, _ in weighed), default=0.0)
    best = [name for weight, name in weighed if weight == heaviest > 0]
    named = [name for name in best if name in {media_range for media_range, _ in ranges}]
    assert choose(header, offered) == next(iter(named or best), None)


@given(accepts(), st.sampled_from(TYPES))
def test_only_an_explicit_zero_without_a_catch_all_excludes(
    accept: tuple[str, list[tuple[str, float]]], media_type: str
) -> None:
    header, ranges = accept
    mentioned = {name for name, _ in ranges} & set(covering(media_type))
    catch_all = any(name == "*/*" and weight for name, weight in ranges)
    expected = bool(mentioned) and not modelled_weight(ranges, media_type) and not catch_all
    assert excludes(header, media_type) is expected


@given(accepts())
def test_html_preferred_means_that_html_is_chosen_whatever_the_order(
    accept: tuple[str, list[tuple[str, float]]],
) -> None:
    header, _ = accept
    offered = ("application/json", "text/turtle", "application/ld+json", "text/n3", "text/html")
    if prefers_html(header):
        assert choose(header, offered) == "text/html"


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")), OFFERED)
@example('a/b;q="' * 500, list(TYPES))
@example('"\\' * 2000, list(TYPES))
@example("a/b;" + " " * 4000 + '"', list(TYPES))
@example("a/b;a=" + " " * 4000 + '"', list(TYPES))
@example(" " * 4095 + "x", list(TYPES))
def test_no_header_crashes_and_only_offered_types_are_chosen(
    accept: str, offered: list[str]
) -> None:
    assert choose(accept, offered) in (*offered, None)
    assert prefers_html(accept) in (True, False)
    assert excludes(accept, "image/png") in (True, False)
