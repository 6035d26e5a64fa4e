"""Does the README of the tests name the folders that there are?"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.own_files import own_files

_TESTS = Path(__file__).resolve().parents[1]
_TEXT = (_TESTS / "README.md").read_text(encoding="utf-8")
_ROWS = re.findall(r"^\| `(\w+)/` \| (.*)$", _TEXT, re.MULTILINE)


def test_each_folder_has_one_row() -> None:
    folders = {
        path.name
        for path in _TESTS.iterdir()
        if path.is_dir() and not path.name.startswith(("_", "."))
    }
    assert sorted(folder for folder, _ in _ROWS) == sorted(folders)


def test_each_file_and_folder_that_is_named_exists() -> None:
    for folder, cells in _ROWS:
        for name in re.findall(r"`([\w/]+\.py)`", cells):
            assert (_TESTS / folder / name).is_file(), name
    for name in re.findall(r"`((?:\w+/)+\w+)`", _TEXT):
        assert (_TESTS / name).is_dir() or (_TESTS.parent / name).is_dir(), name
    for name in re.findall(r"ARGS=\"?(tests/[\w/]+)", _TEXT):
        assert (_TESTS.parent / name).is_dir(), name


def test_the_fake_clock_is_the_only_clock_of_the_tests() -> None:
    """Which the page says: a second one would differ in how it is advanced."""
    defining = {
        path.relative_to(_TESTS).as_posix()
        for path in own_files(_TESTS, "*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for member in node.body
        if isinstance(member, ast.FunctionDef) and member.name == "now_ms"
    }
    assert defining == {"support/clock.py"}


def test_conftest_files_contain_fixtures_only() -> None:
    """What else tests share is imported from ``support``."""
    others = [
        f"{path.relative_to(_TESTS)}: {node.name}"
        for path in own_files(_TESTS, "conftest.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if not node.name.startswith("pytest_")
        if not any("fixture" in ast.unparse(each) for each in node.decorator_list)
    ]
    assert others == []


def test_nothing_is_imported_from_the_tests_of_another_folder() -> None:
    """What several folders need is in ``support``."""
    shared = {"support", "conftest"}
    crossing = [
        f"{path.relative_to(_TESTS)}: {module}"
        for path in own_files(_TESTS, "*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for module in [getattr(node, "module", None) or ""]
        if module.startswith("tests.") and not module.startswith("tests.storage.engine_suite")
        if module.split(".")[1] not in {path.relative_to(_TESTS).parts[0], *shared}
    ]
    assert crossing == []
