"""Are dates, numbers and sizes written as the CLDR says, and catalogues read as gettext would?

The oracle is Babel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path

import pytest
from babel import Locale
from babel.dates import format_date, format_time, get_datetime_format
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.units import format_unit
from hypothesis import given
from hypothesis import strategies as st

import podstead
import podstead.web
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
from podstead.core.identifiers import ResourcePath, encode_segment
from podstead.idp.passwords import check_password
from podstead.idp.records import check_email
from podstead.pods.names import check_name
from podstead.rdf.errors import MalformedRdf, UnavailableContext, UnknownContext
from podstead.resources.codes import ResourceCodes
from podstead.resources.sharing.documents import Inheritance
from podstead.storage.records import Metadata, ResourceKind, Version
from podstead.wac.modes import NO_MODES, Modes
from podstead.wac.sharing.access import AccessEntry, Scope
from podstead.wac.sharing.rules import ROLE_MODES, Grantee, GranteeKind, Role, agent
from podstead.web.codes import WebCodes
from podstead.web.files.members import Member, Members, Order, Sorting, in_order
from podstead.web.forms import FormSubmission
from podstead.web.pages import formats
from podstead.web.pages.addresses import shown_name
from podstead.web.pages.formats import name_sort_key
from podstead.web.pages.rendering import is_translated, refusal_text
from podstead.web.pages.texts import LANGUAGES, compiled_catalogues, texts_in, use_texts
from podstead.web.sharing.views import Names, WantedChange, read_change
from scripts.texts import error_codes

LOCALES = Path(podstead.web.__file__).with_name("locales")
_UNITS = ("kilobyte", "megabyte", "gigabyte", "terabyte")

languages = st.sampled_from(sorted(LANGUAGES))


def spaced(text: str) -> str:
    """The text with ordinary spaces."""
    return re.sub(r"\s", " ", text)


@given(languages, st.integers(0, 253_402_300_799))
def test_dates_and_times_are_those_of_the_cldr(language: str, unix_s: int) -> None:
    use_texts(texts_in(language))
    moment = datetime.fromtimestamp(unix_s, UTC)
    date = format_date(moment, "medium", locale=language)
    time = format_time(moment, "short", locale=language)
    joined = str(get_datetime_format("medium", locale=language)).replace("'", "")
    unix_ms = unix_s * 1000
    assert formats.date_text(unix_ms) == date
    assert formats.moment_text(unix_ms) == joined.format(time, date)


@given(
    languages,
    st.one_of(st.integers(-(10**15), 10**15), st.decimals(-(10**6), 10**6, places=5).map(float)),
)
def test_numbers_are_those_of_the_cldr(language: str, number: float) -> None:
    use_texts(texts_in(language))
    assert formats.number_text(number) == format_decimal(number, locale=language)


@given(languages, st.integers(1000, 10**17))
def test_sizes_are_those_of_the_cldr(language: str, size_bytes: int) -> None:
    use_texts(texts_in(language))
    value, unit = size_bytes / 1000, 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    # The plural form: Babel has “1 Mbyte” for the singular of this one unit in German.
    many = format_unit(2, f"digital-{_UNITS[unit]}", "short", locale=language)
    number = format_decimal(round(value, 1), locale=language)
    assert formats.size_text(size_bytes) == spaced(many).replace("2", number, 1)


def test_every_language_has_months_where_its_dates_name_them() -> None:
    for language in LANGUAGES:
        names = Locale.parse(language).months["format"]["abbreviated"]
        months = formats._FORMATS[language].months
        assert months in {(), tuple(names[number] for number in range(1, 13))}


@pytest.mark.parametrize("path", sorted(LOCALES.rglob("*.po")), ids=lambda path: str(path)[-40:])
def test_catalogues_are_read_as_babel_reads_them(path: Path) -> None:
    read = GNUTranslations(BytesIO(compiled_catalogues(path.read_text("utf-8"))))
    for message in read_po(BytesIO(path.read_bytes())):
        if isinstance(message.id, str):
            assert not message.id or read.gettext(message.id) == message.string
        else:
            singular, plural = message.id
            forms = tuple(read.ngettext(singular, plural, number) for number in (1, 2))
            assert forms == message.string


def test_escapes_and_texts_of_several_lines_are_read() -> None:
    content = r"""
# A remark
msgid ""
msgstr "Plural-Forms: nplurals=2; plural=(n != 1);\n"

#, python-format
msgid ""
"A \"quoted\" text\n"
"of two lines\\\t"
msgstr ""
"Ein \"zitierter\" Text\n"
"von zwei Zeilen\\\t"

msgid "%(num)s day"
msgid_plural "%(num)s days"
msgstr[0] "%(num)s Tag"
msgstr[1] "%(num)s Tage"

msgid "untranslated"
msgstr ""
"""
    read = GNUTranslations(BytesIO(compiled_catalogues(content)))
    assert read.gettext('A "quoted" text\nof two lines\\\t') == (
        'Ein "zitierter" Text\nvon zwei Zeilen\\\t'
    )
    forms = [read.ngettext("%(num)s day", "%(num)s days", number) for number in (0, 1, 2)]
    assert forms == ["%(num)s Tage", "%(num)s Tag", "%(num)s Tage"]
    assert read.gettext("untranslated") == "untranslated"


# --- The order of members, also of very many ---------------------------------------------------


def member(text: str, *, folder: bool = False, size: int = 1, changed: int = 0) -> Member:
    path = ResourcePath(f"/pod/{encode_segment(text.encode())}{'/' if folder else ''}")
    metadata = Metadata(
        path=path,
        kind=ResourceKind.CONTAINER if folder else ResourceKind.DOCUMENT,
        version=Version("0" * 16),
        content_type="text/plain",
        size_bytes=size,
        modified_ms=changed,
        created_ms=0,
    )
    name = shown_name(path)
    return Member(name, name_sort_key()(name), metadata)


def names(members: list[Member], sorting: str) -> list[str]:
    return [each.name for each in in_order(members, Sorting.of(sorting))]


def test_numbers_in_names_are_ordered_by_their_value() -> None:
    members = [member(name) for name in ("b10", "b9", "B1", "a", "b", "b9a", "10", "9")]
    assert names(members, "name") == ["9", "10", "a", "b", "B1", "b9", "b9a", "b10"]


def test_equal_members_are_in_the_order_of_their_names() -> None:
    members = [member("c", size=2), member("b", size=1), member("a", size=2)]
    assert names(members, "-size") == ["a", "c", "b"]
    assert names(members, "size") == ["b", "a", "c"]


@given(
    st.lists(st.text(min_size=1, max_size=6).filter(lambda name: name not in {".", ".."})),
    st.sampled_from([*Order]),
    st.booleans(),
)
def test_sorting_loses_nothing_and_puts_folders_first(
    texts: list[str], order: Order, descending: bool
) -> None:
    members = [
        member(text.encode(errors="replace").decode(), folder=number % 3 == 0)
        for number, text in enumerate(texts)
    ]
    found = in_order(members, Sorting(order, descending))
    assert sorted(map(id, found)) == sorted(map(id, members))
    kinds = [each.is_container for each in found]
    assert kinds == sorted(kinds, reverse=True)


def test_a_click_on_the_same_column_turns_the_order_around() -> None:
    assert Sorting().by(Order.NAME) == Sorting(Order.NAME, descending=True)
    assert Sorting().by(Order.CHANGED) == Sorting(Order.CHANGED, descending=True)
    assert Sorting.of("-size").text == "-size"
    assert Sorting.of("<script>") == Sorting()


def test_ten_thousand_members_are_sorted_once_for_all_their_parts() -> None:
    container = member("folder", folder=True).metadata
    members = Members(container, [member(f"file {number}") for number in range(10_000)])
    first = members.sorted(Sorting())
    assert members.sorted(Sorting()) is first
    assert [each.name for each in first[:3]] == ["file 0", "file 1", "file 2"]
    assert len(members.matching("FILE 999", Sorting())) == 11


# --- What pages say about errors, in their language --------------------------------------------


_PARAMETER = re.compile(r"%\(([a-z_]+)\)s")
_CODE = re.compile(r"\b([A-Z][A-Za-z]+Codes)\.([A-Z][A-Z0-9_]+)\b")


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
    """Each call that makes an error with a code among its arguments; it is ``class.name``."""
    for source in sources():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) != "add_refusals":
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


# --- What the forms of the sharing page mean, and that everything has words --------------------


BASE = "https://pods.example"
FOLDER, DOCUMENT = ResourcePath("/alice/c/"), ResourcePath("/alice/doc")
BOB = agent("https://bob.example/#me")
EDIT = ROLE_MODES[Role.EDIT]


@pytest.mark.parametrize(
    ("was", "scope", "here", "inside"),
    [
        (None, Scope.BOTH, EDIT, EDIT),
        (None, Scope.THIS, EDIT, None),
        (None, Scope.INSIDE, None, EDIT),
        (Scope.BOTH, Scope.THIS, EDIT, NO_MODES),
        (Scope.BOTH, Scope.INSIDE, NO_MODES, EDIT),
        (Scope.THIS, Scope.INSIDE, NO_MODES, EDIT),
        (Scope.INSIDE, Scope.BOTH, EDIT, EDIT),
    ],
)
def test_a_role_moves_to_where_the_form_says(
    was: Scope | None, scope: Scope, here: Modes | None, inside: Modes | None
) -> None:
    wanted = WantedChange("set", BOB, Role.EDIT, scope, was)
    (change,) = wanted.edit(FOLDER).changes
    assert (change.here, change.inside) == (here, inside)


@pytest.mark.parametrize(
    ("was", "here", "inside"),
    [
        (Scope.BOTH, NO_MODES, NO_MODES),
        (Scope.THIS, NO_MODES, None),
        (Scope.INSIDE, None, NO_MODES),
    ],
)
def test_an_entry_is_removed_where_it_is(
    was: Scope, here: Modes | None, inside: Modes | None
) -> None:
    """Whatever choice the form has for the place."""
    for scope in Scope:
        (change,) = WantedChange("remove", BOB, Role.EDIT, scope, was).edit(FOLDER).changes
        assert (change.here, change.inside) == (here, inside)


def test_a_document_has_nothing_inside() -> None:
    for action, modes in (("set", EDIT), ("remove", NO_MODES)):
        wanted = WantedChange(action, BOB, Role.EDIT, Scope.BOTH, Scope.BOTH)
        (change,) = wanted.edit(DOCUMENT).changes
        assert (change.here, change.inside) == (modes, None)


def test_inheritance_is_changed_alone() -> None:
    assert WantedChange("stop").edit(FOLDER).inheritance is Inheritance.STOP
    assert WantedChange("resume").edit(FOLDER).inheritance is Inheritance.RESUME


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"change": "destroy"},
        {"change": "set", "role": "owner"},
        {"change": "set", "role": "other"},
        {"change": "set", "scope": "everywhere"},
        {"change": "set", "was": "x"},
    ],
)
def test_other_forms_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        read_change(FormSubmission(fields), BOB)


def test_a_change_survives_its_form() -> None:
    """The form of the preview saves what was previewed."""
    wanted = WantedChange("set", BOB, Role.ADD, Scope.INSIDE, Scope.THIS, "/alice/inbox/1")
    sent: dict[str, object] = dict(wanted.fields())
    assert read_change(FormSubmission(sent), BOB) == wanted


def test_there_are_words_for_every_entry() -> None:
    names = Names(BASE)
    shown = set()
    for kind in GranteeKind:
        iri = "" if kind in (GranteeKind.EVERYONE, GranteeKind.AUTHENTICATED) else BOB.iri
        for modes in (*ROLE_MODES.values(), frozenset({*NO_MODES, *list(EDIT)[:1]})):
            for folder in (None, FOLDER):
                entry = AccessEntry(Grantee(kind, iri), modes, Scope.BOTH, folder)
                shown.add(names.sentence(entry))
    assert "%" not in "".join(shown)
    assert len(shown) >= 4 * len(ROLE_MODES) * 2


HOST = BASE.partition("://")[2]


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        (f"{BASE}/alice/#me", "alice"),
        (f"{BASE}/al%20ice/#me", "al ice"),
        (f"{BASE}/bob/alice/#me", f"{HOST}/bob/alice"),
        (f"{BASE}/alice/#you", f"{HOST}/alice/#you"),
        (f"{BASE}/alice#me", f"{HOST}/alice#me"),
        ("https://other.example/alice/#me", "other.example/alice"),
        ("https://other.example/profile/card#me", "other.example"),
        ("https://alice/#me", "alice/#me"),
        ("https://alice/profile/card#me", "alice/profile/card#me"),
        (f"did:nostr:{'ab' * 32}", "did:nostr:abababababab…"),
        ("did:nostr:ab", "did:nostr:ab"),
    ],
)
def test_only_owners_of_pods_here_are_called_by_the_name_of_a_pod(iri: str, name: str) -> None:
    """Nobody can be called like somebody else."""
    assert Names(BASE).iri(iri) == name
