"""Which JSON-LD contexts does the package contain? Read once from its files.

``rdf/contexts/SOURCES.md`` names their origins and licences.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from podstead.rdf.jsonld_contexts import Context, read_context


@cache
def bundled_contexts() -> Mapping[str, Context]:
    """The contexts by URL; several URLs may identify one context."""
    folder = files("podstead.rdf") / "contexts"
    index: dict[str, str] = json.loads((folder / "index.json").read_bytes())
    return MappingProxyType(
        {url: read_context((folder / name).read_bytes(), url=url) for url, name in index.items()}
    )
