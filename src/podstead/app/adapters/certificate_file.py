"""Reads when the certificate in a file ends."""

from pathlib import Path

from cryptography import x509


def certificate_end_s(file: Path) -> float | None:
    """When the first certificate in a PEM file ends, in Unix seconds; ``None`` if that cannot be
    read."""
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError):
        return None
    return certificate.not_valid_after_utc.timestamp()
