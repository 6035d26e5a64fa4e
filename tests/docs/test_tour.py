"""Does the tour show each picture that its script takes, and no other?"""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image

from tests.support.tour_pictures import FOLDER, MAX_BYTES, PICTURES

_TOUR = Path(__file__).resolve().parents[2] / "docs/use/tour.md"
_TEXT = _TOUR.read_text(encoding="utf-8")


def test_each_heading_has_the_picture_of_the_script_below_it() -> None:
    shown = re.findall(
        r"^## (.+?)\n(?:[^#!\n][^\n]*\n|\n)*!\[[^\]]+\]\(([^)]+)\)$", _TEXT, re.MULTILINE
    )
    assert [heading for heading, _ in shown] == re.findall(r"^## (.+)$", _TEXT, re.MULTILINE)
    taken = [(each.heading, each.path) for each in PICTURES]
    assert [(heading, (_TOUR.parent / path).resolve()) for heading, path in shown] == taken


def test_each_picture_is_there_and_small() -> None:
    assert set(FOLDER.iterdir()) == {each.path for each in PICTURES}
    for each in PICTURES:
        assert each.path.stat().st_size < MAX_BYTES
        with Image.open(each.path) as picture:
            assert picture.width == (360 if each.on_phone else 1280)
