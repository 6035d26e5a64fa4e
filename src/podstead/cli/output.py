"""Prints lines, without anything that a terminal would act on.

Everything that commands print comes through here, because any of it can contain names that
strangers chose.
"""

from __future__ import annotations

import sys

import click

from podstead.core.printable import printable


class CommandFailed(click.ClickException):
    """A command ends with a message and exit code 1."""

    def format_message(self) -> str:
        return printable(self.message)


def echo(line: str = "", *, err: bool = False) -> None:
    """Print one line, to standard error if ``err``. Line breaks in it are escaped, too."""
    click.echo(printable(line), err=err)


def echo_lines(text: str) -> None:
    """Print text of ours that has several lines."""
    for line in text.rstrip("\n").split("\n"):
        echo(line)


def confirm(question: str) -> None:
    """Ask the operator. Raises Abort unless the answer is yes."""
    click.confirm(printable(question), abort=True)


def read_password(*, confirmed: bool = False) -> str:
    """The password that the operator types, twice if it is to be ``confirmed``, or the first line
    of standard input. Never an argument, which everybody on the machine could see."""
    if sys.stdin.isatty():
        typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=confirmed)
        return typed
    line = sys.stdin.readline().rstrip("\r\n")
    if confirmed and not line:
        raise click.UsageError(
            "The first line of standard input must be the password, but is empty."
        )
    return line
