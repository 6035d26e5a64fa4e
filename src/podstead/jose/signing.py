"""The key pairs that sign the server's own tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from podstead.jose.errors import InvalidJose
from podstead.jose.keys import PublicKey, import_public_key
from podstead.jose.strict_json import Json, read_object

SigningAlgorithm = Literal["ES256", "RS256"]

_RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class SigningKeyPair:
    """A private key and its one algorithm. The key ID is the thumbprint (A-42)."""

    algorithm: SigningAlgorithm
    public: PublicKey
    _private: ECKey | RSAKey

    @classmethod
    def generate(cls, algorithm: SigningAlgorithm) -> Self:
        """Generate a key pair; RSA takes some tenths of a second."""
        if algorithm == "ES256":
            return cls._of(algorithm, ECKey.generate_key("P-256", private=True))
        return cls._of(algorithm, RSAKey.generate_key(_RSA_BITS, private=True))

    @classmethod
    def load(cls, content: bytes) -> Self:
        """Load the output of :meth:`dump`. Raises InvalidJose."""
        jwk = read_object(content)
        algorithm = jwk.pop("alg", None)
        try:
            if algorithm == "ES256":
                return cls._of(algorithm, ECKey.import_key(jwk))
            if algorithm == "RS256":
                return cls._of(algorithm, RSAKey.import_key(jwk))
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise InvalidJose("Not a signing key") from error
        raise InvalidJose("Not a signing key")

    @classmethod
    def _of(cls, algorithm: SigningAlgorithm, private: ECKey | RSAKey) -> Self:
        if not private.is_private:
            raise InvalidJose("Not a signing key")
        return cls(algorithm, import_public_key(private.as_dict(private=False)), private)

    def dump(self) -> bytes:
        """The private key as a JWK. Secret."""
        return json.dumps({**self._private.as_dict(private=True), "alg": self.algorithm}).encode()

    @property
    def key_id(self) -> str:
        """The ``kid`` in tokens and in the key set."""
        return self.public.thumbprint

    def public_jwk(self) -> Json:
        """The public key as a JWK, as published in the key set (RFC 7517)."""
        jwk: Json = dict(self._private.as_dict(private=False))
        return {**jwk, "kid": self.key_id, "use": "sig", "alg": self.algorithm}

    def sign(self, claims: Mapping[str, object], *, media_type: str) -> str:
        """Sign a compact token with ``claims``; ``media_type`` is its ``typ``, such as
        ``at+jwt``."""
        header = {"alg": self.algorithm, "typ": media_type, "kid": self.key_id}
        return self._signed(header, claims)

    def prove(self, claims: Mapping[str, object]) -> str:
        """Sign a DPoP proof with ``claims`` and the public key (RFC 9449, section 4.2)."""
        jwk = dict(self._private.as_dict(private=False))
        return self._signed({"alg": self.algorithm, "typ": "dpop+jwt", "jwk": jwk}, claims)

    def _signed(self, header: Mapping[str, object], claims: Mapping[str, object]) -> str:
        payload = json.dumps(claims, separators=(",", ":")).encode()
        return jws.serialize_compact(
            dict(header), payload, self._private, algorithms=[self.algorithm]
        )
