"""``podstead doctor``: says what is wrong with this server."""

from __future__ import annotations

import asyncio

import click

from podstead.cli.options import GroupedCommand, settings_options
from podstead.cli.output import json_option
from podstead.cli.running import Output, on_settings
from podstead.cli.start import COMMON_SETTINGS
from podstead.config import Settings


@click.command(cls=GroupedCommand, common=COMMON_SETTINGS, short_help="Find what is wrong.")
@on_settings(json_option, settings_options())
def doctor(settings: Settings) -> Output:
    """Find what is wrong with a server, and say what to do about it.

    Run it beside the running server, as the same user and with the same options, variables or file.
    It looks at the data root, the disk, the clock, the last backup, DNS, TLS, the proxy, the
    identity provider as applications see it, the mail server, and the private address.

    The exit code is 1 if there is a problem, and 0 if there are only warnings.
    """
    from podstead.app.operator.doctor import diagnose
    from podstead.app.operator.doctor_network import Severity

    findings = asyncio.run(diagnose(settings))
    lines = []
    for finding in findings:
        lines.append(f"{finding.severity.value:<8} {finding.check}: {finding.detail}")
        if finding.remedy:
            lines.append(f"{'':<8} -> {finding.remedy}")
    is_wrong = any(finding.severity is Severity.PROBLEM for finding in findings)
    return Output({"findings": findings}, lines, exit_code=1 if is_wrong else 0)
