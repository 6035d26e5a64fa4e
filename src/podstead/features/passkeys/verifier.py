"""Verifies the responses of passkeys with the WebAuthn library, in a thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from podstead.core import base64url
from podstead.features.passkeys import ceremonies

if TYPE_CHECKING:
    from webauthn.helpers.structs import CredentialDeviceType


_SYNCED: Final = "multi_device"


class WebAuthnVerifier:
    """Implements CeremonyVerifier of ``features.passkeys.ceremonies``."""

    def __init__(self, party: ceremonies.RelyingParty) -> None:
        self._party = party

    async def verify_creation(
        self, credential: ceremonies.Credential, *, challenge: bytes
    ) -> ceremonies.CreatedKey:
        """Raises VerificationFailed."""
        return await asyncio.to_thread(_creation, credential, challenge, self._party)

    async def verify_assertion(
        self, credential: ceremonies.Credential, *, challenge: bytes, public_key: bytes
    ) -> ceremonies.Assertion:
        """Raises VerificationFailed."""
        return await asyncio.to_thread(_assertion, credential, challenge, public_key, self._party)


def _creation(
    credential: ceremonies.Credential, challenge: bytes, party: ceremonies.RelyingParty
) -> ceremonies.CreatedKey:
    from webauthn import verify_registration_response
    from webauthn.helpers.cose import COSEAlgorithmIdentifier

    try:
        _check_frame(credential)
        verified = verify_registration_response(
            credential=_without_statement(credential),
            expected_challenge=challenge,
            expected_rp_id=party.rp_id,
            expected_origin=list(party.origins),
            require_user_verification=True,
            supported_pub_key_algs=[
                COSEAlgorithmIdentifier(each) for each in ceremonies.ALGORITHMS
            ],
        )
    except Exception as error:  # the content comes from a stranger and may break any parser
        raise ceremonies.VerificationFailed from error
    if verified.credential_id != ceremonies.base64url_decoded(credential.get("rawId")):
        raise ceremonies.VerificationFailed
    if len(verified.credential_id) > ceremonies.MAX_CREDENTIAL_ID_BYTES:
        raise ceremonies.VerificationFailed
    return ceremonies.CreatedKey(
        credential_id=verified.credential_id,
        public_key=verified.credential_public_key,
        sign_count=verified.sign_count,
        aaguid=verified.aaguid,
        backup_eligible=_is_synced(verified.credential_device_type),
        backed_up=verified.credential_backed_up,
    )


def _assertion(
    credential: ceremonies.Credential,
    challenge: bytes,
    public_key: bytes,
    party: ceremonies.RelyingParty,
) -> ceremonies.Assertion:
    from webauthn import verify_authentication_response

    try:
        _check_frame(credential)
        verified = verify_authentication_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=party.rp_id,
            expected_origin=list(party.origins),
            credential_public_key=public_key,
            credential_current_sign_count=0,  # compared where a copied key can be recorded
            require_user_verification=True,
        )
    except Exception as error:  # see _creation
        raise ceremonies.VerificationFailed from error
    return ceremonies.Assertion(
        sign_count=verified.new_sign_count,
        backup_eligible=_is_synced(verified.credential_device_type),
        backed_up=verified.credential_backed_up,
    )


def _check_frame(credential: ceremonies.Credential) -> None:
    """Refuse a response from a frame in a page of another site, which the library accepts."""
    from webauthn.helpers import parse_client_data_json

    client_data = parse_client_data_json(
        ceremonies.base64url_decoded(ceremonies.response_of(credential).get("clientDataJSON"))
        or b""
    )
    if client_data.cross_origin:
        raise ceremonies.VerificationFailed


def _without_statement(credential: ceremonies.Credential) -> dict[str, object]:
    from webauthn.helpers import encode_cbor, parse_cbor

    response = ceremonies.response_of(credential)
    made = parse_cbor(ceremonies.base64url_decoded(response.get("attestationObject")) or b"")
    plain = encode_cbor({"fmt": "none", "attStmt": {}, "authData": made["authData"]})
    return {**credential, "response": {**response, "attestationObject": base64url.encoded(plain)}}


def _is_synced(kind: CredentialDeviceType) -> bool:
    return kind.value == _SYNCED
