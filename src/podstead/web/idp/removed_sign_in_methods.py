"""Where does a browser go after its owner has removed a sign-in method?"""

from __future__ import annotations

from podstead.idp.sign_in_methods import began_with
from podstead.web.browsers import json_response, see_other
from podstead.web.idp.cookies import Cookies, FlashMessage
from podstead.web.idp.session_guard import LOGIN_PATH, BrowserRequest
from podstead.web.response import Response


def sign_in_method_removed(
    browser_request: BrowserRequest, cookies: Cookies, method: str, *, flash_message: str
) -> Response:
    """Send the browser back to the account page; or to the sign-in page if its own session began
    with that sign-in method, and so has ended too."""
    is_out = browser_request.open_session is not None and began_with(
        method, browser_request.open_session.session
    )
    headers = [cookies.clear_session()] if is_out else []
    if not browser_request.wants_page:
        return json_response(204, None, *headers)
    if is_out:
        return see_other(
            LOGIN_PATH, cookies.set_flash_message(FlashMessage("sign-in-method-removed")), *headers
        )
    return see_other(
        browser_request.account_address, cookies.set_flash_message(FlashMessage(flash_message))
    )
