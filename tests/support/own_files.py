"""Which files below a folder belong to this repository?"""

from __future__ import annotations

from pathlib import Path

_INSTALLED = {".venv", "node_modules", "__pycache__"}


def own_files(folder: Path, pattern: str) -> list[Path]:
    """The files below a folder that are of this repository: none of an installed package."""
    return [
        path
        for path in sorted(folder.rglob(pattern))
        if not _INSTALLED.intersection(path.relative_to(folder).parts)
    ]
