"""The page in place of rules that the person may not see, because a folder above has them."""

from __future__ import annotations

from podstead.resources.sharing.documents import RulesOutOfReach
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.pod_pages.files.names import shown_name
from podstead.web.response import Response


def out_of_reach_page(
    renderer: PageRenderer, page: PageRequest, error: RulesOutOfReach
) -> Response:
    """The page that names the folder whose rules apply to the page's resource."""
    return renderer.page(
        page,
        "sharing/out_of_reach.html",
        target=page.target,
        name=shown_name(page.target),
        folder=shown_name(error.folder),
    )
