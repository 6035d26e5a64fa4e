"""``/.pages/console/accounts``: all pods with their accounts."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from podstead.idp.administration.acting import Operator
from podstead.idp.administration.directory import Directory
from podstead.web.browser_responses import see_other
from podstead.web.idp.console.addresses import ACCOUNTS, account_url
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.response import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsPage:
    """Lists pods and accounts, and finds some of them."""

    directory: Directory
    renderer: PageRenderer
    default_quota_bytes: int

    async def home(self, _page: PageRequest, _operator: Operator) -> Response:
        """What the console begins with."""
        return see_other(ACCOUNTS)

    async def get(self, page: PageRequest, _operator: Operator) -> Response:
        """One page of the list."""
        query = page.query_text("q")
        listing = await self.directory.search(query, after=page.query_text("after"))
        more = None
        if listing.next_after:
            more = f"{ACCOUNTS}?{urlencode({'q': query, 'after': listing.next_after})}"
        return self.renderer.page(
            page,
            "console/accounts.html",
            query=query,
            listing=listing,
            more=more,
            default_quota_bytes=self.default_quota_bytes,
            account_url=account_url,
        )
