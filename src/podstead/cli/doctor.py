"""``podstead doctor``: what is wrong with this server?"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from podstead.cli.options import GroupedCommand, settings_from, settings_options
from podstead.cli.output import echo
from podstead.cli.start import COMMON_SETTINGS
from podstead.cli.tables import json_option, print_json

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.diagnosis import Diagnosis


@click.command(cls=GroupedCommand, common=COMMON_SETTINGS, short_help="Find what is wrong.")
@json_option
@settings_options()
def doctor(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Find what is wrong with a server, and say what to do about it.

    Run it beside the running server, as the same user and with the same options, variables or file.
    It looks at the data root, the disk, the clock, the last backup, DNS, TLS, the proxy, the
    identity provider as applications see it, the mail server, and the private address.

    The exit code is 1 if there is a problem, and 0 if there are only warnings.
    """
    from podstead.app.operator.diagnosis import Severity
    from podstead.app.operator.doctor import diagnose

    findings = asyncio.run(diagnose(settings_from(options)))
    if as_json:
        print_json({"findings": findings})
    else:
        for finding in findings:
            _print(finding)
    if any(finding.severity is Severity.PROBLEM for finding in findings):
        sys.exit(1)


def _print(finding: Diagnosis) -> None:
    echo(f"{finding.severity.value:<8} {finding.check}: {finding.detail}")
    if finding.remedy:
        echo(f"{'':<8} -> {finding.remedy}")
