"""A person at any Solid server, signed in with client credentials (Solid-OIDC, RFC 9449)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from tests.support.oauth import basic
from tests.support.server import Answer, request_to
from tests.support.signing import Signer, proof_claims, token_hash


@dataclass
class SolidSession:
    """Sends requests with a token and a proof; without credentials, as the public."""

    issuer: str
    client_id: str = ""
    secret: str = ""
    _key: Signer = field(default_factory=Signer.new)
    _token: str = ""

    def request(
        self, method: str, url: str, body: bytes | str | None = None, **headers: str
    ) -> Answer:
        """One request; header fields by names with underscores."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.client_id:
            token = self._token = self._token or self._signed_in()
            claims = {**proof_claims(method, url, int(time.time())), "ath": token_hash(token)}
            fields |= {"Authorization": f"DPoP {token}", "DPoP": self._key.proof(claims)}
        return request_to(method, url, body, fields)

    def _signed_in(self) -> str:
        configuration = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        endpoint = json.loads(request_to("GET", configuration).body)["token_endpoint"]
        proof = self._key.proof(proof_claims("POST", endpoint, int(time.time())))
        answer = request_to(
            "POST",
            endpoint,
            "grant_type=client_credentials&scope=webid",
            {
                **basic(self.client_id, self.secret),
                "Content-Type": "application/x-www-form-urlencoded",
                "DPoP": proof,
            },
        )
        assert answer.status == 200, answer.text
        token: str = json.loads(answer.body)["access_token"]
        return token
