"""``/.pages/security`` and ``/.pages/apps``: how the person signs in, and what acts for them.

Who has an account here sees everything about it. Who has signed in with the token of a pod has only
this session to end.
"""

from __future__ import annotations

from typing import Protocol

from podstead.web.pod_pages.account.security_views import SecurityView, view_of
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.response import Response


class ShownAccount(Protocol):
    """Renders the pages about an account of the provider."""

    async def apps(self, page: PageRequest) -> Response: ...

    async def security(self, page: PageRequest, view: SecurityView) -> Response: ...


class SecurityPage:
    """Leads to the page for the kind of the session."""

    def __init__(self, *, own_account: ShownAccount | None, renderer: PageRenderer) -> None:
        """``own_account`` is ``None`` if no provider is at this origin."""
        self._own_account = own_account
        self._renderer = renderer

    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, StorageError."""
        person = page.signed_in()
        if person.account_id is not None and self._own_account is not None:
            return await self._own_account.security(page, view_of(page.query_text("view")))
        return self._renderer.page(
            page, "account/session.html", signed_in_by=person.signed_in_by.value
        )

    async def apps(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, StorageError."""
        person = page.signed_in()
        if person.account_id is not None and self._own_account is not None:
            return await self._own_account.apps(page)
        return self._renderer.page(page, "account/no_apps.html")
