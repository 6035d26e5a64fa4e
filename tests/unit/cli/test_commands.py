"""What the command line accepts and prints, and its exit statuses."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from podstead import __version__, cli
from podstead.cli.commands import CommandGroup, main
from podstead.cli.options import settings_from, settings_options
from podstead.cli.output import CommandFailed, ProgressLine, echo, print_json, table_lines
from podstead.cli.running import Output
from podstead.cli.start import COMMON_SETTINGS, summary
from podstead.config import Settings, StartRefused
from podstead.config.settings import settings_table
from podstead.config.table import Sources
from podstead.core.errors import BadRequest, NotFound, PodsteadError, RootInUse, StorageError
from podstead.core.messages import printable


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("PODSTEAD_"):
            monkeypatch.delenv(name)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="podstead")


COMMON = (*COMMON_SETTINGS, *(row.name for row in settings_table() if row.common))


def test_the_version_is_reported() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"podstead {__version__}\n")


def without_spaces(text: str) -> str:
    """The text as it is, wherever lines are broken."""
    return "".join(text.split())


def test_the_whole_help_of_start_names_every_option_with_its_meaning() -> None:
    help_text = run("start", "--help-all").stdout
    for row in settings_table():
        if Sources.OPTION in row.sources:
            assert row.option in help_text
            assert without_spaces(row.meaning) in without_spaces(help_text)
        else:
            assert row.option + " " not in help_text


def test_the_help_of_start_names_the_common_options_and_where_the_others_are() -> None:
    result = run("start", "--help")
    listed = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", result.stdout, re.MULTILINE))
    of_the_command = {"--accept-loss", "--help", "--help-all"}
    assert listed == {*(f"--{name}" for name in COMMON), *of_the_command}
    for row in settings_table():
        if row.name in COMMON:
            assert without_spaces(row.meaning) in without_spaces(result.stdout)
    ending = " ".join(result.stdout.split("\n\n")[-1].split())
    assert ending.endswith("'podstead start --help-all' describes all of them.")
    assert run("start", "--help-all", "--port", "x").exit_code == 0


def commands_below(command: click.Command, name: str) -> Iterator[tuple[str, ...]]:
    """The words after the program's name with which each command is called."""
    if not isinstance(command, click.Group):
        yield (name,)
        return
    for child in command.list_commands(click.Context(command)):
        below = command.get_command(click.Context(command), child)
        assert below is not None
        yield from ((name, *words) for words in commands_below(below, child))


def test_no_help_shows_a_mark_of_its_layout() -> None:
    for _, *words in commands_below(main, "podstead"):
        assert not re.search(r"\\b|\x08|``", run(*words, "--help").stdout), words


def test_the_common_options_are_about_twenty_settings() -> None:
    assert set(COMMON) <= {row.name for row in settings_table()}
    assert len(COMMON) == len(set(COMMON))
    assert 15 <= len(COMMON) <= 25


def test_an_unknown_option_or_command_ends_with_2() -> None:
    assert run("start", "--no-such-option").exit_code == 2
    assert run("stop").exit_code == 2


def test_a_bad_setting_ends_with_2_and_one_sentence() -> None:
    result = run("start", "--port", "x")
    assert result.exit_code == 2
    assert result.stderr == "Error: --port is 'x', but must be an integer from 0 to 65535.\n"
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (StartRefused("Change it."), 2),
        (RootInUse("Another server runs there."), 2),
        (BadRequest("A value is malformed."), 2),
        (StorageError("The disk is gone."), 1),
        (NotFound("There is no pod 'x'."), 1),
    ],
)
def test_expected_trouble_is_one_sentence_and_an_exit_code(
    error: PodsteadError, exit_code: int
) -> None:
    @click.command()
    def fail() -> None:
        raise error

    result = CliRunner().invoke(CommandGroup(commands=[fail]), ["fail"])
    assert result.exit_code == exit_code
    assert result.stderr == f"Error: {error}\n"


@pytest.fixture
def settings_of_options() -> click.Command:
    """A command that prints the settings its options make."""

    @click.command()
    @settings_options()
    def show(**options: object) -> None:
        settings = settings_from(options)
        for field in dataclasses.fields(settings):
            click.echo(f"{field.name}={getattr(settings, field.name)}")

    return show


def test_options_become_settings(settings_of_options: click.Command, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        settings_of_options,
        [
            *("--port", "4000", "--quiet", "--no-simple-tokens", "--root", str(tmp_path)),
            *("--host-alias", "a.example", "--host-alias", "b.example"),
        ],
        env={"PODSTEAD_WORKERS": "2", "PODSTEAD_PORT": "5000"},
    )
    shown = result.stdout.splitlines()
    assert "port=4000" in shown
    assert "quiet=True" in shown
    assert "simple_tokens=False" in shown
    assert f"root={tmp_path}" in shown
    assert "host_aliases=('a.example', 'b.example')" in shown
    assert "workers=2" in shown


def test_a_switch_can_be_switched_off_over_its_variable(settings_of_options: click.Command) -> None:
    result = CliRunner().invoke(settings_of_options, ["--no-quiet"], env={"PODSTEAD_QUIET": "true"})
    assert "quiet=False" in result.stdout.splitlines()


def test_the_summary_says_where_and_what() -> None:
    settings = Settings(
        base_url="https://pods.example",
        host="0.0.0.0",
        port=8443,
        root=Path("/srv/pods"),
        workers=2,
    )
    assert summary(settings, pid=4711).splitlines() == [
        "Podstead is ready at https://pods.example/",
        f"  version    Podstead {__version__}",
        "  process    4711",
        "  listening  0.0.0.0, port 8443, HTTP, 2 workers",
        "  data       /srv/pods",
        "  metrics    http://127.0.0.1:9090/metrics",
        "  pods       POST https://pods.example/.pods creates one",
        "  tokens     on, valid for 30 days",
    ]


@pytest.mark.parametrize(
    ("idp", "line"),
    [
        (False, "registration is closed"),
        (True, "registration is closed; 'podstead account create' creates one"),
    ],
)
def test_the_summary_offers_no_pods_where_registration_is_closed(*, idp: bool, line: str) -> None:
    text = summary(Settings(registration="closed", idp=idp), pid=4711)
    assert f"  pods       {line}" in text.splitlines()
    assert "/.pods" not in text


def test_the_summary_says_where_people_sign_in() -> None:
    settings = Settings(base_url="https://pods.example", idp=True)
    line = "  accounts   sign in at https://pods.example/idp/login"
    assert line in summary(settings, pid=4711).splitlines()
    parted = Settings(
        base_url="https://pods.example", idp=True, idp_base_url="https://login.example"
    )
    line = "  accounts   sign in at https://login.example/idp/login"
    assert line in summary(parted, pid=4711).splitlines()


@pytest.mark.feature("git")
def test_the_summary_says_whether_git_is_enabled() -> None:
    settings = Settings(base_url="https://pods.example").with_values(git=True)
    assert (
        "  git        each container is a git repository" in summary(settings, pid=1).splitlines()
    )


@pytest.mark.feature("webid_tls")
def test_the_summary_says_whether_client_certificates_are_accepted() -> None:
    settings = Settings(base_url="https://pods.example").with_values(webid_tls=True)
    line = "  webid-tls  clients can authenticate with certificates"
    assert line in summary(settings, pid=1).splitlines()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (Settings(simple_tokens=False), "off"),
        (Settings(token_lifetime_s=0), "on, without expiry"),
        (Settings(token_lifetime_s=90), "on, valid for 90 seconds"),
        (Settings(token_lifetime_s=1), "on, valid for 1 second"),
        (Settings(token_lifetime_s=86_400), "on, valid for 1 day"),
    ],
)
def test_the_summary_says_how_long_tokens_are_valid(settings: Settings, line: str) -> None:
    assert summary(settings, pid=4711).endswith(f"  tokens     {line}")


# --- CommandGroup print nothing that a terminal would act on -----------------------------------


CHARACTERS = st.text(st.characters() | st.sampled_from("\x1b\n\r\u202e\u2066\x9b\x00\u200b\ud800"))
FORBIDDEN = {"click.echo", "click.secho", "click.confirm", "click.ClickException", "print",
             "sys.stdout.write", "sys.stderr.write", "click.echo_via_pager"}  # fmt: skip
ALLOWED = {
    "output": FORBIDDEN,
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


MODULES = [
    *sorted(Path(cli.__file__).parent.glob("*.py")),
    *sorted(Path(cli.__file__).parents[1].glob("features/*/command.py")),
]


@pytest.mark.parametrize("file", MODULES, ids=lambda p: f"{p.parent.name}/{p.stem}")
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
