"""``podstead start``: run the server until it is stopped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from podstead import __version__
from podstead.app.process.loading import without_collection
from podstead.cli.options import GroupedCommand, settings_from, settings_options
from podstead.cli.output import CommandFailed, echo, echo_lines
from podstead.cli.running import in_root
from podstead.config import Settings
from podstead.core.errors import PodsteadError
from podstead.core.messages import counted
from podstead.features import features

if TYPE_CHECKING:  # at run time they are loaded when they are needed
    from podstead.app.operator.administration import DataRoot
    from podstead.app.process.serve import ExitReason

_DAY_S = 24 * 3600

COMMON_SETTINGS = (
    "host",
    "port",
    "base-url",
    "workers",
    "admin-listen",
    "config",
    "log-level",
    "registration",
    "ssl-cert",
    "ssl-key",
    "root",
    "quota-bytes",
    "simple-tokens",
    "idp",
    "idp-base-url",
    "trusted-proxy",
    "host-alias",
    "max-connections",
    "max-body-bytes",
)
"""The settings that ``--help`` lists, because most operators need them, besides features' own."""


_ACCEPT_LOSS = (
    "Start although the database or a key is missing that the data root had: what it contained is "
    "lost."
)


@click.command(cls=GroupedCommand, common=COMMON_SETTINGS)
@settings_options()
@click.option("--accept-loss", is_flag=True, help=_ACCEPT_LOSS)
def start(*, accept_loss: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Run the server.

    You can also set each option with an environment variable (PODSTEAD_PORT for --port) or with a
    key in the file that --config names (port = 3000). Options take precedence over variables, and
    variables over the file.
    """
    settings = settings_from(options)
    # Imported here because `podstead --help` does not need them.
    with without_collection():
        # Used when all workers have been forked.
        import podstead.app.operator.administration  # noqa: F401
        from podstead.app.process.run import run_server
        from podstead.app.services import build_application

    end(run_server(settings, factory=build_application, on_ready=announce, accept_loss=accept_loss))


def end(ending: ExitReason) -> None:
    """End the command as the server ended. Raises ClickException unless the server was stopped in
    the regular way."""
    from podstead.app.process.serve import ExitReason  # which the help need not load

    if ending is ExitReason.FAILED:
        raise CommandFailed("The server stopped because a worker failed.")
    if ending is ExitReason.FORCED:
        raise CommandFailed("The server stopped immediately and aborted requests.")


def announce(settings: Settings) -> None:
    """Print the summary, and a link for the first operator if there is none, unless the setting
    ``quiet`` is on."""
    if settings.quiet:
        return
    link: str | None = None
    trouble: PodsteadError | None = None
    try:
        settings, link = in_root(settings, _in_effect)
    except PodsteadError as error:
        trouble = error
    echo_lines(summary(settings, pid=os.getpid()))
    if trouble is not None:
        echo(f"What operators have changed could not be read: {trouble}", err=True)
    if link is not None:
        echo(
            "No account is an operator's yet. This link creates one; it works once, within 24 "
            "hours:"
        )
        echo(f"  {link}")


async def _in_effect(root: DataRoot) -> tuple[Settings, str | None]:
    """The settings with what operators have changed, and the link for the first operator, who has
    an account if there are any."""
    secret = await root.accounts.create_first_link() if root.settings.idp else None
    return root.settings, None if secret is None else root.link(secret)


def summary(settings: Settings, *, pid: int) -> str:
    """The summary that is printed at startup: the address, the data root, and what is on."""
    lines = {
        "version": f"Podstead {__version__}",
        "process": str(pid),
        "listening": f"{settings.host}, port {settings.port}, {_transport(settings)}",
        "data": str(settings.root),
    }
    if settings.admin_listen is not None:
        lines["metrics"] = f"http://{settings.admin_listen}/metrics"
    if settings.sockets_port is not None:
        lines["sockets"] = f"port {settings.sockets_port}, reached at {settings.sockets_base_url}"
    lines |= {"pods": _pods(settings), "tokens": _tokens(settings)}
    if settings.idp:
        lines["accounts"] = f"sign in at {settings.issuer}/idp/login"
    for feature in features():
        lines |= feature.summary(settings)
    facts = "\n".join(f"  {name:<10} {fact}" for name, fact in lines.items())
    return f"Podstead is ready at {settings.base_url}/\n{facts}"


def _pods(settings: Settings) -> str:
    if settings.registration == "open":
        return f"POST {settings.base_url}/.pods creates one"
    if settings.registration == "invited":
        return "registration is by invitation; 'podstead invite create' creates one"
    if settings.idp:
        return "registration is closed; 'podstead account create' creates one"
    return "registration is closed"


def _transport(settings: Settings) -> str:
    workers = "auto" if settings.workers is None else counted(settings.workers, "worker")
    return f"{'HTTPS' if settings.uses_tls else 'HTTP'}, {workers}"


def _tokens(settings: Settings) -> str:
    if not settings.simple_tokens:
        return "off"
    if settings.token_lifetime_s == 0:
        return "on, without expiry"
    if settings.token_lifetime_s % _DAY_S == 0:
        return f"on, valid for {counted(settings.token_lifetime_s // _DAY_S, 'day')}"
    return f"on, valid for {counted(settings.token_lifetime_s, 'second')}"
