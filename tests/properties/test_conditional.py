"""Preconditions against a plain model of RFC 9110 section 13.2.2 (P-21 to P-24)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.conditional import (
    ANY,
    Conditions,
    PreconditionResult,
    check_write,
    evaluate_read,
    parse_http_date,
    parse_tags,
)
from podstead.core.errors import BadRequest, PreconditionFailed

VERSIONS = ("aa", "bb", "a-a", "")
FORMS = ("ttl", "jld")
ONE_OF_SEVERAL_MS = 998
SECONDS = st.integers(1_600_000_000, 1_600_000_005)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Tag:
    opaque: str
    weak: bool

    def __str__(self) -> str:
        return f'{"W/" if self.weak else ""}"{self.opaque}"'


def opaque(version: str, form: str) -> str:
    return f"{version}-{form}"


tags = st.builds(
    Tag, st.builds(opaque, st.sampled_from(VERSIONS), st.sampled_from(FORMS)), st.booleans()
)
tag_lists = st.lists(tags, min_size=1, max_size=3)
wanted = st.none() | st.just(ANY) | tag_lists
Wanted = str | list[Tag] | None


@st.composite
def spelled_tags(draw: st.DrawFn, of: Wanted) -> str | None:
    """A header of tags with the blanks and empty members that lists may have."""
    if of is None or isinstance(of, str):
        return of
    comma = st.sampled_from([",", ", ", " ,\t", ", ,"])
    text = str(of[0])
    for tag in of[1:]:
        text += draw(comma) + str(tag)
    return draw(st.sampled_from(["", " ", ", "])) + text + draw(st.sampled_from(["", ","]))


def spelled_dates(unix_s: int) -> list[str]:
    """The three forms of an HTTP date (RFC 9110 section 5.6.7), by the standard library."""
    date = datetime.fromtimestamp(unix_s, UTC)
    return [
        format_datetime(date, usegmt=True),
        f"{DAYS[date.weekday()]}, {date:%d-%b-%y %H:%M:%S} GMT",
        f"{date:%a %b} {date.day:2} {date:%H:%M:%S %Y}",
    ]


@dataclass(frozen=True)
class Request:
    match: Wanted
    none_match: Wanted
    modified_since_s: int | None
    unmodified_since_s: int | None
    conditions: Conditions


@st.composite
def requests(draw: st.DrawFn) -> Request:
    match, none_match = draw(wanted), draw(wanted)
    modified_since_s, unmodified_since_s = draw(st.none() | SECONDS), draw(st.none() | SECONDS)

    def spelled(unix_s: int | None) -> str | None:
        return None if unix_s is None else draw(st.sampled_from(spelled_dates(unix_s)))

    return Request(
        match,
        none_match,
        modified_since_s,
        unmodified_since_s,
        Conditions(
            if_match=draw(spelled_tags(match)),
            if_none_match=draw(spelled_tags(none_match)),
            if_modified_since=spelled(modified_since_s),
            if_unmodified_since=spelled(unmodified_since_s),
        ),
    )


@dataclass(frozen=True)
class Target:
    """What is there: the opaque part of its tag, ``None`` for nothing, and when it changed.

    Reads compare the ``whole`` tag, writes what stands before its last dash (P-24).
    """

    tag: str | None
    modified_s: int
    whole: bool
    is_exact: bool = True
    """Whether no other state has that date."""

    def has_one_of(self, named: Wanted, *, strong: bool) -> bool:
        if self.tag is None or named is None or isinstance(named, str):
            return self.tag is not None
        return any(
            self._compared(tag.opaque) == self._compared(self.tag) and not (strong and tag.weak)
            for tag in named
        )

    @property
    def date_s(self) -> int | None:
        """The date that holds for it, if there is one."""
        return self.modified_s if self.is_exact else None

    def _compared(self, tag: str) -> str:
        return tag if self.whole else tag[: tag.rfind("-")]


def modelled(request: Request, target: Target, *, safe: bool) -> int:
    """RFC 9110 section 13.2.2, step by step; 200 stands for going on."""
    if request.match is not None:  # 1
        if not target.has_one_of(request.match, strong=True):
            return 412
    elif target.tag is not None and request.unmodified_since_s not in {None, target.date_s}:
        return 412  # 2
    if request.none_match is not None:  # 3
        excluded = target.has_one_of(request.none_match, strong=False)
        return (304 if safe else 412) if excluded else 200
    if safe and request.modified_since_s is not None:  # 4
        return 304 if target.date_s == request.modified_since_s else 200
    return 200


@given(requests(), st.sampled_from(VERSIONS), st.sampled_from(FORMS), SECONDS, st.integers(0, 999))
def test_reads_go_the_steps_of_the_model(
    request: Request, version: str, form: str, modified_s: int, further_ms: int
) -> None:
    tag = opaque(version, form)
    target = Target(tag, modified_s, whole=True, is_exact=further_ms < ONE_OF_SEVERAL_MS)
    expected = modelled(request, target, safe=True)
    try:
        verdict = evaluate_read(
            request.conditions, etag=f'"{tag}"', modified_ms=modified_s * 1000 + further_ms
        )
    except PreconditionFailed:
        assert expected == 412
    else:
        assert (
            expected
            == {PreconditionResult.PROCEED: 200, PreconditionResult.NOT_MODIFIED: 304}[verdict]
        )


@given(
    requests(), st.none() | st.sampled_from(VERSIONS), st.sampled_from(FORMS), SECONDS,
    st.integers(0, 999),
)  # fmt: skip
def test_writes_go_the_steps_of_the_model(
    request: Request, version: str | None, form: str, modified_s: int, further_ms: int
) -> None:
    tag = None if version is None else opaque(version, form)
    target = Target(tag, modified_s, whole=False, is_exact=further_ms < ONE_OF_SEVERAL_MS)
    expected = modelled(request, target, safe=False)
    modified_ms = None if version is None else modified_s * 1000 + further_ms
    try:
        check_write(request.conditions, version=version, modified_ms=modified_ms)
    except PreconditionFailed:
        assert expected == 412
    else:
        assert expected == 200


texts = st.text(max_size=30) | st.text('"W/,* \t-ab!\xff\\', max_size=20)


@given(texts)
def test_any_text_is_a_list_of_tags_or_nothing(text: str) -> None:
    found = parse_tags(text)
    if isinstance(found, tuple):
        assert found
        again = parse_tags(", ".join(str(Tag(tag.opaque, tag.weak)) for tag in found))
        assert again == found
    else:
        assert found is None or text.strip() == ANY


@given(texts, st.none() | st.sampled_from(VERSIONS))
def test_a_write_whose_condition_cannot_be_read_does_not_happen(
    text: str, version: str | None
) -> None:
    for conditions in (Conditions(if_match=text), Conditions(if_none_match=text)):
        if parse_tags(text) is None:
            with pytest.raises(BadRequest):
                check_write(conditions, version=version, modified_ms=None)


@given(st.integers(0, 4_000_000_000))
def test_dates_are_read_as_they_were_written(unix_s: int) -> None:
    fixed, _, ascii_time = spelled_dates(unix_s)
    assert parse_http_date(fixed) == parse_http_date(ascii_time) == unix_s


@given(st.text(max_size=40) | st.text("0123456789 :,+-GMTSunMonJanFeb/", max_size=40))
def test_any_text_is_a_date_or_nothing(text: str) -> None:
    found = parse_http_date(text)
    assert found is None or isinstance(found, int)
