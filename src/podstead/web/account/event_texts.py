"""What pages and messages call events of the log, and how a change came about.

Records contain the English values of the kinds, from which the texts are found.
"""

from collections.abc import Mapping
from typing import Final

from podstead.idp.audit import AuditEvent, EventKind, EventSource
from podstead.web.pages.texts import N_, _

_TEXTS: Final[dict[str, str]] = {
    AuditEvent.ACCOUNT_CREATED.value: N_("Account created"),
    AuditEvent.ACCOUNT_DELETED.value: N_("Account deleted"),
    AuditEvent.POD_CREATED.value: N_("Pod created"),
    AuditEvent.POD_DELETED.value: N_("Pod deleted"),
    AuditEvent.POD_RENAMED.value: N_("Pod renamed"),
    AuditEvent.POD_EXPORTED.value: N_("Pod exported"),
    AuditEvent.POD_IMPORTED.value: N_("Pod imported"),
    AuditEvent.BASE_URL_CHANGED.value: N_("Base URL changed"),
    AuditEvent.NAME_FREED.value: N_("Name of a deleted pod released"),
    AuditEvent.ACCOUNT_DISABLED.value: N_("Account disabled"),
    AuditEvent.ACCOUNT_ENABLED.value: N_("Account enabled"),
    AuditEvent.OPERATOR_PROMOTED.value: N_("Made an operator"),
    AuditEvent.OPERATOR_DEMOTED.value: N_("No longer an operator"),
    AuditEvent.SIGN_IN_LINK_CREATED.value: N_("One-time sign-in link created"),
    AuditEvent.SIGN_IN_LINK_USED.value: N_("One-time sign-in link used"),
    AuditEvent.QUOTA_SET.value: N_("Quota set"),
    AuditEvent.SETTING_CHANGED.value: N_("Setting changed"),
    AuditEvent.INVITATION_CREATED.value: N_("Invitation created"),
    AuditEvent.INVITATION_REVOKED.value: N_("Invitation revoked"),
    AuditEvent.INVITATION_REFUSED.value: N_("Code of an invitation refused"),
    AuditEvent.TERMS_ACCEPTED.value: N_("Terms of use accepted"),
    AuditEvent.EMAIL_CHANGED.value: N_("E-mail address changed"),
    AuditEvent.EMAIL_VERIFIED.value: N_("E-mail address confirmed"),
    AuditEvent.PASSWORD_LINK_SENT.value: N_("Link for a new password sent"),
    AuditEvent.MAIL_UNSENT.value: N_("Mail could not be sent"),
    AuditEvent.PASSWORD_CHANGED.value: N_("Password changed"),
    AuditEvent.SIGNED_IN.value: N_("Signed in"),
    AuditEvent.PASSWORD_CONFIRMED.value: N_("Password confirmed"),
    AuditEvent.SIGN_IN_FAILED.value: N_("Sign-in failed"),
    AuditEvent.SIGN_IN_PAUSED.value: N_("Sign-in with a password paused"),
    AuditEvent.SIGNED_OUT.value: N_("Signed out"),
    AuditEvent.SIGNED_OUT_EVERYWHERE.value: N_("Signed out everywhere"),
    AuditEvent.CONSENT_GIVEN.value: N_("Application allowed"),
    AuditEvent.CONSENT_ENDED.value: N_("Application disconnected"),
    AuditEvent.CREDENTIAL_CREATED.value: N_("Client credentials created"),
    AuditEvent.CREDENTIAL_DELETED.value: N_("Client credentials deleted"),
    AuditEvent.POD_TOKEN_CREATED.value: N_("Token of a pod created"),
    AuditEvent.POD_TOKEN_REVOKED.value: N_("Token of a pod revoked"),
    AuditEvent.ISSUER_CHANGED.value: N_("Issuer of the identity provider changed"),
    AuditEvent.ISSUER_RESTORED.value: N_("Identity provider stated in the profile again"),
    AuditEvent.CODE_REUSED.value: N_("Code used again; its tokens were revoked"),
    AuditEvent.REFRESH_TOKEN_REUSED.value: N_("Refresh token used again; its tokens were revoked"),
    AuditEvent.FETCH_BLOCKED.value: N_("Outgoing request to a forbidden address blocked"),
    AuditEvent.KEY_MADE.value: N_("Signing key created"),
    AuditEvent.KEY_REMOVED.value: N_("Signing key removed"),
}
_CAUSES: Final[Mapping[str, str]] = {
    EventSource.OPERATOR: N_("the operator of this server"),
    EventSource.PROFILE: N_("a change of the profile"),
}


def add_event_texts(texts: Mapping[EventKind, str]) -> None:
    """Add the texts for the events of a feature."""
    _TEXTS.update({event.value: text for event, text in texts.items()})


def event_text(what: str) -> str:
    """The text for the stored value of an event; the value itself if no part of the server knows
    it, as when a feature is gone."""
    return _(_TEXTS[what]) if what in _TEXTS else what


def source_text(by: str) -> str:
    """How a change came about, of its stored value."""
    return _(_CAUSES[by]) if by in _CAUSES else by
