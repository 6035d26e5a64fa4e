"""Reads and converts RDF documents with the limits and the JSON-LD contexts of this deployment.

The package contains contexts; ``rdf/contexts/SOURCES.md`` names their origins and licences.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.config import Settings
from podstead.rdf.jsonld_contexts import Context, read_context
from podstead.rdf.limits import RdfLimits
from podstead.resources.costly_work import CostlyWork, InThreads
from podstead.resources.documents import ContextLibrary, Documents
from podstead.storage.protocol import ResourceStore


@cache
def bundled_contexts() -> Mapping[str, Context]:
    """The contexts by URL; several URLs may identify one context."""
    folder = files("podstead.rdf") / "contexts"
    index: dict[str, str] = json.loads((folder / "index.json").read_bytes())
    return MappingProxyType(
        {url: read_context((folder / name).read_bytes(), url=url) for url, name in index.items()}
    )


def build_documents(
    settings: Settings,
    *,
    store: ResourceStore,
    foreign: ForeignDocuments,
    costly: CostlyWork | None = None,
) -> Documents:
    """The reader and converter of RDF documents, with what does costly work for requesters; a
    command has none."""
    limits = RdfLimits(max_bytes=settings.max_rdf_bytes)
    contexts = ContextLibrary(
        bundled_contexts(),
        fetcher=foreign,
        allowed_origins=frozenset(settings.context_origins),
        limits=limits,
    )
    return Documents(
        base_url=settings.base_url,
        store=store,
        contexts=contexts,
        limits=limits,
        costly=costly or InThreads(bundled_contexts()),
    )
