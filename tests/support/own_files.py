"""Which files below a folder belong to this repository?"""

from __future__ import annotations

import os
from fnmatch import filter as matching
from pathlib import Path

_INSTALLED = {".venv", "node_modules", "__pycache__"}


def own_files(folder: Path, pattern: str) -> list[Path]:
    """The files below a folder that are of this repository: none of an installed package."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _INSTALLED]
        found += [Path(place, name) for name in matching(names, pattern)]
    return sorted(found)
