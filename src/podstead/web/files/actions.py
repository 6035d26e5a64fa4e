"""``/.pages/actions/<path>``: what can be done with one file or folder, for browsers in which no
scripts run; elsewhere it is a menu of the row in the list."""

from dataclasses import dataclass

from podstead.core.identifiers import is_container
from podstead.resources.outcome import Result
from podstead.resources.service import ResourceService
from podstead.wac.modes import Mode
from podstead.web import browsers, response, routes
from podstead.web.files.starred import StarredResources
from podstead.web.pages.addresses import ACTIONS, actions_url, breadcrumb, shown_name
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site


@dataclass(frozen=True, slots=True)
class ActionsPage:
    """Links to the pages that do something with a resource."""

    site: Site
    resources: ResourceService
    starred: StarredResources

    @routes.route(ACTIONS + routes.REST, "GET")
    async def get(self, page: PageRequest) -> response.Response:
        target = page.target
        request = page.operation("HEAD", target)
        outcome = await self.resources.handle(request)
        if outcome.result is Result.MOVED and outcome.location is not None:
            return browsers.see_other(actions_url(outcome.location))
        grant = request.grant
        return self.site.page(
            page,
            "files/actions.html",
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
            folder=is_container(target),
            is_starred=target in await self.starred.of(page),
            may_write=grant is not None and grant.allows(Mode.WRITE),
            may_control=grant is not None and grant.allows(Mode.CONTROL),
        )
