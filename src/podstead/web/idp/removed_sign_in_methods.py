"""Where does a browser go after its owner has removed a sign-in method?"""

from __future__ import annotations

from podstead.idp.sign_in_methods import began_with
from podstead.web.browsers import json_response, see_other
from podstead.web.pages.addresses import LOGIN, SECURITY
from podstead.web.pages.cookies import SESSION, Cookies, Notice
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response


def sign_in_method_removed(
    page: PageRequest, cookies: Cookies, method: str, *, flash_message: str
) -> Response:
    """Send the browser back to the account page; or to the sign-in page if its own session began
    with that sign-in method, and so has ended too."""
    is_out = page.open_session is not None and began_with(method, page.open_session.session)
    headers = [cookies.clear(SESSION)] if is_out else []
    if not page.wants_page:
        return json_response(204, None, *headers)
    if is_out:
        return see_other(LOGIN, cookies.set_notice(Notice("sign-in-method-removed")), *headers)
    return see_other(page.back or SECURITY, cookies.set_notice(Notice(flash_message)))
