"""What the documents name exists: options, settings, commands, pages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from podstead.cli.commands import main
from podstead.config.settings import settings_table
from podstead.config.table import Sources
from podstead.features import LEFT_OUT_VARIABLE
from tests.support.features import LEFT_OUT

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    REPOSITORY / "README.md",
    REPOSITORY / "CHANGELOG.md",
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "SECURITY.md",
    *REPOSITORY.glob("docs/**/*.md"),
]

ABOUT_ALL = pytest.mark.skipif(bool(LEFT_OUT), reason="the documentation is about all features")


def name_of(document: Path) -> str:
    return str(document.relative_to(REPOSITORY))


@ABOUT_ALL
def test_every_link_leads_to_a_page() -> None:
    for document in DOCUMENTS:
        links = re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8"))
        for link in links:
            if not link.startswith(("http://", "https://")):
                target = document.parent / link.partition("#")[0]
                assert target.exists(), (name_of(document), link)


@ABOUT_ALL
def test_every_toml_example_holds_known_settings() -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        known = {row.name for row in settings_table() if Sources.FILE in row.sources}
        for example in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
            assert set(tomllib.loads(example)) <= known, name_of(document)


@ABOUT_ALL
def test_every_command_line_parses() -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"(?:^|/bin/)(podstead [a-z].*)$", text, re.MULTILINE):
            words = re.split(r"\s+", line.strip())[1:]
            if "[OPTIONS]" in words:  # a usage line
                continue
            command: click.Command = main
            while isinstance(command, click.Group):
                command = _subcommand(command, words.pop(0))
            command.make_context("podstead", words)


def _subcommand(group: click.Group, name: str) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None, name
    return found


def _variables_of(command: click.Command) -> Iterator[str]:
    """Those of options that are no settings."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from _variables_of(_subcommand(command, name))
    for parameter in command.params:
        if isinstance(parameter.envvar, str):
            yield parameter.envvar


@ABOUT_ALL
def test_every_variable_exists() -> None:
    of_settings = {row.variable for row in settings_table()}
    variables = of_settings | {*_variables_of(main), LEFT_OUT_VARIABLE}
    for document in DOCUMENTS:
        found = set(re.findall(r"PODSTEAD_[A-Z_]+\b", document.read_text(encoding="utf-8")))
        assert found <= variables, name_of(document)


def test_every_file_of_code_that_is_named_with_its_folder_exists() -> None:
    sources = [REPOSITORY, REPOSITORY / "src", REPOSITORY / "src/podstead"]
    for document in DOCUMENTS:
        for name in re.findall(r"`((?:[\w.-]+/)+[\w-]+\.py)", document.read_text(encoding="utf-8")):
            is_left_out = not LEFT_OUT.isdisjoint(name.split("/"))
            assert is_left_out or any((source / name).is_file() for source in sources), (
                f"{name_of(document)} names {name}"
            )


def test_no_document_names_a_package_registry_or_a_path_of_a_workplace() -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert not re.search(r"pypi\.org|npmjs\.|/root/|/home/", text), name_of(document)


def test_the_changes_name_no_removed_setting_as_one_that_exists() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    removed = text.partition("- Remove these settings")[2].partition("\n\n")[0]
    names = re.findall(r"`([a-z-]+)`", removed)
    assert len(names) > 20
    assert [name for name in names if text.count(f"`{name}`") > 1] == []


def test_the_prose_on_benchmarks_leaves_figures_to_the_tables() -> None:
    text = (REPOSITORY / "docs/evidence/benchmarks.md").read_text(encoding="utf-8")
    prose = text.partition("## Where Podstead falls short")[2].partition("\n## ")[0]
    assert prose
    assert re.findall(r"\d+", re.sub(r"\([^)\s]+\)", "", prose)) == []
