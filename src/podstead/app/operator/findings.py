"""What does ``podstead doctor`` find? Facts, warnings and problems, each with its remedy."""

from __future__ import annotations

from enum import Enum

import msgspec


class Severity(Enum):
    """How bad a finding is."""

    GOOD = "good"
    SKIPPED = "skipped"
    """It could not be looked at, because of another finding or because it does not apply."""
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True):
    """One finding. ``remedy`` says what to do; empty if there is nothing to do."""

    check: str
    severity: Severity
    detail: str
    remedy: str = ""


def good(check: str, detail: str) -> Finding:
    """What is as it should be."""
    return Finding(check, Severity.GOOD, detail)


def skipped(check: str, detail: str) -> Finding:
    """What was not looked at."""
    return Finding(check, Severity.SKIPPED, detail)


def warning(check: str, detail: str, remedy: str) -> Finding:
    """What may become a problem, or is one for some."""
    return Finding(check, Severity.WARNING, detail, remedy)


def problem(check: str, detail: str, remedy: str) -> Finding:
    """What keeps somebody from using the server, or endangers data."""
    return Finding(check, Severity.PROBLEM, detail, remedy)
