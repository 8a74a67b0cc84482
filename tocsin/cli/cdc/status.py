"""`tocsin cdc status`: shows the record log, the record stream, the lag and the last stream check.

Reads only.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, printable, utc_text

if TYPE_CHECKING:
    from cdc.log_reader import Gap
    from cdc.report import PublisherReport
    from cdc.status import LogStatus


def status(as_json: Json = False) -> None:
    """Show the record log and the record stream: lag, leader, last stream check, gaps.

    \b
    Example:
      tocsin cdc status
    """
    current = run_command(_status())
    if as_json:
        print_json({**asdict(current), "gaps": [gap._asdict() for gap in current.gaps]})
        return
    for subject, text in _lines(current):
        typer.echo(f"{subject:<10}  {printable(text)}")


def _lines(current: LogStatus) -> list[tuple[str, str]]:
    stream = f"{current.stream!r} does not exist yet"
    if current.last_seq is not None:
        stream = (
            f"{current.stream!r} from {current.first_seq} to {current.last_seq}, {current.messages} messages"
        )
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(current.tombstones.items()))
    return [
        (
            "log",
            f"from {current.horizon} to {current.head}"
            if current.horizon <= current.head
            else _empty(current),
        ),
        ("stream", stream),
        ("lag", f"{current.lag} records, {current.lag_s:.1f} s"),
        ("leader", current.leader or "none"),
        ("check", _check_text(current.report)),
        *(("gap", gap_text(gap)) for gap in current.gaps),
        ("tombstones", counts or "none"),
    ]


def _empty(current: LogStatus) -> str:
    return "empty" if current.head == 0 else f"at {current.head}, and its tables are empty"


def _check_text(report: PublisherReport) -> str:
    if report.problem is not None and report.since is not None:
        remedy = f" -> {report.remedy}" if report.remedy else ""
        return f"{report.problem} since {utc_text(report.since)}: {report.detail}{remedy}"
    if report.at is None:
        return "none yet"
    compared = f"{report.compared} compared, none different"
    return f"{report.age_s or 0:.0f} s ago by {report.holder}: {compared}"


def gap_text(gap: Gap) -> str:
    count = gap.until_seq - gap.from_seq + 1
    return f"{gap.from_seq} to {gap.until_seq} ({count}), {gap.reason}; recorded by {gap.who}, {utc_text(gap.at)}"


async def _status() -> LogStatus:
    from cdc.log_reader import LogReader
    from cdc.status import read_status
    from tocsin.cli.session import command_settings, database, message_bus

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        return await read_status(bus, settings, LogReader(connection))
