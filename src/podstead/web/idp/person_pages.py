"""What the pages of pods show of a person's account: their applications, and all about signing in.

The forms of these pages go to the addresses below ``/idp/account``, as those of the account page
do, and lead back here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podstead.web.browsers import browser_name
from podstead.web.idp.account_pages import AccountPages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pod_pages.account.security_views import SecurityView
from podstead.web.pod_pages.pod_sessions import PodBrowser
from podstead.web.response import Response


@dataclass(frozen=True, slots=True)
class OwnAccountPages:
    """Renders these pages for people who are signed in to an account."""

    site: Site
    account: AccountPages

    async def apps(self, page: PageRequest) -> Response:
        """``/.pages/apps``. Raises NotAuthenticated, StorageError."""
        facts = await self._facts(page)
        return self.site.page(page, "account/apps.html", **facts)

    async def welcome(self, page: PageRequest) -> Response:
        """``/.pages/welcome``. Raises NotAuthenticated, StorageError."""
        facts = await self._facts(page)
        return self.site.page(page, "account/welcome.html", **facts)

    async def security(
        self, page: PageRequest, view: SecurityView, browsers: Sequence[PodBrowser]
    ) -> Response:
        """``/.pages/security``. Raises NotAuthenticated, StorageError."""
        facts = await self._facts(page)
        return self.site.page(
            page,
            "account/security.html",
            view=view.value,
            pod_browsers=browsers,
            current_browsers=(),
            browser_name=browser_name,
            **facts,
        )

    async def _facts(self, page: PageRequest) -> dict[str, Any]:
        owner = page.owner()
        notice = page.notice
        facts = await self.account.facts(owner, changed=None if notice is None else notice.name)
        return {**facts, "typed": "" if notice is None else notice.subject}
