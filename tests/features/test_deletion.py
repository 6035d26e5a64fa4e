"""A feature is removed by deleting its two folders: nothing that stays needs them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstead.features import SHIPPED
from tests.support.processes import REPOSITORY

CODE = ("src", "tests", "scripts", "bench")
FOLDERS = ("src/podstead/features", "tests/features")
CACHES = shutil.ignore_patterns("__pycache__", "node_modules")


def _imported(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if ".features" in text else ():
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_only_what_is_in_its_folders_imports_a_feature() -> None:
    """Also in a function, which would fail the check of types. A test that needs a further feature
    has a mark and ``pytest.importorskip``."""
    feature = re.compile(rf"(?:podstead|tests)\.features\.({'|'.join(SHIPPED)})\b")
    for folder in CODE:
        for path in (REPOSITORY / folder).rglob("*.py"):
            if "node_modules" in path.parts:
                continue
            for module in _imported(path):
                found = feature.match(module)
                assert not found or found[1] in path.parts, f"{path} imports {module}"


def test_no_import_contract_names_a_feature() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert set(re.findall(r"podstead\.features\.(\w+)", text)) & set(SHIPPED) == set()


@pytest.fixture(scope="module")
def without_features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository in which the folders of all features have been deleted."""
    copy = tmp_path_factory.mktemp("repository")
    for entry in REPOSITORY.iterdir():
        if entry.name in {"src", "tests"}:
            shutil.copytree(entry, copy / entry.name, ignore=CACHES)
        else:
            (copy / entry.name).symlink_to(entry)
    for name in SHIPPED:
        for folder in FOLDERS:
            shutil.rmtree(copy / folder / name, ignore_errors=True)
    return copy


def _run(program: str, *arguments: str, folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-5000:]


def test_the_import_contracts_hold_without_features(without_features: Path) -> None:
    _run("lint-imports", "--no-logo", "--no-cache", folder=without_features)


def test_all_other_tests_are_found_without_features(without_features: Path) -> None:
    _run("pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", folder=without_features)
