"""`tocsin cdc status`: how far the stream is, who publishes, what the last audit found, what is missing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, printable, utc_text

if TYPE_CHECKING:
    from cdc.log_reader import Gap
    from cdc.report import Report
    from cdc.status import Status


def status(as_json: Json = False) -> None:
    """Show where the log and the stream stand: head, lag, leader, last audit, gaps, tombstones.

    \b
    Example:
      tocsin cdc status
    """
    found = finish(_status())
    if as_json:
        print_json({**asdict(found), "gaps": [gap._asdict() for gap in found.gaps]})
        return
    for subject, text in _lines(found):
        typer.echo(f"{subject:<10}  {printable(text)}")


def _lines(found: Status) -> list[tuple[str, str]]:
    stream = f"{found.stream!r} is not made yet"
    if found.last_seq is not None:
        stream = f"{found.stream!r} from {found.first_seq} to {found.last_seq}, {found.messages} messages"
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(found.tombstones.items()))
    return [
        ("log", f"from {found.horizon} to {found.head}" if found.horizon <= found.head else _empty(found)),
        ("stream", stream),
        ("lag", f"{found.lag} records, {found.lag_s:.1f} s"),
        ("leader", found.leader or "nobody"),
        ("audit", _audit(found.report)),
        *(("gap", gap_text(gap)) for gap in found.gaps),
        ("tombstones", counts or "none"),
    ]


def _empty(found: Status) -> str:
    return "empty" if found.head == 0 else f"at {found.head}, with nothing left in its tables"


def _audit(report: Report) -> str:
    if report.problem is not None and report.since is not None:
        return f"{report.problem} since {utc_text(report.since)}: {report.detail}"
    if report.at is None:
        return "none yet"
    compared = f"{report.compared} compared, none different"
    return f"{report.age_s or 0:.0f} s ago by {report.holder}: {compared}"


def gap_text(gap: Gap) -> str:
    count = gap.until_seq - gap.from_seq + 1
    return f"{gap.from_seq} to {gap.until_seq} ({count}), {gap.reason}; recorded by {gap.who}, {utc_text(gap.at)}"


async def _status() -> Status:
    from cdc.log_reader import LogReader
    from cdc.status import read_status
    from tocsin.cli.session import command_settings, database, message_bus

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        return await read_status(bus, settings, LogReader(connection))
