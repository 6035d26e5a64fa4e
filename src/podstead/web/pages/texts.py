"""The texts of the pages in each language, found by the standard library's gettext.

Texts stand in the code and in the templates in English; ``_()`` and ``{% trans %}`` mark them.
The catalogues (PO files) have the translations; the package contains them as they are, and they are
compiled when they are first used. Each part of the pages has catalogues of its own, named after its
folder; those of features are in their packages.
"""

import re
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, lru_cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO
from json import loads
from struct import pack
from typing import Final

from markupsafe import Markup

from podstead.features import features

_FIELD: Final = re.compile(
    r'^(msgid|msgid_plural|msgstr|msgstr\[\d\])((?:\s*"(?:[^"\\\n]|\\.)*"[ \t]*$)+)', re.MULTILINE
)
_QUOTED: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_MO_MAGIC: Final = 0x950412DE
_MO_HEADER_BYTES: Final = 28


def compiled_catalogues(content: str) -> bytes:
    """PO files, one after the other, as one MO file."""
    messages = dict(_messages(content))
    texts = [text.encode() + b"\0" for text in (*messages.keys(), *messages.values())]
    second = _MO_HEADER_BYTES + 8 * len(messages)
    position = second + 8 * len(messages)
    numbers = [_MO_MAGIC, 0, len(messages), _MO_HEADER_BYTES, second, 0, 0]
    for text in texts:
        numbers += len(text) - 1, position
        position += len(text)
    return pack(f"<{len(numbers)}I", *numbers) + b"".join(texts)


def _messages(content: str) -> Iterator[tuple[str, str]]:
    """The translated messages as MO files have them: a NUL separates the plural forms. The
    translation of the empty text is the header."""
    text: str | None = None
    forms: list[str] = []
    for name, quoted in [*_FIELD.findall(content), ("msgid", "")]:
        if name == "msgid_plural":
            text = f"{text}\0{_unquoted(quoted)}"
        elif name != "msgid":
            forms.append(_unquoted(quoted))
        else:
            if text is not None and all(forms):
                yield text, "\0".join(forms)
            text, forms = _unquoted(quoted), []


def _unquoted(quoted: str) -> str:
    text = "".join(_QUOTED.findall(quoted))
    return loads(f'"{text}"') if "\\" in text else text


ENGLISH: Final = "en"
LANGUAGES: Final = {ENGLISH: "English", "de": "Deutsch", "es": "Español", "nl": "Nederlands"}
"""The languages of the pages and their own names, in the order in which the choice lists them."""

_MAX_ACCEPT_LANGUAGE_CHARACTERS: Final = 500


def N_(message: str) -> str:  # noqa: N802 - gettext's own name, by which the texts are found
    """Mark a text that is translated later."""
    return message


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of the pages in one language."""

    language: str
    translations: NullTranslations = field(default_factory=NullTranslations)
    _markup: dict[str, Markup] = field(default_factory=dict)

    def get(self, message: str) -> str:
        """The translation of a text; the English text if there is none."""
        return self.translations.gettext(message) if message else ""  # not the header

    def markup(self, message: str) -> Markup:
        """The translation of a text, for a template: texts are ours, and contain no markup of
        others."""
        known = self._markup.get(message)
        if known is None:
            known = self._markup[message] = Markup(self.get(message))  # noqa: S704
        return known

    def get_plural(self, singular: str, plural: str, number: int) -> str:
        """The translation of a text that depends on a number."""
        return self.translations.ngettext(singular, plural, number)


_IN_ENGLISH: Final = Texts(ENGLISH)
_current: ContextVar[Texts | None] = ContextVar("texts", default=None)


def current_texts() -> Texts:
    """The texts of the page that is being answered."""
    return _current.get() or _IN_ENGLISH


def use_texts(texts: Texts) -> None:
    """Use these texts for the rest of the current request."""
    _current.set(texts)


def _(message: str, **values: object) -> str:
    """The text in the language of the current request; ``%(name)s`` in it stands for a value."""
    translated = current_texts().get(message)
    return translated % values if values else translated


def ngettext(singular: str, plural: str, number: int) -> str:
    """The text for a number in the language of the current request."""
    return current_texts().get_plural(singular, plural, number)


@cache
def texts_in(language: str) -> Texts:
    """The texts in one of the languages, read from the package once."""
    if language == ENGLISH:
        return _IN_ENGLISH
    packages = ["podstead.web", *(type(each).__module__ for each in features())]
    folders = [files(each) / "locales" / language / "LC_MESSAGES" for each in packages]
    catalogues = "\n".join(
        file.read_text("utf-8")
        for folder in folders
        if folder.is_dir()
        for file in folder.iterdir()
    )
    return Texts(language, GNUTranslations(BytesIO(compiled_catalogues(catalogues))))


def load_texts() -> None:
    """Read the texts of all languages from the package."""
    for language in LANGUAGES:
        texts_in(language)


@lru_cache(maxsize=256)
def preferred_language(accept_language: str | None) -> str:
    """The language that an ``Accept-Language`` header prefers (RFC 9110 section 12.5.4)."""
    if accept_language is None or len(accept_language) > _MAX_ACCEPT_LANGUAGE_CHARACTERS:
        return ENGLISH
    weighed: dict[str, float] = {}
    for part in accept_language.lower().split(","):
        tag, _semicolon, parameter = part.partition(";")
        language = tag.strip().partition("-")[0]
        weight = _weight(parameter.strip())
        if language in LANGUAGES and weight > weighed.get(language, 0):
            weighed[language] = weight
    return max(weighed, key=weighed.__getitem__, default=ENGLISH)


def _weight(parameter: str) -> float:
    if not parameter:
        return 1.0
    try:
        return float(parameter.removeprefix("q="))
    except ValueError:
        return 0.0
