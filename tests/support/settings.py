"""Settings as a command reads them, with no file and no variables but those that a test gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.config import Settings, StartRefused, read_settings
from podstead.config.sources import OptionValue


def read(
    options: dict[str, OptionValue] | None = None,
    environment: dict[str, str] | None = None,
    folder: Path = Path("/srv/pods"),
) -> Settings:
    """The settings."""
    return read_settings(options or {}, environment or {}, folder=folder)


def refusal(
    options: dict[str, OptionValue] | None = None, environment: dict[str, str] | None = None
) -> str:
    """Why these settings are refused."""
    with pytest.raises(StartRefused) as caught:
        read(options, environment)
    return str(caught.value)
