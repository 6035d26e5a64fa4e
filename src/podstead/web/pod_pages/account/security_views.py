"""Which parts does the page about security have?"""

from __future__ import annotations

from enum import Enum
from typing import Final

from podstead.web.pages.texts import N_

SHOWN_NAMES: Final = (
    N_("e-mail address changed"),
    N_("password changed"),
    N_("client credentials created"),
    N_("client credentials deleted"),
    N_("authenticator app added"),
    N_("authenticator app removed"),
    N_("passkey required besides the password"),
    N_("passkey no longer required besides the password"),
    N_("recovery codes created"),
    N_("recovery code used"),
    N_("second factor failed after the right password"),
    N_("second factor reset"),
    N_("one-time sign-in link created"),
    N_("passkey added"),
    N_("passkey removed"),
    N_("Nostr key linked"),
    N_("Nostr key unlinked"),
    N_("token of the pod revoked"),
    N_("Nostr key named by the profile"),
    N_("Nostr key no longer named by the profile"),
    N_("Nostr key of the profile allowed to sign in"),
    N_("Nostr key of the profile no longer signs in"),
    N_("client certificate made"),
    N_("key of a client certificate removed"),
    N_("identity provider stated in the profile again"),
    N_("the operator of this server"),
    N_("a change of the profile"),
    N_("Passkey"),
    N_("Nostr key"),
    N_("Nostr key of your profile"),
    N_("Client certificate"),
    N_("Client credentials"),
    N_("Token of your pod"),
)
"""What the provider calls events, their causes and credentials, to be translated by the page."""


class SecurityView(Enum):
    """A part of the page, as its address names it."""

    SIGN_IN = "sign-in"
    BROWSERS = "browsers"
    PROGRAMS = "programs"
    EVENTS = "events"
    ACCOUNT = "account"


def view_of(text: str) -> SecurityView:
    """The part that an address names; the first one if it names none."""
    names = {each.value for each in SecurityView}
    return SecurityView(text) if text in names else SecurityView.SIGN_IN
