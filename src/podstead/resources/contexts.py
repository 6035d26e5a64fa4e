"""The JSON-LD contexts for parsing documents: the bundled ones, and those of origins that the
operator has listed; no others are ever fetched (R-11, A-187)."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from podstead.core.errors import BadRequest, OutboundError, RemoteUnavailable
from podstead.outbound.foreign_documents import DocumentFetcher, Purpose
from podstead.rdf.errors import UnavailableContext, UnknownContext
from podstead.rdf.jsonld_contexts import Context, read_context
from podstead.rdf.limits import RdfLimits


class ContextLibrary:
    """The bundled contexts, and access to those of allowed origins."""

    def __init__(
        self,
        bundled: Mapping[str, Context],
        *,
        fetcher: DocumentFetcher,
        allowed_origins: frozenset[str],
        limits: RdfLimits,
    ) -> None:
        self.bundled = bundled
        self._fetcher = fetcher
        self._allowed_origins = allowed_origins
        self._limits = limits

    async def further(self, unknown: UnknownContext) -> Context:
        """Fetch the context that parsing a document needs, if the operator has listed its origin.

        Raises the given UnknownContext if the origin is not listed or does not provide the context,
        and UnavailableContext if the context is temporarily unavailable.
        """
        parts = urlsplit(unknown.url)
        if f"{parts.scheme}://{parts.netloc}".lower() not in self._allowed_origins:
            raise unknown
        try:
            fetched = await self._fetcher.fetch(unknown.url, Purpose.CONTEXT)
            return read_context(fetched.content, url=unknown.url, limits=self._limits)
        except RemoteUnavailable as error:
            raise UnavailableContext(unknown.url, error.retry_after_s) from error
        except (OutboundError, BadRequest) as error:
            raise unknown from error
