"""The triples that state an RSA key in a WebID document, and patches to add and remove them."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core import vocab
from podstead.rdf.rsa_keys import OwnKey, key_label

_PREFIXES = f"@prefix cert: <{vocab.CERT}>.\n@prefix xsd: <{vocab.XSD}>.\n"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key to add to a WebID. ``web_id`` must be valid in Turtle without escaping.

    The key gets an IRI in the WebID's document, so that it can be inserted by an N3 Patch and found
    again for removal.
    """

    web_id: str
    modulus: int
    exponent: int

    @property
    def document(self) -> str:
        """The URL of the document that will state the key."""
        return self.web_id.partition("#")[0]

    @property
    def name(self) -> str:
        """The key's IRI."""
        return f"{self.document}#key-{key_label(self.modulus)}"

    def turtle(self) -> str:
        """The statements, as a Turtle document."""
        return f"{_PREFIXES}\n{self._triples()}"

    def insertion(self) -> str:
        """An N3 Patch that adds the statements (Solid Protocol, section 5.3.1)."""
        return (
            f"{_PREFIXES}@prefix solid: <{vocab.SOLID}>.\n\n"
            f"[] a solid:InsertDeletePatch; solid:inserts {{\n{self._triples()}}}.\n"
        )

    def _triples(self) -> str:
        digits = f"{self.modulus:X}"
        even = digits.zfill(len(digits) + len(digits) % 2)  # xsd:hexBinary consists of octets
        return (
            f"<{self.web_id}> cert:key <{self.name}>.\n"
            f"<{self.name}> a cert:RSAPublicKey;\n"
            f'    cert:modulus "{even}"^^xsd:hexBinary;\n'
            f"    cert:exponent {self.exponent}.\n"
        )


def removal(web_id: str, key: OwnKey) -> str:
    """A SPARQL Update that removes a key from the WebID's document.

    It also removes the description of the key, unless another subject has the key, too. The key is
    found by its modulus, because it can be a blank node.
    """
    found = f"?key <{vocab.CERT_MODULUS}> {key.literal}"
    link = f"<{web_id}> <{vocab.CERT_KEY}> ?key"
    about = "" if key.is_shared else " ?key ?predicate ?object ."
    return f"DELETE {{ {link} .{about} }} WHERE {{ {link} . {found} .{about} }}"
