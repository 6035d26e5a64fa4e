"""Why was something refused, in the language of the page?

The services say it in English, as they say it to programs. Those of their messages that people meet
on pages are listed (:mod:`podstead.web.pod_pages.refusal_texts` and
:mod:`podstead.web.pod_pages.reworded_refusals`), so that the catalogues translate them; here a
message is recognized, with the values in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from podstead.web.pod_pages.formats import number_text, size_text
from podstead.web.pod_pages.refusal_texts import REFUSALS
from podstead.web.pod_pages.reworded_refusals import REWORDED, WITH_VALUES
from podstead.web.pod_pages.texts import ENGLISH, current_texts

_MAX_CHARACTERS: Final = 4000
"""A longer message contains something long that was sent; it is shown as it is."""
_VALUE: Final = re.compile(r"%\(([a-z_]+)\)s")
_DIGITS: Final = "[0-9][0-9,]*"
_TEXT: Final = ".*?"
_NUMBERS: Final = frozenset({"number", "length"})


def _pattern(said: str) -> re.Pattern[str]:
    """What finds the values in a message: numbers are digits, anything else is text."""
    parts = _VALUE.split(said)
    written = [re.escape(part) for part in parts[::2]]
    groups = [f"(?P<{name}>{_DIGITS if _is_number(name) else _TEXT})" for name in parts[1::2]]
    return re.compile("".join(map("".join, zip(written, [*groups, ""], strict=True))), re.DOTALL)


def _is_number(name: str) -> bool:
    return name in _NUMBERS or name.endswith("_bytes")


_PATTERNS: Final = tuple((_pattern(said), shown) for said, shown in WITH_VALUES.items())


def refusal_text(error: Exception | str) -> str:
    """What a page says about an error; the message itself if it is not listed."""
    return _listed(str(error)) or str(error)


def is_translated(error: Exception | str) -> bool:
    """Whether :func:`refusal_text` is in the language of the page."""
    return current_texts().language == ENGLISH or _listed(str(error)) is not None


def _listed(message: str) -> str | None:
    if message in REFUSALS:
        return current_texts().get(message)
    if message in REWORDED:
        return current_texts().get(REWORDED[message])
    if len(message) <= _MAX_CHARACTERS:
        for pattern, shown in _PATTERNS:
            found = pattern.fullmatch(message)
            if found is not None:
                return current_texts().get(shown) % _shown_values(found.groupdict())
    return None


def _shown_values(values: Mapping[str, str]) -> Mapping[str, str]:
    return {name: _shown_value(name, value) for name, value in values.items()}


def _shown_value(name: str, value: str) -> str:
    if not _is_number(name):
        return value
    number = int(value.replace(",", ""))
    return size_text(number) if name.endswith("_bytes") else number_text(number)
