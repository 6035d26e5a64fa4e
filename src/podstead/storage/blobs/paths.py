"""Where blobs and drafts are below the directory of large bodies, or the prefix in S3."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from podstead.storage.records import BlobId

DRAFTS: Final = "drafts"
"""The directory of bodies that are still being received."""

UPLOADS: Final = "uploads"
"""The directory of the drafts of resumable uploads, and the prefix of their parts."""

BODIES: Final = "bodies"
"""The prefix of blobs that are objects."""

DRAFT_BODY: Final = "body"


def blob_path(blobs: Path, blob: BlobId) -> Path:
    """The file of a blob, whether it exists or not."""
    return blobs / blob[:2] / blob[2:4] / blob


def draft_path(blobs: Path, name: str) -> Path:
    """The file of the draft of an upload, whether it exists or not."""
    return blobs / UPLOADS / name / DRAFT_BODY
