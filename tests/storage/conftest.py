"""A data root for tests of the storage engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.storage.layout import RootLayout
from podstead.storage.root import prepare_root


@pytest.fixture
def layout(tmp_path: Path) -> RootLayout:
    return prepare_root(tmp_path / "data")
