"""Draws the text out of stored documents: short texts in a thread, everything else in a process
with limits, so that a document that was made to do harm is found by its name only."""

import asyncio
from typing import Final

import msgspec

from podstead.app.adapters.guarded_processes import GuardedProcesses
from podstead.core.errors import PodsteadError
from podstead.features.search import extraction
from podstead.storage.open_body import OpenBody, whole_body
from podstead.storage.records import Metadata
from podstead.web.pages.addresses import shown_name

MAX_BYTES_WITHOUT_PROCESS: Final = 32 * 1024
MEMORY_MIB: Final = 768
PROCESSOR_S: Final = 20
TIME_LIMIT_S: Final = 120


class Extractor:
    """The extraction of one worker."""

    def __init__(
        self,
        *,
        memory_mib: int = MEMORY_MIB,
        processor_s: int = PROCESSOR_S,
        time_limit_s: float = TIME_LIMIT_S,
    ) -> None:
        self._processes = GuardedProcesses(
            "podstead.features.search.extraction",
            refusal="Too many documents are being read for the search",
            memory_mib=memory_mib,
            processor_s=processor_s,
            time_limit_s=time_limit_s,
            max_processes=2,
        )

    async def __call__(self, metadata: Metadata, body: OpenBody) -> extraction.Extracted | None:
        """What the index stores of a document; ``None`` if it has no text, is broken, encrypted or
        too large. Raises StorageError."""
        name = shown_name(metadata.path)
        try:
            media_type = extraction.media_type_of(metadata.content_type, name)
        except PodsteadError:
            return None
        if metadata.size_bytes > extraction.MAX_BODY_BYTES or not extraction.has_text(
            media_type, name
        ):
            return None
        if metadata.size_bytes <= MAX_BYTES_WITHOUT_PROCESS and extraction.needs_no_process(
            media_type
        ):
            content = await whole_body(body)
            try:
                made = await asyncio.to_thread(
                    extraction.extract, metadata.content_type, name, content
                )
            except extraction.NoText:
                return None
            return made
        encoded = await self._processes.carry_out(
            "extract",
            {"content_type": metadata.content_type, "name": name},
            lambda: whole_body(body),
            requester="",
        )
        return msgspec.json.decode(encoded, type=extraction.Extracted) if encoded else None
