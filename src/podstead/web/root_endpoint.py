"""``GET /``: what is this server? The answer is a page for people, and JSON for programs.

The root of the server is neither a storage nor a container. Pods are below it and are not listed.
"""

from __future__ import annotations

from podstead.core.conneg import prefers_html
from podstead.core.identity import Identity
from podstead.web.pages import page_response, welcome_page
from podstead.web.request import Request
from podstead.web.response import Response, json_content_response


class RootEndpoint:
    """Describes the server itself."""

    def __init__(
        self, *, base_url: str, version: str, provider: str | None, registration_open: bool
    ) -> None:
        """``provider`` is the URL of the identity provider, if it has pages for signing in.
        ``registration_open`` is true if anyone may create a pod."""
        self._base_url = base_url
        self._version = version
        self._provider = provider
        self._registration_open = registration_open

    async def get(self, request: Request, _: Identity | None) -> Response:
        """The welcome page, or JSON that says where to create a pod and where to sign in."""
        if prefers_html(request.fields.get(b"accept")):
            page = welcome_page(
                base_url=self._base_url,
                version=self._version,
                provider=self._provider,
                registration_open=self._registration_open,
            )
            return page_response(page, method=request.method)
        facts = {"server": "Podstead"}
        if self._registration_open:
            facts["createPod"] = f"{self._base_url}/.pods"
        if self._provider is not None:
            facts["signIn"] = f"{self._provider}/idp/login"
        return json_content_response(facts, method=request.method)
