"""``GET /``: what is this server? The answer is a page for people, and JSON for programs.

The root of the server is neither a storage nor a container. Pods are below it and are not listed.
"""

from __future__ import annotations

from podstead.core.identity import Identity
from podstead.core.media_types import prefers_html
from podstead.web.browser_responses import see_other
from podstead.web.registration import INVITED, Registration
from podstead.web.request import Request
from podstead.web.response import Response, json_content_response
from podstead.web.routes import Access, Endpoint, route


class RootEndpoint:
    """Describes the server itself."""

    def __init__(
        self,
        *,
        base_url: str,
        provider: str | None,
        provider_hosts: frozenset[str],
        registration: Registration,
        page: Endpoint,
    ) -> None:
        """``provider`` is the URL of the identity provider, if it has pages for signing in, and
        ``provider_hosts`` are its hosts if it has an origin of its own. ``page`` is for people."""
        self._base_url = base_url
        self._provider = provider
        self._registration = registration
        self._provider_hosts = provider_hosts
        self._page = page

    @route("/", "GET", "HEAD", access=Access.PUBLIC)
    async def get(self, request: Request, agent: Identity | None) -> Response:
        """The first page, or JSON that says where to create a pod and where to sign in."""
        if prefers_html(request.fields.get(b"accept")):
            if request.host in self._provider_hosts:
                return see_other(f"{self._base_url}/")  # the pages of pods are there
            return await self._page(request, agent)
        facts = {"server": "Podstead"}
        if not self._registration.is_closed:
            facts["createPod"] = f"{self._base_url}/.pods"
        if self._registration.by_invitation:
            facts["registration"] = INVITED
        if self._provider is not None:
            facts["signIn"] = f"{self._provider}/idp/login"
        operator = self._registration.about
        about = {
            "operator": operator.name,
            "contact": operator.contact,
            "terms": operator.terms_url,
        }
        facts |= {name: text for name, text in about.items() if text}
        return json_content_response(facts, method=request.method)
