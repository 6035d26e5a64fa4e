"""The events that are recorded for the operator (A-184), and the requests that cause them."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, Protocol

from podstead.core.request_context import requester, requester_address


class EventKind(Enum):
    """A kind of events; the values appear in the log. Features have kinds of their own."""

    @property
    def is_refusal(self) -> bool:
        """Whether something was refused, or it is a sign of an attack."""
        return False


class AuditEvent(EventKind):
    """The kinds of events of the server itself."""

    ACCOUNT_CREATED = "account created"
    ACCOUNT_DELETED = "account deleted"
    POD_CREATED = "pod created"
    POD_DELETED = "pod deleted"
    POD_RENAMED = "pod renamed"
    POD_EXPORTED = "pod exported"
    POD_IMPORTED = "pod imported"
    BASE_URL_CHANGED = "base URL changed"
    NAME_FREED = "name of a former pod freed"
    ACCOUNT_DISABLED = "account disabled"
    ACCOUNT_ENABLED = "account enabled"
    OPERATOR_PROMOTED = "account made an operator's"
    OPERATOR_DEMOTED = "account no longer an operator's"
    SIGN_IN_LINK_CREATED = "one-time sign-in link created"
    SIGN_IN_LINK_USED = "one-time sign-in link used"
    QUOTA_SET = "quota of a pod set"
    SETTING_CHANGED = "setting changed"
    INVITATION_CREATED = "invitation created"
    INVITATION_REVOKED = "invitation revoked"
    INVITATION_REFUSED = "invitation refused"
    TERMS_ACCEPTED = "terms accepted"
    EMAIL_CHANGED = "e-mail address changed"
    EMAIL_VERIFIED = "e-mail address confirmed"
    PASSWORD_LINK_SENT = "link for a new password sent"  # noqa: S105 - the name of what happened
    MAIL_UNSENT = "mail given up"
    PASSWORD_CHANGED = "password changed"  # noqa: S105 - the name of what happened
    SIGNED_IN = "signed in"
    PASSWORD_CONFIRMED = "password confirmed"  # noqa: S105 - the name of what happened
    SIGN_IN_FAILED = "sign-in failed"
    SIGN_IN_PAUSED = "sign-in with a password paused"
    SIGNED_OUT = "signed out"
    SIGNED_OUT_EVERYWHERE = "signed out everywhere"
    CONSENT_GIVEN = "application allowed"
    CONSENT_ENDED = "application disconnected"
    CREDENTIAL_CREATED = "client credentials created"
    CREDENTIAL_DELETED = "client credentials deleted"
    POD_TOKEN_CREATED = "token of a pod created"  # noqa: S105 - the name of what happened
    POD_TOKEN_REVOKED = "token of the pod revoked"  # noqa: S105 - the name of what happened
    ISSUER_CHANGED = "issuer of the identity provider changed"
    ISSUER_RESTORED = "identity provider stated in the profile again"
    CODE_REUSED = "code used again: all that came of it ended"
    REFRESH_TOKEN_REUSED = "refresh token used again: all that came of its grant ended"  # noqa: S105
    FETCH_BLOCKED = "outgoing request to a forbidden place blocked"
    KEY_MADE = "signing key made"
    KEY_REMOVED = "signing key removed"

    @property
    def is_refusal(self) -> bool:
        return self in _REFUSALS


_REFUSALS: Final = frozenset(
    {
        AuditEvent.SIGN_IN_FAILED,
        AuditEvent.SIGN_IN_PAUSED,
        AuditEvent.CODE_REUSED,
        AuditEvent.REFRESH_TOKEN_REUSED,
        AuditEvent.FETCH_BLOCKED,
        AuditEvent.INVITATION_REFUSED,
    }
)


class Audit(Protocol):
    """Records events. The arguments may appear in a log: never pass a password, a token or what a
    person typed (A-183)."""

    def note(self, event: EventKind, *, account_id: str | None = None, **facts: str) -> None:
        """Record an event with facts about it. Raises nothing."""


@dataclass(frozen=True, slots=True)
class RequestSource:
    """The client of a request, as seen through trusted proxies."""

    address: str
    """Its IP address; empty where no client made the change."""
    network: str
    """The part of the address that one customer has, for which limits apply."""
    user_agent: str = ""
    """The ``User-Agent`` of the client."""
    language: str = ""
    """The language of the person's pages."""
    by: str = ""
    """How the change came about, if not by a request to the provider."""


class EventSource(StrEnum):
    """How a change came about, if not by a request to the provider, as records say it."""

    OPERATOR = "the operator of this server"
    PROFILE = "a change of the profile"


OPERATOR: Final = RequestSource("", "", by=EventSource.OPERATOR.value)


def profile_change() -> RequestSource:
    """The source of a change that results from a change of the profile, whichever request made
    that."""
    return RequestSource(requester_address() or "", requester(), by=EventSource.PROFILE.value)
