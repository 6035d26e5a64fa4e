"""How is an RSA key stated in a WebID's document, and taken out again? Triples and patches."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core import vocab
from podstead.rdf.rsa_keys import OwnKey, key_label

_PREFIXES = f"@prefix cert: <{vocab.CERT}>.\n@prefix xsd: <{vocab.XSD}>.\n"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that a WebID is to have. ``web_id`` must be fit to stand in Turtle as it is.

    The key gets a name in the WebID's document: N3 patches insert no nodes without one, and what
    has a name is found again when it is to be removed.
    """

    web_id: str
    modulus: int
    exponent: int

    @property
    def document(self) -> str:
        """The URL of the document that is to state the key."""
        return self.web_id.partition("#")[0]

    @property
    def name(self) -> str:
        """The key's IRI."""
        return f"{self.document}#key-{key_label(self.modulus)}"

    def turtle(self) -> str:
        """The statements, as a Turtle document."""
        return f"{_PREFIXES}\n{self._triples()}"

    def insertion(self) -> str:
        """An N3 Patch that adds them (Solid Protocol section 5.3.1)."""
        return (
            f"{_PREFIXES}@prefix solid: <{vocab.SOLID}>.\n\n"
            f"[] a solid:InsertDeletePatch; solid:inserts {{\n{self._triples()}}}.\n"
        )

    def _triples(self) -> str:
        digits = f"{self.modulus:X}"
        even = digits.zfill(len(digits) + len(digits) % 2)  # xsd:hexBinary is made of octets
        return (
            f"<{self.web_id}> cert:key <{self.name}>.\n"
            f"<{self.name}> a cert:RSAPublicKey;\n"
            f'    cert:modulus "{even}"^^xsd:hexBinary;\n'
            f"    cert:exponent {self.exponent}.\n"
        )


def removal(web_id: str, key: OwnKey) -> str:
    """A SPARQL Update that takes a key out of the WebID's document, wherever it is stated there.

    What is said about the key goes as well, unless it is somebody else's too. Nodes without a name
    can only be found by what is said about them.
    """
    found = f"?key <{vocab.CERT_MODULUS}> {key.literal}"
    link = f"<{web_id}> <{vocab.CERT_KEY}> ?key"
    about = "" if key.is_shared else " ?key ?predicate ?object ."
    return f"DELETE {{ {link} .{about} }} WHERE {{ {link} . {found} .{about} }}"
