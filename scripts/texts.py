"""Collects the texts of the pages and merges them into the catalogues of each language.

``--check`` changes nothing, and fails if a catalogue is not up to date or lacks a translation. Each
part of the pages has catalogues of its own, named after its folder, so that two people who work on
different parts rarely change the same file. Those of features are in the folders of the features.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract, extract_python
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from podstead.core.codes import ErrorCode
from tests.support.features import LEFT_OUT

WEB = Path(__file__).resolve().parent.parent / "src/podstead/web"
FEATURES = WEB.parent / "features"
LANGUAGES = ("de", "es", "nl")
SHARED = "pods"
COMMON = "pages"
"""The folder of what all pages have in common."""
_KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}
_HEADER = (
    'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n'
    '"Content-Type: text/plain; charset=utf-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
)
_PLACEHOLDER = re.compile(r"%\([a-z_]+\)[sd]")

Message = str | tuple[str, ...]


def _sources() -> Iterator[tuple[Path, Path, Any]]:
    """Each file with the folder that its part is named in, and how texts are found in it."""
    templates = WEB / "templates"
    for folder in (WEB, FEATURES):
        for path in sorted(folder.rglob("*.py")):
            yield path, folder, extract_python
    for path in sorted(FEATURES.rglob("*.html")):
        yield path, FEATURES, babel_extract
    for path in sorted(templates.rglob("*.html")):
        pods = templates / "pods"
        yield path, pods if path.is_relative_to(pods) else templates, babel_extract


def error_codes() -> Iterator[ErrorCode]:
    """Every code of an error."""
    for path in sorted(WEB.parent.rglob("*.py")):
        if "ErrorCode)" in path.read_text("utf-8"):
            import_module(".".join(path.relative_to(WEB.parent.parent).with_suffix("").parts))
    for codes in ErrorCode.__subclasses__():
        yield from codes


def collect() -> dict[str, set[Message]]:
    """The texts of each part; a text of several parts belongs to the shared one."""
    parts: dict[Message, set[str]] = defaultdict(set)
    for path, top, method in _sources():
        inside = path.relative_to(top).parts
        part = inside[0] if len(inside) > 1 and inside[0] != COMMON else SHARED
        with path.open("rb") as file:
            for _, message, _, _ in extract(method, file, keywords=_KEYWORDS):
                parts[message if isinstance(message, str) else tuple(message)].add(part)
    for code in error_codes():
        package = type(code).__module__.split(".")
        parts[code.text].add(package[2] if package[1] == "features" else SHARED)
    collected: dict[str, set[Message]] = defaultdict(set)
    for message, where in parts.items():
        collected[next(iter(where)) if len(where) == 1 else SHARED].add(message)
    return collected


def translations(language: str) -> dict[str, Message]:
    """What the catalogues of a language have now, by the English text."""
    known: dict[str, Message] = {}
    for path in _catalogues(language):
        for message in read_po(BytesIO(path.read_bytes()), locale=language):
            if message.id and any(message.string or ()):
                translated: Any = message.string
                known[_key(message.id)] = translated
    return known


def _catalogues(language: str) -> list[Path]:
    return sorted(WEB.parent.glob(f"**/locales/{language}/LC_MESSAGES/*.po"))


def _catalogue(part: str, language: str) -> Path:
    """The file with the translations of a part."""
    owner = FEATURES / part if (FEATURES / part).is_dir() else WEB
    return owner / "locales" / language / "LC_MESSAGES" / f"{part}.po"


def _key(message: Message | list[str]) -> str:
    return message if isinstance(message, str) else message[0]


def merged(language: str, messages: set[Message], known: Mapping[str, Message]) -> bytes:
    """A catalogue with these texts and with what is known of their translations."""
    catalog = Catalog(locale=language)
    for message in sorted(messages, key=_key):
        translated: Any = known.get(_key(message))
        if translated is None:
            translated = "" if isinstance(message, str) else ("", "")
        catalog.add(message, translated)
    written = BytesIO()
    write_po(written, catalog, omit_header=True, no_location=True, width=100)
    return _HEADER.format(language=language).encode() + written.getvalue().strip() + b"\n"


def problems(language: str, messages: set[Message], known: Mapping[str, Message]) -> Iterator[str]:
    """What is wrong with the translations of these texts."""
    for message in sorted(messages, key=_key):
        translated = known.get(_key(message))
        if translated is None or not all(
            [translated] if isinstance(translated, str) else translated
        ):
            yield f"{language}: no translation of {_key(message)!r}"
            continue
        forms = [translated] if isinstance(translated, str) else translated
        wanted = set(_PLACEHOLDER.findall(message if isinstance(message, str) else message[-1]))
        if any(set(_PLACEHOLDER.findall(form)) != wanted for form in forms[-1:]):
            yield f"{language}: other placeholders than in {_key(message)!r}"


def main() -> int:
    """The exit code: 1 if a catalogue needs work."""
    check = "--check" in sys.argv[1:]
    collected = collect()
    found: list[str] = []
    stale: list[Path] = []
    for language in LANGUAGES:
        known = translations(language)
        wanted = {_catalogue(part, language): texts for part, texts in collected.items()}
        for path, texts in sorted(wanted.items()):
            found += problems(language, texts, known)
            content = merged(language, texts, known)
            if not path.is_file() or path.read_bytes() != content:
                if check:
                    stale.append(path)
                else:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
        for path in set(_catalogues(language)) - set(wanted):
            if check:
                stale.append(path)
            else:
                path.unlink()
    if not LEFT_OUT:  # without a feature, some texts have their place elsewhere, or nowhere
        found += [f"{path.relative_to(WEB.parent)}: run `make texts`" for path in stale]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
