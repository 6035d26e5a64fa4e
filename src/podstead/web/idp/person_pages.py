"""What the pages of pods show of a person's account: their applications, and all about signing in.

The forms of these pages go to the addresses below ``/idp/account``, as those of the account page
do, and lead back here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podstead.core.errors import NotAuthenticated
from podstead.idp.sessions import Sessions
from podstead.web.browsers import browser_name
from podstead.web.codes import WebCodes
from podstead.web.idp.account_pages import AccountPages
from podstead.web.idp.cookies import Cookies
from podstead.web.pod_pages.account.security_views import SecurityView
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.pod_sessions import PodBrowser
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.response import HeaderField, Response


class OwnAccountPages:
    """Renders these pages for people who are signed in to an account."""

    def __init__(
        self,
        *,
        account: AccountPages,
        sessions: Sessions,
        cookies: Cookies,
        renderer: PageRenderer,
    ) -> None:
        self._account = account
        self._sessions = sessions
        self._cookies = cookies
        self._renderer = renderer

    async def apps(self, page: PageRequest) -> Response:
        """``/.pages/apps``. Raises NotAuthenticated, StorageError."""
        facts, headers = await self._facts(page)
        return self._renderer.page(page, "account/apps.html", headers=headers, **facts)

    async def welcome(self, page: PageRequest) -> Response:
        """``/.pages/welcome``. Raises NotAuthenticated, StorageError."""
        facts, headers = await self._facts(page)
        return self._renderer.page(page, "account/welcome.html", headers=headers, **facts)

    async def security(
        self, page: PageRequest, view: SecurityView, browsers: Sequence[PodBrowser]
    ) -> Response:
        """``/.pages/security``. Raises NotAuthenticated, StorageError."""
        facts, headers = await self._facts(page)
        return self._renderer.page(
            page,
            "account/security.html",
            headers=headers,
            view=view.value,
            pod_browsers=browsers,
            current_browsers=(),
            browser_name=browser_name,
            **facts,
        )

    async def _facts(self, page: PageRequest) -> tuple[dict[str, Any], list[HeaderField]]:
        owner = await self._sessions.read(self._cookies.session(page.request))
        if owner is None:
            raise NotAuthenticated(WebCodes.SIGN_IN_FIRST)
        flash = self._cookies.flash_message(page.request)
        facts = await self._account.facts(owner, changed=None if flash is None else flash.name)
        del facts["csrf_token"]  # every page has it
        facts["typed"] = "" if flash is None else flash.typed
        return facts, [] if flash is None else [self._cookies.clear_flash_message()]
