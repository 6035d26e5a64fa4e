"""``podstead check``: finds damage in the data root, and repairs it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podstead.cli.options import root_options
from podstead.cli.output import bytes_text, echo, print_json_line
from podstead.cli.running import ProgressLine, with_progress, with_settings
from podstead.config import Settings
from podstead.core.errors import StorageError
from podstead.core.messages import counted

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.checking.findings import Finding


@click.command("check", short_help="Find damage in the data root, and repair it.")
@click.option("--quick", is_flag=True, help="Look at the sizes of bodies and not at their content.")
@click.option("--repair", is_flag=True, help="Set right what can be, and set aside the rest.")
@click.option("--json", "as_json", is_flag=True, help="Print each finding as a line of JSON.")
@root_options
@with_settings
def check_data(settings: Settings, *, quick: bool, repair: bool, as_json: bool) -> None:
    """Check the data root, also while the server runs.

    The command compares the database with itself and with its files: bodies with their hashes,
    containers with their members, figures with what they count, access rules, git repositories,
    keys and modes. It exits with code 0 if all is well, and with code 1 if there are findings that
    were not repaired, or if it could not check everything. It ends with how much space the pods use
    and how much is free.

    With --repair, what cannot stay in use is moved to a dated folder below set-aside/ in the data
    root, with a list. A document whose body is gone is deleted, and the command says so and exits
    with code 1: restore it from a backup.
    """
    from podstead.app.operator.check import check_root

    async def check(progress: ProgressLine) -> Sequence[Finding]:
        def on_finding(finding: Finding) -> None:
            progress.end()
            _print(finding, as_json=as_json)

        return await check_root(
            settings, is_quick=quick, repair=repair, on_step=progress, on_finding=on_finding
        )

    findings = with_progress(check, "The data could not be checked", only_on_terminal=True)
    left = sum(not finding.is_repaired for finding in findings)
    if not as_json:
        repaired = f", {len(findings) - left} of them repaired" if repair and findings else ""
        echo(f"{counted(len(findings), 'finding')}{repaired}.")
        _print_space(settings)
    sys.exit(1 if left else 0)


def _print_space(settings: Settings) -> None:
    from podstead.app.operator.check import measure_space

    try:
        space = asyncio.run(measure_space(settings))
    except (OSError, StorageError) as error:
        echo(f"How much space is used is not known: {error}.", err=True)
        return
    pods = space.pods
    of_quotas = f" of {bytes_text(pods.quota_bytes)} in quotas" if pods.quota_bytes else ""
    echo(f"{counted(pods.pods, 'pod')}: {bytes_text(pods.used_bytes)} used{of_quotas}.")
    if pods.nearly_full:
        full = counted(pods.nearly_full, "pod")
        echo(f"{full} at nine tenths of the quota or more: see 'podstead pod list'.")
    floor = f"; below {bytes_text(space.floor_bytes)}, new content is refused"
    echo(f"Disk: {bytes_text(space.free_bytes)} free{floor if space.floor_bytes else ''}.")


def _print(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        fields = {
            "code": finding.code.value,
            "where": finding.where,
            "what": finding.what,
            "remedy": finding.remedy,
            "repaired": finding.is_repaired,
            "loss": finding.loss,
        }
        print_json_line(fields)
        return
    done = "repaired" if finding.is_repaired else finding.loss or finding.remedy
    echo(f"{finding.code.value}: {finding.where}: {finding.what}. [{done}]")
