"""The events of the log in the language of the page."""

from __future__ import annotations

from typing import Final

from podstead.idp.audit import AuditEvent
from podstead.web.pages.texts import N_, _

TEXTS: Final = {
    AuditEvent.ACCOUNT_CREATED: N_("Account created"),
    AuditEvent.ACCOUNT_DELETED: N_("Account deleted"),
    AuditEvent.POD_CREATED: N_("Pod created"),
    AuditEvent.POD_DELETED: N_("Pod deleted"),
    AuditEvent.POD_RENAMED: N_("Pod renamed"),
    AuditEvent.POD_EXPORTED: N_("Pod exported"),
    AuditEvent.POD_IMPORTED: N_("Pod imported"),
    AuditEvent.BASE_URL_CHANGED: N_("Base URL changed"),
    AuditEvent.NAME_FREED: N_("Name of a deleted pod released"),
    AuditEvent.ACCOUNT_DISABLED: N_("Account disabled"),
    AuditEvent.ACCOUNT_ENABLED: N_("Account enabled"),
    AuditEvent.OPERATOR_PROMOTED: N_("Made an operator"),
    AuditEvent.OPERATOR_DEMOTED: N_("No longer an operator"),
    AuditEvent.SIGN_IN_LINK_CREATED: N_("One-time sign-in link created"),
    AuditEvent.SIGN_IN_LINK_USED: N_("One-time sign-in link used"),
    AuditEvent.QUOTA_SET: N_("Quota set"),
    AuditEvent.INVITATION_CREATED: N_("Invitation created"),
    AuditEvent.INVITATION_REVOKED: N_("Invitation revoked"),
    AuditEvent.INVITATION_REFUSED: N_("Code of an invitation refused"),
    AuditEvent.TERMS_ACCEPTED: N_("Terms of use accepted"),
    AuditEvent.EMAIL_CHANGED: N_("E-mail address changed"),
    AuditEvent.EMAIL_VERIFIED: N_("E-mail address confirmed"),
    AuditEvent.PASSWORD_LINK_SENT: N_("Link for a new password sent"),
    AuditEvent.MAIL_UNSENT: N_("Mail could not be sent"),
    AuditEvent.PASSWORD_CHANGED: N_("Password changed"),
    AuditEvent.SIGNED_IN: N_("Signed in"),
    AuditEvent.PASSWORD_CONFIRMED: N_("Password confirmed"),
    AuditEvent.SIGN_IN_FAILED: N_("Sign-in failed"),
    AuditEvent.SIGN_IN_PAUSED: N_("Sign-in with a password paused"),
    AuditEvent.SIGNED_OUT: N_("Signed out"),
    AuditEvent.SIGNED_OUT_EVERYWHERE: N_("Signed out everywhere"),
    AuditEvent.CONSENT_GIVEN: N_("Application allowed"),
    AuditEvent.CONSENT_ENDED: N_("Application disconnected"),
    AuditEvent.CREDENTIAL_CREATED: N_("Client credentials created"),
    AuditEvent.CREDENTIAL_DELETED: N_("Client credentials deleted"),
    AuditEvent.PASSKEY_ADDED: N_("Passkey added"),
    AuditEvent.PASSKEY_REMOVED: N_("Passkey removed"),
    AuditEvent.PASSKEY_COPIED: N_("Possible copy of a passkey"),
    AuditEvent.TOTP_ADDED: N_("Authenticator app added"),
    AuditEvent.TOTP_REMOVED: N_("Authenticator app removed"),
    AuditEvent.PASSKEY_REQUIRED: N_("Passkey required besides the password"),
    AuditEvent.PASSKEY_NOT_REQUIRED: N_("Passkey no longer required besides the password"),
    AuditEvent.RECOVERY_CODES_CREATED: N_("Recovery codes created"),
    AuditEvent.RECOVERY_CODE_USED: N_("Recovery code used"),
    AuditEvent.SECOND_FACTOR_FAILED: N_("Second factor failed after the right password"),
    AuditEvent.SECOND_FACTOR_RESET: N_("Second factor reset"),
    AuditEvent.NOSTR_KEY_LINKED: N_("Nostr key linked"),
    AuditEvent.NOSTR_KEY_UNLINKED: N_("Nostr key unlinked"),
    AuditEvent.POD_TOKEN_CREATED: N_("Token of a pod created"),
    AuditEvent.POD_TOKEN_REVOKED: N_("Token of a pod revoked"),
    AuditEvent.ISSUER_CHANGED: N_("Issuer of the identity provider changed"),
    AuditEvent.PROFILE_KEY_NAMED: N_("Nostr key named by the profile"),
    AuditEvent.PROFILE_KEY_UNNAMED: N_("Nostr key no longer named by the profile"),
    AuditEvent.PROFILE_KEY_ALLOWED: N_("Nostr key of the profile allowed to sign in"),
    AuditEvent.PROFILE_KEY_ENDED: N_("Nostr key of the profile no longer signs in"),
    AuditEvent.CERTIFICATE_MADE: N_("Client certificate created"),
    AuditEvent.CERTIFICATE_REMOVED: N_("Key of a client certificate removed"),
    AuditEvent.ISSUER_RESTORED: N_("Identity provider stated in the profile again"),
    AuditEvent.CODE_REUSED: N_("Code used again; its tokens were revoked"),
    AuditEvent.REFRESH_TOKEN_REUSED: N_("Refresh token used again; its tokens were revoked"),
    AuditEvent.FETCH_BLOCKED: N_("Outgoing request to a forbidden address blocked"),
    AuditEvent.KEY_MADE: N_("Signing key created"),
    AuditEvent.KEY_REMOVED: N_("Signing key removed"),
}
_BY_VALUE: Final = {event.value: text for event, text in TEXTS.items()}


def event_text(what: str) -> str:
    """The text for the value of an event; an event of another version keeps its own text."""
    text = _BY_VALUE.get(what)
    return what if text is None else _(text)
