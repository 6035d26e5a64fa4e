"""What ``podstead doctor`` finds: facts, warnings and problems, each with its remedy."""

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


class Diagnosis(msgspec.Struct, frozen=True):
    """One finding. ``remedy`` says what to do; empty if there is nothing to do."""

    check: str
    severity: Severity
    detail: str
    remedy: str = ""


def good(check: str, detail: str) -> Diagnosis:
    """What is as it should be."""
    return Diagnosis(check, Severity.GOOD, detail)


def skipped(check: str, detail: str) -> Diagnosis:
    """What was not looked at."""
    return Diagnosis(check, Severity.SKIPPED, detail)


def warning(check: str, detail: str, remedy: str) -> Diagnosis:
    """What may become a problem, or is one for some."""
    return Diagnosis(check, Severity.WARNING, detail, remedy)


def serious(check: str, detail: str, remedy: str) -> Diagnosis:
    """What keeps somebody from using the server, or endangers data."""
    return Diagnosis(check, Severity.PROBLEM, detail, remedy)
