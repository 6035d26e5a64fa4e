"""The location of large bodies in S3."""

import re
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from podstead.core.value import Value

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"(?:[A-Za-z0-9._=-]{1,100}/)*[A-Za-z0-9._=-]{1,100}|")
_PARAMETERS: Final = frozenset({"endpoint", "region", "encryption", "kms-key"})
_ENCRYPTIONS: Final = frozenset({"AES256", "aws:kms", "aws:kms:dsse"})


class S3Location(Value):
    """A bucket, and the prefix of the names of all objects in it.

    What is ``None`` is up to the environment.
    """

    bucket: str
    prefix: str
    endpoint: str | None = None
    region: str | None = None
    encryption: str | None = None
    kms_key: str | None = None

    @property
    def url(self) -> str:
        """The URL without parameters, which says where the bodies are."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def parse_s3_location(text: str) -> S3Location:
    """Parse ``s3://bucket/prefix?parameters``. Raises ValueError."""
    parts = urlsplit(text)
    prefix = parts.path.strip("/")
    if parts.scheme != "s3" or not _BUCKET.fullmatch(parts.netloc) or parts.fragment:
        raise ValueError(text)
    if not _PREFIX.fullmatch(prefix) or {".", ".."} & set(prefix.split("/")):
        raise ValueError(text)
    pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    given = dict(pairs)
    if len(given) < len(pairs) or not given.keys() <= _PARAMETERS or "" in given.values():
        raise ValueError(text)
    endpoint, encryption = given.get("endpoint"), given.get("encryption")
    if endpoint is not None and not endpoint.startswith(("https://", "http://")):
        raise ValueError(text)
    if encryption is not None and encryption not in _ENCRYPTIONS:
        raise ValueError(text)
    return S3Location(
        bucket=parts.netloc,
        prefix=prefix,
        endpoint=endpoint,
        region=given.get("region"),
        encryption=encryption,
        kms_key=given.get("kms-key"),
    )
