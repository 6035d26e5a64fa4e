"""Errors that people meet have codes, from which pages make texts in each language."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from textwrap import dedent

import podstead
from podstead.core.errors import RequestRefused

FOR_PROGRAMS = {
    "ApplicationMayNotIdentify",
    "FormerHost",
    "MissingFields",
    "NotContained",
    "PatchRefused",
    "SchemeNotAccepted",
    "SecondFactorNeeded",  # pages lead to the second step
    "TooManyChannels",
    "UnreadableForm",
}
"""What no page shows: refusals of requests that only programs send."""


def refusals() -> Iterator[type[RequestRefused]]:
    """Every class of the package."""
    for module in pkgutil.walk_packages(podstead.__path__, "podstead."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    waiting = [RequestRefused]
    while waiting:
        each = waiting.pop()
        waiting += each.__subclasses__()
        if each.__module__.startswith("podstead."):
            yield each


def has_fixed_sentence(error: type[RequestRefused]) -> bool:
    """Whether the class says an English sentence of its own, which no catalogue has."""
    if "__init__" not in vars(error):
        return False
    made = ast.parse(dedent(inspect.getsource(vars(error)["__init__"])))
    calls = [
        node
        for node in ast.walk(made)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__"
    ]
    return any(
        isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for call in calls
        for each in call.args
    )


def test_no_refusal_that_people_meet_says_a_sentence_without_a_code() -> None:
    assert {each.__name__ for each in refusals() if has_fixed_sentence(each)} == FOR_PROGRAMS
