"""What does the provider remember? The shapes of its records, one kind each.

Times are Unix seconds (``_s``). Every record of a person belongs to their account (its owner is the
account's id), so that all of them go with it (A-97). Members may be added with a default, never
renamed: the records of earlier versions are read as they are.
"""

from __future__ import annotations

from typing import Final

import msgspec

from podstead.storage.registry import Records


class Account(msgspec.Struct, frozen=True):
    """A person's account: one pod, one WebID, and the ways to sign in.

    ``account_id`` is random and tells nothing; it is the ``sub`` of tokens. ``email`` is as given,
    ``None`` for an account without one. ``password_hash`` is argon2's encoding, ``None`` if there
    is no password. Tokens and sessions older than ``valid_after_s`` count no more (A-76).
    """

    account_id: str
    pod: str
    web_id: str
    email: str | None
    password_hash: str | None
    created_s: int
    disabled: bool = False
    valid_after_s: int = 0


class AccountName(msgspec.Struct, frozen=True):
    """What a login name leads to; the key is the e-mail address or the name of the pod, folded."""

    account_id: str


class BrowserSession(msgspec.Struct, frozen=True):
    """A signed-in browser; the key is the hash of its cookie.

    ``factor`` is how it signed in: ``password``, ``passkey`` or ``nostr``.
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
    """By which the account page names it; not the secret of the cookie."""
    amr: tuple[str, ...] = ()
    """How the browser signed in, as tokens say it (:mod:`podstead.idp.authentication_methods`);
    empty if that is not known, as for sessions of earlier versions."""
    restricted: bool = False
    """Whether the factor is one that whoever writes the profile can give themselves: it does not
    change how the account is signed in to, nor end it (A-130)."""
    sign_in_method: str = msgspec.field(default="", name="way")
    """The entry of the passkey or key that it began with (:mod:`podstead.idp.sign_in_methods`);
    empty for a password, and for sessions of earlier versions."""
    common_password: bool = False
    """Whether it began by a password that is guessed first, of which the person is warned."""


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


class VerifiedFactor(msgspec.Struct, frozen=True):
    """That a passkey or a Nostr key was verified in an interaction, until the browser comes for
    what follows (A-118, A-125)."""

    account_id: str
    verified_s: int
    lasting: bool
    amr: tuple[str, ...] = ()
    factor: str = "passkey"
    restricted: bool = False
    sign_in_method: str = msgspec.field(default="", name="way")


class Interaction(msgspec.Struct, frozen=True):
    """A sign-in or consent that is under way; the key is the hash of its uid (A-57).

    ``browser_hash`` binds it to the browser that began it. ``account_id``, ``authenticated_s`` and
    ``amr`` are there once a factor was verified; ``here`` tells that it was in this interaction.
    ``verified`` is there between a factor's verification and what follows from it.
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
    """A registered client, or one that a client-ID document describes (A-47 to A-51).

    ``auth_method`` is ``none``, ``client_secret_basic`` or ``client_secret_post``. Secrets are kept
    as their SHA-256. ``registered`` is false for a client-ID document.
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


class Consent(msgspec.Struct, frozen=True):
    """What a person lets a client do; the key names account, client and redirect URI (A-56).

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
    """One authorization: what every token that comes of one code has in common."""

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
    """The entry of the passkey or key that the person signed in with; empty for a password."""


def revoked(grant: Grant) -> Grant:
    """The grant with an end: none of its tokens counts any more."""
    return msgspec.structs.replace(grant, revoked=True)


class AuthorizationCode(msgspec.Struct, frozen=True):
    """A code; the key is its hash. A used one is kept, so that a second use is noticed (A-64)."""

    grant_id: str
    client_id: str
    redirect_uri: str
    code_challenge: str
    expires_s: int
    dpop_jkt: str | None = None
    used: bool = False


class RefreshToken(msgspec.Struct, frozen=True):
    """A refresh token; the key is its hash. A used one is kept as well (A-66).

    ``jkt`` is the key that a public client must prove to have.
    """

    grant_id: str
    client_id: str
    scopes: tuple[str, ...]
    jkt: str | None
    used: bool = False


class ClientCredential(msgspec.Struct, frozen=True):
    """An id and secret by which a script acts as a WebID (A-67, A-86); the key is the id."""

    credential_id: str
    name: str
    account_id: str
    web_id: str
    secret_hash: str
    created_s: int


class Passkey(msgspec.Struct, frozen=True):
    """A passkey of an account (A-121); the key is the hash of ``credential_id``.

    ``credential_id`` and ``user_handle`` are base64url without padding; ``public_key`` is a COSE
    key. ``sign_count`` is what the authenticator last counted, always 0 for those that do not.
    """

    credential_id: str
    account_id: str
    user_handle: str
    """What the authenticator knows the account by; the same for all passkeys of an account."""
    public_key: bytes
    sign_count: int
    aaguid: str
    """The model of the authenticator, as it says itself."""
    transports: tuple[str, ...]
    backup_eligible: bool
    """Whether the passkey can be in several devices at once; it never changes."""
    backed_up: bool
    name: str
    created_s: int
    last_used_s: int | None = None
    suspected_s: int | None = None
    """When a signature with too low a count came, as of a copy."""


class NostrLink(msgspec.Struct, frozen=True):
    """A Nostr key of an account (A-128); the key of the record is the public key.

    ``published`` tells that the profile was made to name it, and that everybody may ask whose it
    is.
    """

    public_key: str
    """64 hexadecimal digits in lower case."""
    account_id: str
    created_s: int
    published: bool = False
    last_used_s: int | None = None


class AllowedKey(msgspec.Struct, frozen=True):
    """A Nostr key that signs in to an account while its profile names the key, since the owner
    allowed it (:mod:`podstead.idp.nostr.allowed_keys`); the key of the record is the account's id
    and the public key."""

    public_key: str
    account_id: str
    created_s: int


class SecurityEvent(msgspec.Struct, frozen=True):
    """A change of how somebody gets into an account (:mod:`podstead.idp.security_events`).

    ``what`` is the value of an :class:`podstead.idp.audit.AuditEvent`; ``address`` is empty for a
    change that no client made. ``by`` says how a change came about that was no request to the
    provider.
    """

    at_s: int
    what: str
    subject: str = ""
    address: str = ""
    user_agent: str = ""
    by: str = ""


class Challenge(msgspec.Struct, frozen=True):
    """Something to be signed once, by a passkey or a Nostr key (A-119, A-126); the key is the hash
    of its challenge key, which says what it is.

    ``holder_hash`` binds it to a browser, or to a session for adding a passkey or a key.
    ``user_handle`` is for adding a passkey.
    """

    purpose: str
    holder_hash: str
    account_id: str | None = None
    user_handle: str | None = None


class ProfileKey(msgspec.Struct, frozen=True):
    """That a profile states a Nostr key (A-127); the key is that key and the path of the profile.
    Such a record belongs to the pod, not to an account: profiles are older than accounts."""

    public_key: str


class ProvenKey(msgspec.Struct, frozen=True):
    """A Nostr key that a browser has proven to hold and that no account has, for an account to be
    made with it (A-131); the key is the hash of the browser's secret."""

    public_key: str


class RevokedToken(msgspec.Struct, frozen=True):
    """An access token that counts no more; the key is its ``jti``."""

    revoked_s: int


ACCOUNTS: Final = Records("account", Account)
EMAILS: Final = Records("email", AccountName)
USERNAMES: Final = Records("username", AccountName)
SESSIONS: Final = Records("session", BrowserSession)
INTERACTIONS: Final = Records("interaction", Interaction)
CLIENTS: Final = Records("client", Client)
CONSENTS: Final = Records("consent", Consent)
GRANTS: Final = Records("grant", Grant)
CODES: Final = Records("code", AuthorizationCode)
REFRESH_TOKENS: Final = Records("refresh", RefreshToken)
CREDENTIALS: Final = Records("credential", ClientCredential)
REVOKED_TOKENS: Final = Records("revoked", RevokedToken)
PASSKEYS: Final = Records("passkey", Passkey)
PASSKEY_CHALLENGES: Final = Records("passkey-challenge", Challenge)
NOSTR_LINKS: Final = Records("nostr-key", NostrLink)
ALLOWED_KEYS: Final = Records("allowed-key", AllowedKey)
SECURITY_EVENTS: Final = Records("security-event", SecurityEvent)
NOSTR_CHALLENGES: Final = Records("nostr-challenge", Challenge)
PROFILE_KEYS: Final = Records("profile-key", ProfileKey)
PROVEN_KEYS: Final = Records("proven-key", ProvenKey)
