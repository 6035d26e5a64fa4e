"""How is an application answered, by way of the browser? (RFC 6749 section 4.1.2, A-54)

In the query or the fragment of its address, or by a form that the browser posts to it (OAuth 2.0
Form Post Response Mode), whose page sends itself where scripts run and has a button where not.
"""

from __future__ import annotations

from urllib.parse import urlencode

from podstead.idp.authorization_replies import AuthorizationReply, Interact, Next
from podstead.web.idp.rendering import Renderer, see_other
from podstead.web.response import Response

INTERACTION_PATH = "/idp/interaction"


def next_response(following: Next, renderer: Renderer) -> Response:
    """Where an authorization goes on: at a page of ours, or at the application."""
    if isinstance(following, Interact):
        return see_other(f"{INTERACTION_PATH}/{following.uid}")
    if following.response_mode == "form_post":
        return renderer.page(
            "form_post.html",
            form_targets=[following.redirect_uri],
            action=following.redirect_uri,
            parameters=following.parameters,
        )
    return see_other(reply_url(following))


def reply_url(reply: AuthorizationReply) -> str:
    """The application's address with the answer in it."""
    encoded = urlencode(reply.parameters)
    if reply.response_mode == "fragment":
        return f"{reply.redirect_uri}#{encoded}"
    joined = "&" if "?" in reply.redirect_uri else "?"
    return f"{reply.redirect_uri}{joined}{encoded}"
