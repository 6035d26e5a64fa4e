"""Which features a test is about, and which are left out of this run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from podstead import features
from podstead.features import LEFT_OUT_VARIABLE

_FOLDER = Path(__file__).parents[1] / "features"
_SHIPPED = Path(features.__file__).parent
LEFT_OUT = frozenset(filter(None, os.environ.get(LEFT_OUT_VARIABLE, "").split(","))) | {
    name for name in features.SHIPPED if not (_SHIPPED / name / "__init__.py").is_file()
}
"""By the environment, or since their folders were deleted."""

GIT_OPTIONS = () if "git" in LEFT_OUT else ("--git",)
"""Turns git on, where a server of a test that is about something else has it, too."""
QUERIES = {"QUERY"} if {"sparql", "search"} - LEFT_OUT else set[str]()
"""The method of queries, where containers have one."""
WITHOUT_SEARCH = () if "search" in LEFT_OUT else ("--no-search",)
"""For servers of which nothing may be done in the background."""
ONLY_NAMES: dict[str, Any] = {} if "search" in LEFT_OUT else {"search": False}
"""The settings of a server whose search box searches names only."""
WEBID_TLS_OPTIONS = () if "webid_tls" in LEFT_OUT else ("--webid-tls",)
"""Has the TLS listener request client certificates, likewise."""
NO_HISTORY_OPTIONS = (
    () if "history" in LEFT_OUT else ("--keep-deleted", "0", "--keep-versions", "0")
)
"""Keeps nothing of the past, where a test is about files that are not needed any more."""


def features_of(item: pytest.Item) -> list[str]:
    """Those that its marks name, and the one whose folder it is in. What needs the package git is
    about the feature git."""
    marked = [name for mark in item.iter_markers("feature") for name in mark.args]
    marked += [name for mark in item.iter_markers("needs") for name in mark.args if name == "git"]
    if item.path.is_relative_to(_FOLDER) and item.path.parent != _FOLDER:
        marked.append(item.path.relative_to(_FOLDER).parts[0])
    return marked
