"""Names are in the order that browsers give them: ``Intl.Collator`` of Node.js is the oracle."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.web.pages.formats import name_sort_key
from podstead.web.pages.texts import LANGUAGES, texts_in, use_texts
from tests.support.node import NODE

_SORT = """
const [language, names] = JSON.parse(require("fs").readFileSync(0));
const collator = new Intl.Collator(language, { numeric: true });
names.sort((a, b) => collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0));
process.stdout.write(JSON.stringify(names));
"""
# Letters with and without marks, digits, and what stands in names of files.
_NAMES = st.text("aAbzZ019äÄáñÑnßsøœéЖжλΛ日本 -_.()'", min_size=1, max_size=8)


def in_browsers_order(names: list[str], language: str) -> list[str]:
    ran = subprocess.run(
        [NODE, "-e", _SORT],
        input=json.dumps([language, names]).encode(),
        check=True,
        capture_output=True,
    )
    found: list[str] = json.loads(ran.stdout)
    return found


def in_our_order(names: list[str], language: str) -> list[str]:
    use_texts(texts_in(language))
    sort_key = name_sort_key()
    return sorted(names, key=lambda name: (sort_key(name), name))


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=10, deadline=None)
@given(names=st.lists(_NAMES, min_size=50, max_size=200, unique=True))
def test_names_are_in_the_order_of_browsers(language: str, names: list[str]) -> None:
    assert in_our_order(names, language) == in_browsers_order(names, language)


def test_names_of_files_are_in_the_order_that_people_expect() -> None:
    names = ["Zebra", "page 10", "Ärger", "apple", "page 9", "Arger", "Öl", "nut", "ñu", "ozone"]
    expected = ["apple", "Arger", "Ärger", "ñu", "nut", "Öl", "ozone", "page 9", "page 10", "Zebra"]
    assert in_our_order(names, "de") == expected
    assert in_our_order(["ñu", "nz", "oso"], "es") == ["nz", "ñu", "oso"]
    assert in_our_order(["ñu", "nz", "oso"], "de") == ["ñu", "nz", "oso"]
