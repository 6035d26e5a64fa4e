"""Base64url (RFC 4648, section 5) without padding, as JOSE and WebAuthn have it. Pure."""

import base64


def encoded(content: bytes) -> str:
    """The text of some bytes, without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def decoded(text: str) -> bytes:
    """The bytes of a text, with or without padding. Raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
