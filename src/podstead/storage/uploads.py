"""The records of resumable uploads.

The record of an upload in progress says how much of its draft is on disk (``blobs/uploads.py``).
The transaction that stores the resource replaces it by the record of a finished one, so that a
client whose connection breaks at that moment can learn that it is done.
"""

import msgspec

from podstead.core.conditional import Conditions
from podstead.core.identifiers import ResourcePath
from podstead.storage.record_store import RecordKind


class DraftGone(Exception):
    """There is no such draft, or it is shorter than it was; never a failure to read it."""


class UploadRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An upload: the PUT that it will become, and how far it is.

    ``agent`` is the IRI of the agent that may continue it, ``None`` for anybody who knows its URL.
    ``offset_bytes`` is how much is durable. As long as the upload is in progress that is less than
    ``size_bytes``, unless it is empty. ``description`` is for the client until then.
    """

    target: ResourcePath
    size_bytes: int
    content_type: str
    agent: str | None = None
    offset_bytes: int = 0
    if_match: str | None = None
    if_none_match: str | None = None
    description: str | None = None

    @property
    def conditions(self) -> Conditions:
        return Conditions(if_match=self.if_match, if_none_match=self.if_none_match)


UPLOADS = RecordKind("upload", UploadRecord)
"""The uploads in progress. The key is the name of the draft, the owner the path of the storage."""

FINISHED_UPLOADS = RecordKind("finished-upload", UploadRecord)
"""The finished ones, under the same keys, for a while."""
