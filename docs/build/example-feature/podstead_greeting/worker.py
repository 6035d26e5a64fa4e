"""The greeting as JSON at ``/.greeting``, and as a page."""

from __future__ import annotations

from podstead.app.services import Services
from podstead.core.identity import Identity
from podstead.features import WorkerFeature
from podstead.web.pages.request import PageRequest
from podstead.web.request import Request
from podstead.web.response import Response, json_content_response
from podstead.web.routes import Access, plain_routes, route

PAGE = "/.pages/greeting"


class GreetingInWorker(WorkerFeature):
    """Answers in one worker."""

    def __init__(self, services: Services, text: str) -> None:
        self._services = services
        self._text = text
        self.routes = plain_routes(self)
        self.pages = (GreetingPage(self._services, text),)
        self.navigation = ((PAGE, "person", "Greeting"),)

    @route("/.greeting", "GET", access=Access.PUBLIC)
    async def get(self, request: Request, _agent: Identity | None) -> Response:
        """The greeting for programs."""
        return json_content_response({"greeting": self._text}, method=request.method)


class GreetingPage:
    """The greeting for the person who is signed in."""

    def __init__(self, services: Services, text: str) -> None:
        self._services = services
        self._text = text

    @route(PAGE, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page; people who have not signed in do so first."""
        renderer, name = self._services.pages.site.renderer, page.signed_in().name
        return renderer.page(page, "podstead_greeting/greeting.html", text=self._text, name=name)
