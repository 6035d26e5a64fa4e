"""``/idp/terms``: a person who is signed in accepts the terms, which have changed or are new.

Until then every page leads here (:mod:`podstead.web.pages.guard`). Whoever declines signs
out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, RequestRefused
from podstead.core.identifiers import parse_path
from podstead.idp.accounts import Accounts
from podstead.idp.authorizations import Authorizations
from podstead.idp.token_issuing import AUTHORIZATION_PATH
from podstead.web.browsers import json_response, see_other
from podstead.web.forms import only, read_query
from podstead.web.idp.replies import INTERACTION_PATH
from podstead.web.pages.addresses import ACCOUNT, NEW_TERMS, local_address, new_terms_url
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

_PROVIDER: Final = "/idp/"
_INTERACTION: Final = re.compile(
    rf"(?:{re.escape(AUTHORIZATION_PATH)}|{re.escape(INTERACTION_PATH)})/(?P<uid>[^/?]+)"
)


@dataclass(frozen=True, slots=True)
class NewTermsPage:
    """Shows the terms, and records who accepts them."""

    site: Site
    accounts: Accounts
    authorizations: Authorizations
    terms_text: str

    @route(NEW_TERMS, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The page. Raises NotAuthenticated."""
        owner, afterwards = page.owner(), _afterwards(page)
        if self.site.registration.terms_hash in ("", owner.account.terms_hash):
            return see_other(afterwards)
        return self.site.sign_in_page(
            page,
            "new_terms.html",
            form_targets=await self._form_targets(page, afterwards),
            account=owner.account,
            csrf_token=owner.session.csrf_token,
            text=self.terms_text,
            terms_hash=self.site.registration.terms_hash,
            action=new_terms_url(afterwards),
            is_first=not owner.account.terms_hash,
            operator=self.site.registration.about,
        )

    @route(NEW_TERMS, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Record that the person accepts the terms that the page showed. If they have changed
        since, the page is shown again. Raises NotAuthenticated, WrongFormToken."""
        sent = await page.submission()
        owner, afterwards = page.owner(), _afterwards(page)
        if sent.text("terms") != self.site.registration.terms_hash:
            return see_other(new_terms_url(afterwards))
        await self.accounts.accept_terms(
            owner.account.account_id, self.site.registration.terms_hash
        )
        if not page.wants_page:
            return json_response(200, {})
        return see_other(afterwards)

    async def _form_targets(self, page: PageRequest, afterwards: str) -> Sequence[str]:
        """Where the form may lead besides this server: to the application that the person signs in
        to."""
        found = _INTERACTION.match(afterwards)
        if found is None:
            return ()
        try:
            pending = await self.authorizations.pending(found["uid"], browser=page.browser)
        except RequestRefused:
            return ()  # it has expired, which the next page explains
        return (pending.interaction.request.redirect_uri,)


def _afterwards(page: PageRequest) -> str:
    """The page of this server that the person wanted to see. Raises BadRequest."""
    text = only(read_query(page.request), "next") or ""
    local = local_address(text)
    if local is not None:
        return local
    path, question_mark, query = text.partition("?")
    if not text.isascii() or not path.startswith(_PROVIDER) or not query.isprintable():
        return ACCOUNT
    try:
        canonical = parse_path(path.encode("ascii"))
    except BadRequest:
        return ACCOUNT
    is_ours = canonical.startswith(_PROVIDER) and canonical != NEW_TERMS
    return canonical + question_mark + query if is_ours else ACCOUNT
