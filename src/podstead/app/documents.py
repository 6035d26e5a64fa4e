"""How are RDF documents read in this deployment? With its limits and its JSON-LD contexts."""

from __future__ import annotations

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.config import Settings
from podstead.rdf.limits import RdfLimits
from podstead.resources.costly_work import CostlyWork, InThreads
from podstead.resources.documents import ContextLibrary, Documents
from podstead.storage.protocol import ResourceStore


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
