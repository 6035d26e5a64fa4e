"""Reads settings: options take precedence over variables, and variables over the file.

Each source supplies text, which the kinds of the table parse. Every message names the source as the
operator wrote it: ``--port``, ``PODSTEAD_PORT`` or ``port in podstead.toml``.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podstead.config import rules
from podstead.config.settings import Settings, settings_table
from podstead.config.table import VARIABLE_PREFIX, Row, Sources
from podstead.core.errors import StartRefused
from podstead.features import LEFT_OUT_VARIABLE, features

OptionValue = str | bool | tuple[str, ...] | None
"""The value of one option on the command line: a text, several texts, or a switch."""

_SEPARATORS = re.compile(r"[\s,]+")
_OTHER_VARIABLES = frozenset(
    {
        "PODSTEAD_TOKEN",
        "PODSTEAD_TOKEN_SECRET",
        "PODSTEAD_TOKEN_SECRET_PREVIOUS",
        LEFT_OUT_VARIABLE,
    }
)
"""Further variables, of clients and for secrets. :func:`settings_table` has all others."""
_VARIABLE_OF_KUBERNETES = re.compile(r"PODSTEAD_(SERVICE_|PORT_[0-9])")
"""The variables that Kubernetes sets for a service named podstead."""


@dataclass(frozen=True, slots=True)
class _Given:
    """The texts that one source supplies for one setting."""

    label: str
    texts: tuple[str, ...]
    folder: Path
    """The folder that relative paths are relative to."""


@dataclass(frozen=True, slots=True)
class _File:
    """A parsed configuration file."""

    path: Path
    content: Mapping[str, object]


def read_settings(
    options: Mapping[str, OptionValue], environment: Mapping[str, str], *, folder: Path
) -> Settings:
    """Collect and validate all settings.

    ``options`` are the options on the command line, by field name. Paths in options and variables
    are relative to ``folder``, those in the file to the folder that contains it. Reads the
    configuration file and the secret file. Raises StartRefused.
    """
    file = None
    row = next(row for row in settings_table() if row.field == "config")
    config = _from_option(row, options, folder) or _from_variable(row, environment, folder)
    if config is not None:
        file = _read_file(_parse(row, config), label=config.label)
    # The base URL's default follows from other settings.
    values: dict[str, Any] = {"base_url": "", "root": folder / Settings().root}
    set_by: list[tuple[str, str]] = []
    for row in settings_table():
        given = (
            _from_option(row, options, folder)
            or _from_variable(row, environment, folder)
            or _from_file(row, file)
        )
        if given is not None:
            values[row.field] = _parse(row, given)
            set_by.append((row.field, given.label))
    settings = Settings().with_values(**values, set_by=tuple(set_by))
    rules.check_together(settings)
    settings = rules.with_base_url(settings)
    rules.check_provider_url(settings)
    for feature in features():
        feature.check_settings(settings)
    return rules.with_token_secrets(rules.with_terms_text(settings))


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """A message for each variable that looks like a setting but is none."""
    known = {
        row.variable for row in settings_table() if Sources.VARIABLE in row.sources
    } | _OTHER_VARIABLES
    ends = [name.removeprefix(VARIABLE_PREFIX) for name in known]
    warnings = []
    for name in sorted(environment.keys() - known):
        if name.startswith(VARIABLE_PREFIX) and not _VARIABLE_OF_KUBERNETES.match(name):
            end = name.removeprefix(VARIABLE_PREFIX)
            close = difflib.get_close_matches(end, ends)
            # Transposed letters are the most frequent mistake.
            close.sort(key=lambda other: sorted(other) != sorted(end))
            question = f" Did you mean {VARIABLE_PREFIX}{close[0]}?" if close else ""
            warnings.append(f"{name} is not a setting and has no effect.{question}")
    return warnings


def _from_option(row: Row[Any], options: Mapping[str, OptionValue], folder: Path) -> _Given | None:
    value = options.get(row.field)
    if value is None or value == ():
        return None
    if isinstance(value, bool):
        value = str(value).lower()
    texts = value if isinstance(value, tuple) else (value,)
    return _Given(row.option, texts, folder)


def _from_variable(row: Row[Any], environment: Mapping[str, str], folder: Path) -> _Given | None:
    # Container configurations often leave a variable out by making it empty.
    text = environment.get(row.variable, "").strip()
    if not text or Sources.VARIABLE not in row.sources:
        return None
    texts = tuple(filter(None, _SEPARATORS.split(text))) if row.repeated else (text,)
    return _Given(row.variable, texts, folder)


def _from_file(row: Row[Any], file: _File | None) -> _Given | None:
    if file is None or row.name not in file.content:
        return None
    label = f"{row.name} in {file.path}"
    value = file.content[row.name]
    if row.repeated and not isinstance(value, list):
        raise StartRefused(f'{label} is a single value, but must be a list, such as ["…", "…"].')
    items = value if isinstance(value, list) and row.repeated else [value]
    texts = tuple(_toml_text(row, item, label) for item in items)
    return _Given(label, texts, file.path.parent)


def _toml_text(row: Row[Any], value: object, label: str) -> str:
    # Compared exactly, since True is an int to isinstance.
    if row.kind.has_units and isinstance(value, str):
        return value
    if type(value) is not row.kind.toml_type and value not in row.kind.words:
        quotes = "in quotes" if row.kind.toml_type is str else "without quotes"
        raise StartRefused(f"{label} has the wrong type: it {row.kind.expected}, {quotes}.")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse(row: Row[Any], given: _Given) -> Any:  # noqa: ANN401 - the table's rows differ in type
    values = tuple(_parse_one(row, text, given) for text in given.texts)
    return values if row.repeated else values[-1]


def _parse_one(row: Row[Any], text: str, given: _Given) -> object:
    try:
        value = row.kind.parse(text)
    except ValueError:
        found = "is not valid: it" if row.secret else f"is '{text}', but"
        raise StartRefused(f"{given.label} {found} {row.kind.expected}.") from None
    return given.folder / value if isinstance(value, Path) else value


def _read_file(path: Path, *, label: str) -> _File:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StartRefused(f"{label}: cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise StartRefused(f"{label}: {path} is not UTF-8 text.") from error
    except tomllib.TOMLDecodeError as error:
        raise StartRefused(f"{label}: {path} is not valid TOML: {error}.") from error
    known = [row.name for row in settings_table() if Sources.FILE in row.sources]
    for key, value in content.items():
        if key not in known:
            hint = _hint(key, known, is_table=isinstance(value, dict))
            raise StartRefused(f"{path} has the key '{key}', {hint}")
    return _File(path, content)


def _hint(key: str, known: list[str], *, is_table: bool) -> str:
    name = key.replace("_", "-").lower()
    if name not in known and any(row.name == name for row in settings_table()):
        return "which cannot be set in a file. Remove it."
    if is_table:
        return f"which is not a setting. Settings are top-level keys: remove the line [{key}]."
    close = [name] if name in known else difflib.get_close_matches(name, known, n=2)
    advice = "Did you mean " + " or ".join(f"'{one}'" for one in close) + "?"
    return f"which is not a setting. {advice if close else 'Remove it.'}"
