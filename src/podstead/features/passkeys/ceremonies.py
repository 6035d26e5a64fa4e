"""Passkeys as they are stored, and the parties, options and results of WebAuthn ceremonies.

The browser holds a ceremony for a relying party: this server, identified by the host of its base
URL or by a parent domain, which several servers can share. A passkey of one relying party is
useless to another, and an IP address cannot be a relying party (A-115). A passkey is the only
factor here, so the authenticator must verify the person, and the passkey must be discoverable
without a name. The options for signing in are the same for everybody: they list no account's
passkeys (A-116, A-120). Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec

from podstead.core import base64url, codes, errors
from podstead.idp.audit import EventKind
from podstead.idp.challenges import IssuedChallenge
from podstead.idp.records import Account, Challenge
from podstead.storage.record_store import RecordKind

Credential = Mapping[str, object]
"""The response of a browser, as ``PublicKeyCredential.toJSON()`` serializes it (WebAuthn L3, 5.1).
"""

ALGORITHMS: Final = (-8, -7, -257)
"""The COSE identifiers of EdDSA, ES256 and RS256, in order of preference (A-116)."""
MAX_CREDENTIAL_ID_BYTES: Final = 1023
CHALLENGE_S: Final = 300
"""How long a person may take for a ceremony."""

ADDING: Final = "add"
SIGNING_IN: Final = "sign-in"
_TIMEOUT_MS: Final = CHALLENGE_S * 1000


class Passkey(msgspec.Struct, frozen=True):
    """A passkey of an account (A-121); the key is the hash of ``credential_id``.

    ``credential_id`` and ``user_handle`` are base64url without padding; ``public_key`` is a COSE
    key. ``sign_count`` is the last signature counter of the authenticator, always 0 if it has none.
    """

    credential_id: str
    account_id: str
    user_handle: str
    """The id by which authenticators know the account; the same for all passkeys of an account."""
    public_key: bytes
    sign_count: int
    aaguid: str
    """The model of the authenticator, as it reports it."""
    transports: tuple[str, ...]
    backup_eligible: bool
    """Whether the passkey can be on several devices; it never changes."""
    backed_up: bool
    name: str
    created_s: int
    last_used_s: int | None = None
    suspected_s: int | None = None
    """When a signature had too low a counter, which suggests a copy."""


PASSKEYS: Final = RecordKind("passkey", Passkey)
PASSKEY_CHALLENGES: Final = RecordKind("passkey-challenge", Challenge)


class PasskeyEvents(EventKind):
    """What is recorded about passkeys for the operator and the owner of the account."""

    ADDED = "passkey added"
    REMOVED = "passkey removed"
    COPIED = "possible copy of a passkey"

    @property
    def is_refusal(self) -> bool:
        return self is PasskeyEvents.COPIED


class PasskeyCodes(codes.ErrorCode):
    """What errors of passkeys say to people."""

    WITHOUT_NAME = "A passkey must have a name"
    NO_SUCH_PASSKEY = "There is no such passkey; it may have been removed"
    REGISTERED = "This passkey is already registered"
    NOT_VERIFIED = "The passkey could not be verified; try again"
    UNKNOWN_PASSKEY = "No account on this server has this passkey; sign in in another way"
    OTHER_ACCOUNT = "Another account is signed in; reload the page"
    TOO_MANY = "An account can have at most {number} passkeys; remove one first"


class VerificationFailed(errors.BadRequest):
    """The response does not prove what it should; nothing was changed."""

    known_text = "Verification failed"
    code = PasskeyCodes.NOT_VERIFIED


class UnknownCredential(errors.BadRequest):
    """No account on this server has this passkey."""

    known_text = "Unknown credential"
    code = PasskeyCodes.UNKNOWN_PASSKEY


class PartyRefused(ValueError):
    """Browsers do not accept the relying party; the message says which part is wrong, and why."""


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The relying party of ceremonies: this server, as browsers know it."""

    rp_id: str
    origins: tuple[str, ...]
    """The origins of pages that may start a ceremony, including the port, unlike ``rp_id``; the
    first is that of the base URL."""


def relying_party(
    base_url: str, *, rp_id: str | None = None, further_origins: Sequence[str] = ()
) -> RelyingParty | None:
    """The relying party of a base URL; ``None`` if browsers hold no ceremonies there, because its
    host is an IP address or it is a plain http URL of another machine (A-115).

    ``rp_id`` is the host of the base URL unless it is given; it may be a parent domain. A domain
    needs at least two labels. This accepts what a list of public suffixes would reject (co.uk);
    browsers have such a list and refuse the ceremony. Raises PartyRefused.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    origin = f"{parts.scheme}://{parts.netloc}"
    if not _is_ceremonial(origin):
        if rp_id is not None or further_origins:
            raise PartyRefused(
                "browsers do not support passkeys at the base URL, which must use https or "
                "localhost and must not be an IP address"
            )
        return None
    named = rp_id or host
    if named != host and not (_is_below(host, named) and "." in named):
        raise PartyRefused(
            f"{named} must be {host} or a parent domain of it with at least two labels, such as "
            "pods.example"
        )
    for each in further_origins:
        if not _is_ceremonial(each):
            raise PartyRefused(f"{each} must use https or localhost, and must not be an IP address")
        if not _is_below(urlsplit(each).hostname or "", named):
            raise PartyRefused(
                f"{each} does not belong to {named}, so its pages cannot use these passkeys"
            )
    return RelyingParty(named, tuple(dict.fromkeys((origin, *further_origins))))


def _is_ceremonial(origin: str) -> bool:
    """Whether browsers hold ceremonies on pages of this origin (WebAuthn L3, 5.1.3)."""
    parts = urlsplit(origin)
    host = parts.hostname or ""
    return not _is_address(host) and (parts.scheme == "https" or _is_below(host, "localhost"))


def _is_below(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """The result of a verified registration (WebAuthn L3, 7.1)."""

    credential_id: bytes
    public_key: bytes
    """A COSE key."""
    sign_count: int
    aaguid: str
    backup_eligible: bool
    backed_up: bool


@dataclass(frozen=True, slots=True)
class Assertion:
    """The result of a verified assertion (WebAuthn L3, 7.2); the signature counter has not been
    compared yet."""

    sign_count: int
    backup_eligible: bool
    backed_up: bool


class CeremonyVerifier(Protocol):
    """Verifies the responses of browsers: type, challenge, origin, relying party, user presence,
    user verification, algorithm and signature. Raises VerificationFailed."""

    async def verify_creation(self, credential: Credential, *, challenge: bytes) -> CreatedKey: ...

    async def verify_assertion(
        self, credential: Credential, *, challenge: bytes, public_key: bytes
    ) -> Assertion: ...


def base64url_decoded(text: object) -> bytes | None:
    """The decoded bytes; ``None`` if the value is not base64url."""
    if not isinstance(text, str):
        return None
    try:
        return base64url.decoded(text)
    except ValueError:
        return None


def response_of(credential: Credential) -> Mapping[str, object]:
    """The authenticator's response in a credential; empty if there is none."""
    response = credential.get("response")
    return response if isinstance(response, dict) else {}


@dataclass(frozen=True, slots=True)
class CreationOffer:
    """The permission to add a passkey, with what the browser needs for it."""

    issued: IssuedChallenge
    user_handle: str
    present: Sequence[Passkey]
    """The passkeys of the account, whose authenticators must not create a second one."""


def creation_options(
    offer: CreationOffer, account: Account, party: RelyingParty, *, server_name: str
) -> Mapping[str, object]:
    """``PublicKeyCredentialCreationOptionsJSON``, with the key of the challenge."""
    return {
        "challenge": base64url.encoded(bytes.fromhex(offer.issued.challenge)),
        "rp": {"name": server_name, "id": party.rp_id},
        "user": {
            "id": offer.user_handle,
            "name": account.email or account.pod,
            "displayName": account.pod,
        },
        "pubKeyCredParams": [{"alg": each, "type": "public-key"} for each in ALGORITHMS],
        "timeout": _TIMEOUT_MS,
        "attestation": "none",
        "excludeCredentials": [_described(each) for each in offer.present],
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "extensions": {"credProps": True},
        "hints": [],
        "challengeKey": offer.issued.challenge_key,
    }


def request_options(issued: IssuedChallenge, party: RelyingParty) -> Mapping[str, object]:
    """``PublicKeyCredentialRequestOptionsJSON``, with the key of the challenge."""
    return {
        "challenge": base64url.encoded(bytes.fromhex(issued.challenge)),
        "rpId": party.rp_id,
        "allowCredentials": [],
        "timeout": _TIMEOUT_MS,
        "userVerification": "required",
        "challengeKey": issued.challenge_key,
    }


def _described(passkey: Passkey) -> Mapping[str, object]:
    return {
        "id": passkey.credential_id,
        "type": "public-key",
        "transports": list(passkey.transports),
    }
