"""The page on trouble names messages, errors and codes that the server has."""

from __future__ import annotations

import re

import pytest

from tests.support.processes import REPOSITORY

PAGE = (REPOSITORY / "docs/operate/troubleshoot.md").read_text(encoding="utf-8")
SYMPTOMS = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)
SAID = sorted({said for symptom in SYMPTOMS for said in re.findall(r"`([^`]+)`", symptom)})


@pytest.mark.parametrize("said", [each for each in SAID if " " in each or "_" in each])
def test_what_the_page_quotes_is_what_the_server_says(said: str) -> None:
    sources = (REPOSITORY / "src/podstead").rglob("*.py")
    # A text may go over two lines.
    assert any(said in re.sub(r'"\s*\n\s*"', "", source.read_text()) for source in sources)


def test_every_status_on_the_page_is_one_of_ours() -> None:
    errors = (REPOSITORY / "docs/build/errors.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| (\d{3}) \|", errors, re.MULTILINE))
    named = {code for symptom in SYMPTOMS for code in re.findall(r"\b([45]\d\d)\b", symptom)}
    assert named
    assert named <= known
