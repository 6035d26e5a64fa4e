"""Determines the media type of a file by its extension.

Other Solid servers take it from the table of the npm package ``mime-types``. The table here
(``media_types.txt``: a type and its extensions on each line) agrees with it, as a test checks, and
has the types that people keep in pods; others are reported, not guessed.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

OCTET_STREAM: Final = "application/octet-stream"

_TABLE: Final = files("podstead.features.importers").joinpath("media_types.txt").read_text("utf-8")
_TYPES: Final = {
    extension: line.split()[0] for line in _TABLE.splitlines() for extension in line.split()[1:]
}


def extension_of(name: str) -> str:
    """The extension of a file name in lower case, without the dot; empty if it has none."""
    _, dot, extension = name.rpartition(".")
    return extension.lower() if dot else ""


def type_by_extension(extension: str) -> str | None:
    """The media type; ``None`` for an extension that is not known."""
    return _TYPES.get(extension)
