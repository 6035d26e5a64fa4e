"""The order of names as the readers of a language expect it: the Unicode Collation Algorithm.

``Ärger`` stands beside ``Arger``, case matters last, and numbers count by their value: ``page 9``
comes before ``page 10``. The rules of each language are those of the CLDR, by ICU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import icu

from podstead.web.pod_pages.texts import current_texts

SortKey = Callable[[str], bytes]


def name_sort_key() -> SortKey:
    """The sort key of names in the language of the current request."""
    return _sort_key(current_texts().language)


@cache
def _sort_key(language: str) -> SortKey:
    collator = icu.Collator.createInstance(icu.Locale(language))
    collator.setAttribute(icu.UCollAttribute.NUMERIC_COLLATION, icu.UCollAttributeValue.ON)
    sort_key: SortKey = collator.getSortKey
    return sort_key
