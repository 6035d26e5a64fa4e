"""No regular expression of the server needs what Python before 3.11.5 gets wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Imports every module, and looks at each pattern that a module of the server compiles.
CHECK = """
import importlib, pkgutil, re, sys
from re import _compiler, _constants, _parser

WRONG = {_constants.POSSESSIVE_REPEAT, _constants.ATOMIC_GROUP}
found, seen = set(), 0

def has_wrong(part):
    if isinstance(part, _parser.SubPattern):
        return any(op in WRONG or has_wrong(arguments) for op, arguments in part)
    return isinstance(part, (list, tuple)) and any(map(has_wrong, part))

compile_pattern = _compiler.compile
def compile_checked(pattern, flags=0):
    global seen
    frame = sys._getframe(1)
    while frame.f_globals["__name__"].split(".")[0] in ("re", "functools", "importlib"):
        frame = frame.f_back
    if frame.f_globals["__name__"].split(".")[0] == PACKAGE:
        seen += 1
        if has_wrong(_parser.parse(pattern, flags)):
            found.add((frame.f_globals["__name__"], pattern))
    return compile_pattern(pattern, flags)
_compiler.compile = compile_checked
"""
IMPORT_ALL = """
import podstead
for module in pkgutil.walk_packages(podstead.__path__, "podstead."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(seen > 50, sorted(map(str, found)))
"""


def checked(package: str, code: str) -> str:
    script = f"PACKAGE = {package!r}\n{CHECK}{code}"
    return subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout


def test_no_pattern_is_possessive_or_atomic() -> None:
    assert checked("podstead", IMPORT_ALL) == "True []\n"


@pytest.mark.parametrize("pattern", ["a*+", "(?:(a++)|b)c", "(?=(?>a))", "a?+", "a{2}+"])
def test_such_a_pattern_is_found(pattern: str) -> None:
    found = checked("__main__", f"re.compile({pattern!r}); print(len(found))")
    assert found == "1\n"
