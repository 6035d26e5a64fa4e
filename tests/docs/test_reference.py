"""The reference pages say what the program has, and are up to date."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from podstead.config.settings import settings_table
from podstead.config.table import Sources
from podstead.web.errors import STATUSES
from scripts.reference_pages import commands_page, settings_page
from tests.support.features import LEFT_OUT

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(bool(LEFT_OUT), reason="the pages are about all features")
def test_the_generated_pages_are_up_to_date() -> None:
    """`make docs` writes them."""
    command = [sys.executable, "-m", "scripts.generate_docs", "--check"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_every_status_of_a_refusal_is_documented() -> None:
    page = (REPOSITORY / "docs/build/errors.md").read_text(encoding="utf-8")
    for status, reason in STATUSES.values():
        assert f"| {status} | {reason} | " in page


def test_every_setting_is_documented_with_each_of_its_spellings() -> None:
    page = settings_page()
    for row in settings_table():
        assert f"### {row.name}\n\n{row.meaning}" in page
        assert (re.search(rf"`{row.option}[ `]", page) is not None) == (
            Sources.OPTION in row.sources
        )
        assert f"`{row.variable}`" in page


def test_every_command_is_documented() -> None:
    page = commands_page()
    commands = ["start", "token create", "token list", "token revoke", "keys list", "keys rotate"]
    for command in commands:
        assert f"## podstead {command}\n" in page
