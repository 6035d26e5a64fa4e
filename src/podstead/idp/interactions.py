"""What is left to do before a client gets its code? The stages of an authorization (A-55 to A-57).

Pure. Signing in comes before consent; both may have happened before, in which case the person sees
nothing. Consent is never implied by a session alone. Signing in on the very page that names
the client and what it gets counts as consent once, unless the client had a say in whether that page
or the one for consent is shown; even then lasting access is not included.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp.records import AuthorizationRequest, BrowserSession, Consent, Interaction
from podstead.idp.redirects import is_on_this_device
from podstead.idp.scopes import OFFLINE, OPENID, WEBID, permissions

_BY_SIGNING_IN: Final = frozenset({OPENID, WEBID, OFFLINE})
_FRESH_SIGN_IN: Final = frozenset({"login", "select_account", "create"})


class Stage(Enum):
    """What is to be done next; the values are the words of errors for ``prompt=none``."""

    SIGN_IN = "login_required"
    CONSENT = "consent_required"
    DONE = "done"


def begun(
    request: AuthorizationRequest,
    session: BrowserSession | None,
    *,
    had_session: bool = False,
    browser_hash: str,
    now_s: int,
) -> Interaction:
    """The interaction of a new request, signed in already if the session is good enough for it.
    ``had_session`` tells that the browser is signed in, be it as somebody who is not asked for."""
    interaction = Interaction(
        request=request,
        browser_hash=browser_hash,
        began_s=now_s,
        had_session=had_session or session is not None,
    )
    if session is None or not _FRESH_SIGN_IN.isdisjoint(request.prompts):
        return interaction
    if request.max_age_s is not None and now_s - session.authenticated_s > request.max_age_s:
        return interaction
    return Interaction(
        request=request,
        browser_hash=browser_hash,
        began_s=now_s,
        had_session=True,
        account_id=session.account_id,
        authenticated_s=session.authenticated_s,
        amr=session.amr,
        sign_in_method=session.sign_in_method,
    )


def stage_of(interaction: Interaction, consent: Consent | None) -> Stage:
    """What is next; ``consent`` is what the account has let this client do before."""
    if interaction.account_id is None:
        return Stage.SIGN_IN
    if interaction.consented:
        return Stage.DONE
    if "consent" in interaction.request.prompts:
        return Stage.CONSENT
    if (interaction.here and signing_in_consents(interaction)) or _covers(
        consent, interaction.request
    ):
        return Stage.DONE
    return Stage.CONSENT


def signing_in_consents(interaction: Interaction) -> bool:
    """Whether signing in, on the page that names the client and what it gets, is consent.

    It is where the person came without a session, so that nothing which the client chose made the
    page appear instead of the one for consent; for the scopes of a Solid application alone; and for
    an address on the web, since any program of the person's device can answer to the others.
    """
    request = interaction.request
    return (
        not interaction.had_session
        and set(request.prompts) <= {"none"}
        and _BY_SIGNING_IN.issuperset(request.scopes)
        and not is_on_this_device(request.redirect_uri)
    )


def granted_scopes(interaction: Interaction, consent: Consent | None) -> tuple[str, ...]:
    """The scopes that a finished interaction gives: lasting access only if a page asked for it,
    now or before (A-56), and changes of identity only if the person ticked the box for them, on
    the last page that asked."""
    allowed_before = consent.scopes if consent is not None else ()
    withheld = set()
    if not interaction.consented and OFFLINE not in allowed_before:
        withheld.add(OFFLINE)
    may_state_identity = (
        interaction.may_state_identity
        if interaction.consented
        else IDENTITY_SCOPE in allowed_before
    )
    if not may_state_identity:
        withheld.add(IDENTITY_SCOPE)
    return tuple(scope for scope in interaction.request.scopes if scope not in withheld)


def remembered_scopes(
    interaction: Interaction, consent: Consent | None, granted: tuple[str, ...]
) -> tuple[str, ...]:
    """What a consent says from now on: what was allowed before, and what is now. Whoever sees the
    box for changes of identity and leaves it empty takes an earlier permission back for later
    sign-ins; disconnecting the application ends what it has."""
    before = consent.scopes if consent is not None else ()
    withdrawn = interaction.consented and IDENTITY_SCOPE in interaction.request.scopes
    kept = [scope for scope in before if not (withdrawn and scope == IDENTITY_SCOPE)]
    return tuple(dict.fromkeys((*kept, *permissions(granted))))


def _covers(consent: Consent | None, request: AuthorizationRequest) -> bool:
    asked = {scope for scope in permissions(request.scopes) if scope != OFFLINE}
    return consent is not None and asked.issubset(consent.scopes)
