"""The kinds of records that the provider stores, and their fields.

Times are Unix seconds (``_s``). Every record of a person has the id of their account as its owner,
and is deleted with the account (A-97). A field may be added with a default, but its stored name
must never change: records of earlier versions are read unchanged.
"""

import re
from typing import Final

import msgspec

from podstead.core.errors import BadRequest, Conflict
from podstead.idp.codes import IdpCodes
from podstead.storage.record_store import RecordKind


class Account(msgspec.Struct, frozen=True):
    """A person's account: one pod, one WebID, and the factors to sign in with.

    ``account_id`` is random and is the ``sub`` of tokens. ``email`` is as given, ``None`` for an
    account without one. ``password_hash`` is argon2's encoding, ``None`` if there is no password.
    Tokens and sessions from before ``valid_after_s`` are invalid (A-76).
    """

    account_id: str
    pod: str
    web_id: str
    email: str | None
    password_hash: str | None
    created_s: int
    disabled: bool = False
    valid_after_s: int = 0
    operator: bool = False
    """Whether the person may use the console (:mod:`podstead.idp.administration`)."""
    email_verified_s: int = 0
    """When the person has shown that they read the mail of ``email``; 0 if they have not."""
    language: str = ""
    """The language of messages to the person; empty for English."""
    terms_accepted_s: int = 0
    """When the person accepted the terms of the server; 0 if there were none."""
    terms_hash: str = ""
    """The SHA-256 of the terms that the person accepted."""
    mails_requests: bool = False
    """Whether the person wants a message when somebody asks for access."""

    @property
    def confirmed_email(self) -> str | None:
        """The address, if the person has shown that they read its mail."""
        return self.email if self.email_verified_s else None


class AccountName(msgspec.Struct, frozen=True):
    """The account that a login name belongs to. The key is the e-mail address or the pod name,
    folded."""

    account_id: str


class LastSignIn(msgspec.Struct, frozen=True):
    """When a browser last signed in to an account, and with which factor; the key is the account
    id."""

    at_s: int
    factor: str


class OneTimeLink(msgspec.Struct, frozen=True):
    """A link that works once (:mod:`podstead.idp.administration.service`); the key is the
    hash of its secret.

    With an ``account_id`` it lets a person sign in to that account with a new password. Without
    one it creates the first operator's account.
    """

    account_id: str | None
    created_s: int


class EmailProof(msgspec.Struct, frozen=True):
    """A link that was sent to an address, to find out whether it is the person's; the key is the
    hash of its secret."""

    account_id: str
    email: str


class BrowserSession(msgspec.Struct, frozen=True):
    """A signed-in browser; the key is the hash of its cookie.

    ``factor`` is what the person signed in with, such as ``password``.
    """

    account_id: str
    authenticated_s: int
    created_s: int
    factor: str
    csrf_token: str
    lasting: bool
    """Whether the person asked to stay signed in on this device."""
    user_agent: str = ""
    public_id: str = ""
    """The id by which the account page names it; not the secret of the cookie."""
    amr: tuple[str, ...] = ()
    """The ``amr`` value of the sign-in (:mod:`podstead.idp.sign_in`); empty if that
    is not known, as for sessions of earlier versions."""
    restricted: bool = False
    """Whether anyone who can write the profile can give themselves this factor. Such a session can
    neither change how people sign in to the account nor delete it (A-130)."""
    sign_in_method: str = msgspec.field(default="", name="way")
    """The entry of the sign-in method that it began with (:mod:`podstead.idp.sessions`);
    empty for a password, and for sessions of earlier versions."""
    common_password: bool = False
    """Whether the password is a common one, about which the person is warned."""


class AuthorizationRequest(msgspec.Struct, frozen=True):
    """The parameters of a validated authorization request (RFC 6749 section 4.1.1)."""

    client_id: str
    redirect_uri: str
    scopes: tuple[str, ...]
    code_challenge: str
    response_mode: str = "query"
    state: str | None = None
    nonce: str | None = None
    prompts: tuple[str, ...] = ()
    max_age_s: int | None = None
    login_hint: str | None = None
    dpop_jkt: str | None = None
    details: str | None = None
    """What the client asks for besides the scopes (:class:`AuthorizationExtension`), as JSON."""


class VerifiedFactor(msgspec.Struct, frozen=True):
    """What was verified in an interaction in place of a password, until the browser continues
    (A-118, A-125)."""

    account_id: str
    verified_s: int
    lasting: bool
    amr: tuple[str, ...] = ()
    factor: str = "passkey"
    restricted: bool = False
    sign_in_method: str = msgspec.field(default="", name="way")


class Interaction(msgspec.Struct, frozen=True):
    """A sign-in or consent in progress; the key is the hash of its uid (A-57).

    ``browser_hash`` binds it to the browser that began it. ``account_id``, ``authenticated_s`` and
    ``amr`` are present once the person has signed in; ``here`` means that they did so in this
    interaction. ``verified`` is present from the verification of a factor until the browser
    continues.
    """

    request: AuthorizationRequest
    browser_hash: str
    began_s: int
    account_id: str | None = None
    authenticated_s: int | None = None
    here: bool = False
    consented: bool = False
    finished: bool = False
    verified: VerifiedFactor | None = msgspec.field(default=None, name="passkey")
    amr: tuple[str, ...] = ()
    sign_in_method: str = msgspec.field(default="", name="way")
    may_state_identity: bool = False
    """Whether the person ticked the box that lets the application change who can act as them."""
    had_session: bool = False
    """Whether the browser was signed in when the application sent the person here."""


class Client(msgspec.Struct, frozen=True):
    """A registered client, or one that a Client ID Document describes (A-47 to A-51).

    ``auth_method`` is ``none``, ``client_secret_basic`` or ``client_secret_post``. Secrets are
    stored as their SHA-256. ``registered`` is false for a Client ID Document.
    """

    client_id: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    auth_method: str
    identity_algorithm: str
    registered: bool
    application_type: str = "web"
    client_name: str | None = None
    client_uri: str | None = None
    post_logout_redirect_uris: tuple[str, ...] = ()
    secret_hash: str | None = None
    registration_token_hash: str | None = None
    issued_s: int = 0
    details: str | None = None
    """The member ``authorization_details`` of its metadata, as JSON."""


class Consent(msgspec.Struct, frozen=True):
    """The consent of a person to a client; the key names account, client and redirect URI (A-56).

    Records of earlier versions have no ``redirect_uri``; their keys name the host instead.
    """

    client_id: str
    client_name: str | None
    redirect_host: str
    scopes: tuple[str, ...]
    given_s: int
    redirect_uri: str | None = None
    last_used_s: int = 0


class Grant(msgspec.Struct, frozen=True):
    """One authorization: the common data of all tokens that result from one code."""

    grant_id: str
    account_id: str
    web_id: str
    client_id: str
    client_name: str | None
    scopes: tuple[str, ...]
    authenticated_s: int
    session_id: str
    began_s: int
    last_used_s: int
    nonce: str | None = None
    revoked: bool = False
    amr: tuple[str, ...] = ()
    sign_in_method: str = msgspec.field(default="", name="way")
    """The entry of the sign-in method, in place of a password; empty for a password."""


def revoked(grant: Grant) -> Grant:
    """The grant, revoked: all tokens issued for it are invalid."""
    return msgspec.structs.replace(grant, revoked=True)


class AuthorizationCode(msgspec.Struct, frozen=True):
    """An authorization code; the key is its hash. A used one is kept, so that a second use is
    noticed (A-64)."""

    grant_id: str
    client_id: str
    redirect_uri: str
    code_challenge: str
    expires_s: int
    dpop_jkt: str | None = None
    used: bool = False


class RefreshToken(msgspec.Struct, frozen=True):
    """A refresh token; the key is its hash. A used one is also kept (A-66).

    ``jkt`` identifies the key whose possession a public client must prove.
    """

    grant_id: str
    client_id: str
    scopes: tuple[str, ...]
    jkt: str | None
    used: bool = False


class ClientCredential(msgspec.Struct, frozen=True):
    """An id and a secret with which a script acts as a WebID (A-67, A-86); the key is the id."""

    credential_id: str
    name: str
    account_id: str
    web_id: str
    secret_hash: str
    created_s: int


class SecurityEvent(msgspec.Struct, frozen=True):
    """A change of how people sign in to an account (:mod:`podstead.idp.security_events`).

    ``what`` is the value of an :class:`podstead.idp.audit.AuditEvent`. ``address`` is empty if no
    client made the change; ``by`` then says how it was made.
    """

    at_s: int
    what: str
    subject: str = ""
    address: str = ""
    user_agent: str = ""
    by: str = ""


class Challenge(msgspec.Struct, frozen=True):
    """A challenge for a browser to sign (A-119, A-126); the key is the hash of its challenge
    key.

    ``holder_hash`` binds it to a browser or, for adding a way to sign in, to a session.
    ``user_handle`` is what an authenticator that is added will know the account by.
    """

    purpose: str
    holder_hash: str
    account_id: str | None = None
    user_handle: str | None = None


class RevokedToken(msgspec.Struct, frozen=True):
    """A revoked access token; the key is its ``jti``."""

    revoked_s: int


ACCOUNTS: Final = RecordKind("account", Account)
EMAILS: Final = RecordKind("email", AccountName)
USERNAMES: Final = RecordKind("username", AccountName)
LAST_SIGN_INS: Final = RecordKind("last-sign-in", LastSignIn)
EMAIL_PROOFS: Final = RecordKind("email-proof", EmailProof)
ONE_TIME_LINKS: Final = RecordKind("one-time-link", OneTimeLink)
SESSIONS: Final = RecordKind("session", BrowserSession)
INTERACTIONS: Final = RecordKind("interaction", Interaction)
CLIENTS: Final = RecordKind("client", Client)
CONSENTS: Final = RecordKind("consent", Consent)
GRANTS: Final = RecordKind("grant", Grant)
CODES: Final = RecordKind("code", AuthorizationCode)
REFRESH_TOKENS: Final = RecordKind("refresh", RefreshToken)
CREDENTIALS: Final = RecordKind("credential", ClientCredential)
REVOKED_TOKENS: Final = RecordKind("revoked", RevokedToken)
SECURITY_EVENTS: Final = RecordKind("security-event", SecurityEvent)


# The names that people type to sign in: e-mail addresses and pod names.
#
# Both are compared ignoring case. They cannot be confused: every address contains an ``@``, and no
# pod name does.

MAX_EMAIL_CHARACTERS: Final = 254
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")


class UnusableEmail(BadRequest):
    """No account may have this address; clients compare ``known_text``."""


class EmailTaken(Conflict):
    """Another account has this address (A-90)."""

    known_text = "Email already registered"

    code = IdpCodes.EMAIL_TAKEN


def check_email(email: object) -> str:
    """The address without surrounding white space. Raises UnusableEmail."""
    if not isinstance(email, str) or not email.strip():
        raise UnusableEmail(
            IdpCodes.EMAIL_MISSING, known_text="Email required for account creation"
        )
    trimmed = email.strip()
    usable = _EMAIL.fullmatch(trimmed) is not None and trimmed.isprintable()
    if not usable or len(trimmed) > MAX_EMAIL_CHARACTERS:
        raise UnusableEmail(
            IdpCodes.EMAIL_UNUSABLE, known_text="Invalid email", number=MAX_EMAIL_CHARACTERS
        )
    return trimmed


def name_key(name: str) -> str:
    """The key of an e-mail address or a pod name."""
    return name.strip().lower()


def mailbox_key(email: str) -> str:
    """The common form of addresses that usually lead to one mailbox: without case, and without the
    part after a plus sign. For limits only; accounts may have any of these addresses."""
    local, _, domain = name_key(email).rpartition("@")
    return f"{local.partition('+')[0] or local}@{domain}"


def login_records(login: str) -> RecordKind[AccountName]:
    """The kind of record in which a login is looked up."""
    return EMAILS if "@" in login else USERNAMES


def masked_email(email: str) -> str:
    """An e-mail address in the form that may be logged: ``a***@example.org`` (A-183)."""
    local, _, domain = email.partition("@")
    return f"{local[:1]}***@{domain}"
