"""How is the response sent to an application through the browser? (RFC 6749 section 4.1.2, A-54)

In the query or the fragment of the redirect URI, or with a form that the browser posts to it (OAuth
2.0 Form Post Response Mode). The page with that form submits itself if scripts run, and has a
button if not.
"""

from __future__ import annotations

from urllib.parse import urlencode

from podstead.idp.authorizations import AuthorizationReply, InteractionRequired, Next
from podstead.web.browsers import see_other
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response

INTERACTION_PATH = "/idp/interaction"


def next_response(page: PageRequest, following: Next, renderer: PageRenderer) -> Response:
    """The response that continues an authorization: a page of the provider, or the application."""
    if isinstance(following, InteractionRequired):
        return see_other(f"{INTERACTION_PATH}/{following.uid}")
    if following.response_mode == "form_post":
        return renderer.sign_in_page(
            page,
            "form_post.html",
            form_targets=[following.redirect_uri],
            action=following.redirect_uri,
            parameters=following.parameters,
        )
    return see_other(reply_url(following))


def reply_url(reply: AuthorizationReply) -> str:
    """The redirect URI with the response in it."""
    encoded = urlencode(reply.parameters)
    if reply.response_mode == "fragment":
        return f"{reply.redirect_uri}#{encoded}"
    joined = "&" if "?" in reply.redirect_uri else "?"
    return f"{reply.redirect_uri}{joined}{encoded}"
