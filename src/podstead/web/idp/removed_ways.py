"""What does a browser get to see when its owner has removed a way into the account?"""

from __future__ import annotations

from podstead.idp.ways import began_by
from podstead.web.idp.cookies import Cookies, FlashMessage
from podstead.web.idp.rendering import json_response, see_other
from podstead.web.idp.session_guard import ACCOUNT_PATH, LOGIN_PATH, BrowserRequest
from podstead.web.response import Response


def way_removed(
    browser_request: BrowserRequest, cookies: Cookies, way: str, *, flash_message: str
) -> Response:
    """Back to the account; or to signing in, where this browser was signed in by that way, since
    its session has ended with the others."""
    is_out = browser_request.open_session is not None and began_by(
        way, browser_request.open_session.session
    )
    headers = [cookies.clear_session()] if is_out else []
    if not browser_request.wants_page:
        return json_response(204, None, *headers)
    if is_out:
        return see_other(
            LOGIN_PATH, cookies.set_flash_message(FlashMessage("way-removed")), *headers
        )
    return see_other(ACCOUNT_PATH, cookies.set_flash_message(FlashMessage(flash_message)))
