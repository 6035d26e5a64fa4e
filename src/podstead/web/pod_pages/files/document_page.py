"""The page about a document."""

from __future__ import annotations

from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import essence
from podstead.resources.entity_tags import last_modified_ms
from podstead.resources.outcome import Result
from podstead.resources.service import ResourceService
from podstead.wac.modes import Mode
from podstead.web.browser_responses import see_other
from podstead.web.pod_pages.addresses import files_url, raw_url
from podstead.web.pod_pages.files.names import breadcrumb, shown_name
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.response import Response


class DocumentPage:
    """Shows a document."""

    def __init__(self, *, resources: ResourceService, renderer: PageRenderer) -> None:
        self._resources = resources
        self._renderer = renderer

    async def get(self, page: PageRequest, target: ResourcePath) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        request = page.operation("HEAD", target)
        outcome = await self._resources.handle(request)
        if outcome.result is Result.MOVED and outcome.location is not None:
            return see_other(files_url(outcome.location))
        stored = outcome.metadata
        return self._renderer.page(
            page,
            "files/document.html",
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
            raw=raw_url(target),
            media_type="text/turtle" if stored is None else essence(stored.content_type),
            size_bytes=0 if stored is None else stored.size_bytes,
            modified_ms=None if stored is None else last_modified_ms(stored),
            may_write=request.grant is not None and request.grant.allows(Mode.WRITE),
            may_control=request.grant is not None and request.grant.allows(Mode.CONTROL),
        )
