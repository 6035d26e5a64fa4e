"""``/.pages/files/<path>``: the page about a resource."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.errors import AccessDenied, NotAuthenticated, NotFound
from podstead.core.identifiers import ROOT, ResourcePath, description_of, is_container
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import SHARED, files_url
from podstead.web.pages.request import PageRequest
from podstead.web.pod_pages.files.container_page import ContainerPage
from podstead.web.pod_pages.files.document_page import DocumentPage
from podstead.web.response import Response
from podstead.web.routes import REST, route


@dataclass(frozen=True, slots=True)
class FilesPage:
    """Leads to the page for the kind of the resource."""

    containers: ContainerPage
    documents: DocumentPage

    async def _home(self, page: PageRequest) -> Response:
        """Leads to the person's pod. Raises NotAuthenticated, NotFound."""
        if not page.signed_in().pods:
            return see_other(SHARED)  # a visitor, who has an identity elsewhere
        return see_other(files_url(_first_pod(page)))

    @route(addresses.FILES + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        target = page.target
        if target == ROOT:
            return await self._home(page)
        if is_container(target):
            try:
                return await self.containers.get(page, target)
            except (NotAuthenticated, AccessDenied):
                # Somebody who may not know what is in the pod may still read its profile.
                return await self.documents.get(page, description_of(target))
        return await self.documents.get(page, target)


def _first_pod(page: PageRequest) -> ResourcePath:
    """The root of the person's pod. Raises NotAuthenticated, NotFound."""
    pods = page.signed_in().pods
    if not pods:
        raise NotFound(WebCodes.NO_POD)
    return pods[0]
