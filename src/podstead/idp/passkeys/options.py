"""Makes the options for creating and using passkeys in the JSON of WebAuthn L3 (A-116, A-120).

A passkey is the only factor here, so the authenticator must verify the person, and the passkey must
be discoverable without a name. The options for signing in are the same for everybody: they do not
list any account's keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podstead.idp.challenges import IssuedChallenge
from podstead.idp.passkeys.ceremonies import (
    ALGORITHMS,
    CHALLENGE_S,
    RelyingParty,
    base64url_encoded,
)
from podstead.idp.passkeys.service import CreationOffer
from podstead.idp.records import Account, Passkey

_TIMEOUT_MS: Final = CHALLENGE_S * 1000


def creation_options(
    offer: CreationOffer, account: Account, party: RelyingParty, *, server_name: str
) -> Mapping[str, object]:
    """``PublicKeyCredentialCreationOptionsJSON``, with the key of the challenge."""
    return {
        "challenge": base64url_encoded(bytes.fromhex(offer.issued.challenge)),
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
        "challenge": base64url_encoded(bytes.fromhex(issued.challenge)),
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
