"""CommandGroup print nothing that a terminal would act on."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from podstead import cli
from podstead.cli.commands import main
from podstead.cli.output import CommandFailed, echo, print_json, table_lines
from podstead.cli.running import Output, ProgressLine
from podstead.core.messages import printable

CHARACTERS = st.text(st.characters() | st.sampled_from("\x1b\n\r\u202e\u2066\x9b\x00\u200b\ud800"))
FORBIDDEN = {"click.echo", "click.secho", "click.confirm", "click.ClickException", "print",
             "sys.stdout.write", "sys.stderr.write", "click.echo_via_pager"}  # fmt: skip
ALLOWED = {
    "output": FORBIDDEN,
    "progress": {"sys.stderr.write"},  # what it writes is tested below
    "options": {"click.echo"},  # the help
}


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below this one."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")
    else:
        yield path, command


def calls(source: str) -> set[str]:
    return {
        ast.unparse(each.func) for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Call)
    }


@pytest.mark.parametrize(("path", "command"), list(commands(main, "podstead")), ids=str)
def test_every_command_prints_by_the_functions_of_one_module(
    path: str, command: click.Command
) -> None:
    assert command.callback is not None
    module = inspect.getmodule(inspect.unwrap(command.callback))
    assert module is not None
    assert not calls(inspect.getsource(module)) & FORBIDDEN, path


@pytest.mark.parametrize(
    "file", sorted(Path(cli.__file__).parent.glob("*.py")), ids=lambda p: p.stem
)
def test_every_module_of_the_commands_does(file: Path) -> None:
    assert not calls(file.read_text()) & (FORBIDDEN - ALLOWED.get(file.stem, set()))


@given(CHARACTERS)
def test_what_is_printable_shows_as_itself(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()


@given(CHARACTERS)
def test_a_line_stays_one_line(text: str) -> None:
    @click.command()
    def command() -> None:
        echo(text)
        Output(None, table_lines(("A", "B"), [(text, "b")])).show(as_json=False)
        raise CommandFailed(text)

    ended = CliRunner().invoke(command)
    lines = ended.output.split("\n")
    assert len(lines) == 5
    assert all(line.isprintable() for line in lines)


@given(CHARACTERS.filter(lambda text: "\ud800" not in text))
def test_json_says_the_same_and_is_printable(text: str) -> None:
    @click.command()
    def command() -> None:
        print_json({"name": text})

    output = CliRunner().invoke(command).output
    assert json.loads(output) == {"name": text}
    assert all(line.isprintable() for line in output.split("\n"))


def test_progress_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLine()("Importing \x1b[31m\nred", 1, 2)
    assert capsys.readouterr().err == "Importing \\x1b[31m\\nred\n"
