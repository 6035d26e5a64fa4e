"""A test that needs a Debian package is skipped by its name without it, and fails in CI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import pytest_runtest_setup


class NeedsCurl:
    """What of a test item is looked at."""

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        assert name == "needs"
        yield pytest.mark.needs("curl").mark


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setattr("tests.support.system_packages._search_path", lambda: str(tmp_path))
    return monkeypatch


def test_an_absent_package_skips_the_test_by_its_name(
    without_packages: pytest.MonkeyPatch,
) -> None:
    without_packages.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs the Debian package curl"):
        pytest_runtest_setup(NeedsCurl())  # type: ignore[arg-type]


def test_in_ci_an_absent_package_is_a_failure(without_packages: pytest.MonkeyPatch) -> None:
    without_packages.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="needs the Debian package curl"):
        pytest_runtest_setup(NeedsCurl())  # type: ignore[arg-type]


def test_a_package_that_is_there_lets_the_test_run(
    without_packages: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    curl = tmp_path / "curl"
    curl.touch(mode=0o755)
    without_packages.setenv("CI", "true")
    pytest_runtest_setup(NeedsCurl())  # type: ignore[arg-type]
