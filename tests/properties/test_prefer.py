"""What is written as a Prefer header is read so, and no header does harm (RFC 7240)."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from podstead.core.header_fields import NO_PREFERENCES, Preferences, Return, parse_prefer

LDP = "http://www.w3.org/ns/ldp#Prefer"
PARTS = [f"{LDP}MinimalContainer", f"{LDP}Containment", f"{LDP}Membership"]

spaces = st.text(" \t", max_size=2)
words = st.text("abcXYZ019-._~", min_size=1, max_size=8)
quoted = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=12).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)


@st.composite
def parameters(draw: st.DrawFn, name: str, value: str | None) -> str:
    """``name`` or ``name=value``, with room around as the grammar allows it."""
    name = draw(st.sampled_from([name, name.upper(), name.title()]))
    if value is None:
        return name
    return f"{name}{draw(spaces)}={draw(spaces)}{value}"


others = words.filter(lambda word: word.lower() not in ("return", "include", "omit"))
ignored = st.builds(
    lambda name, more: ";".join([name, *more]),
    others,
    st.lists(st.builds("{}={}".format, words, words | quoted), max_size=2),
)


@st.composite
def headers(draw: st.DrawFn) -> tuple[str, Preferences]:
    """A well-formed header, and what it says."""
    include = draw(st.lists(st.sampled_from(PARTS), unique=True))
    omit = draw(st.lists(st.sampled_from(PARTS), unique=True))
    given_parameters = [draw(parameters("return", "representation"))]
    for name, parts in (("include", include), ("omit", omit)):
        if parts:
            given_parameters.append(draw(parameters(name, f'"{" ".join(parts)}"')))
    given_parameters += draw(st.lists(others, max_size=2))
    separator = draw(spaces) + ";" + draw(spaces)
    members = [separator.join(given_parameters), *draw(st.lists(ignored, max_size=3))]
    between = draw(spaces) + "," + draw(spaces)
    expected = Preferences(Return.REPRESENTATION, frozenset(include), frozenset(omit))
    return between.join(draw(st.permutations(members))), expected


@given(headers())
def test_what_is_written_is_read(header: tuple[str, Preferences]) -> None:
    written, expected = header
    assert parse_prefer(written) == expected


@given(st.text() | st.text('return=minimal,;"\\ \t', max_size=60))
@example('a;b="' * 800)
@example('"' * 4095)
@example("return=" + " " * 4000 + "!")
@example("return" + ";" * 4000 + '"')
@example("return" + "; " * 2000 + "=")
def test_no_header_crashes_the_reader(header: str) -> None:
    preferences = parse_prefer(header)
    assert preferences.returned is not None or preferences == NO_PREFERENCES


@given(st.text(max_size=60), st.text(st.characters(exclude_characters='"'), max_size=60))
def test_what_comes_behind_changes_no_wish_but_one_of_the_same_name(
    header: str, further: str
) -> None:
    if '"' not in header and "return" not in further.lower():
        assert parse_prefer(f"{header},{further}") == parse_prefer(header)
