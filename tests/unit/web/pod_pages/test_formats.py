"""Are dates, numbers and sizes written as the CLDR says, and catalogues read as gettext would?

The oracle is Babel.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
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

import podstead.web
from podstead.web.pages import formats
from podstead.web.pages.texts import LANGUAGES, compiled_catalogues, texts_in, use_texts

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
