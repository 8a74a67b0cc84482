"""`tocsin backtest`: replays a recording with rules. Reads only: nothing is sent, nothing live
changes.

Exit codes: 0 if a historical replay equals the recording, and after any comparison with candidate
rules; 1 if a historical replay differs from the recording, or on failure.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, ProgressLines, check_output
from tocsin.cli.output import duration_text, print_json, print_table, printable, utc_text
from tocsin.cli.rules.export import Until, recording_window
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from rules.replay.backtest.recording.model import Recording, RecordingHeader
    from rules.replay.backtest.report.compare import Comparison
    from rules.replay.backtest.result import BacktestResult

_MAX_SHOWN = 20


def backtest(  # noqa: PLR0913 - one option per choice
    rules: Annotated[
        list[Path] | None,
        typer.Option("--rules", help="Candidate rules: a rule file or a folder; may be repeated."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Start: a duration ago, or an instant; 30d by default.")
    ] = None,
    until: Until = None,
    recording: Annotated[
        Path | None, typer.Option("--recording", help="Replay this file of `tocsin export`; needs no server.")
    ] = None,
    historical: Annotated[
        bool, typer.Option("--historical", help="Use the rules of the time, as without --rules.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the report to this file, as HTML.")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, max=256, help="Number of processes; 0 for one per core.")
    ] = 0,
    progress: ProgressLines = False,
    as_json: Json = False,
) -> None:
    """Replay a recording with its own rules or with candidate rules; sends nothing.

    With the rules of the time, the command fails if the replay differs from the recording.

    \b
    Examples:
      tocsin backtest --historical --since 7d
      tocsin backtest --rules rules/ --since 30d --html report.html
      tocsin backtest --rules rules/ --recording recording.ndjson.gz
    """
    _check_options(historical, rules, recording, since or until, html)
    header, result = run_command(_backtest(rules or [], since or "30d", until, recording, jobs, progress))
    from rules.replay.backtest.report.compare import compare, report_json

    mode = "prospective" if rules else "historical"
    compared = compare(header, result)
    if html is not None:
        from rules.replay.backtest.report.html import html_report
        from tocsin.core.files import written_whole

        with written_whole(html) as being_written:
            being_written.write_text(html_report(header, result, compared, mode), encoding="utf-8")
    if as_json:
        print_json(report_json(header, result, compared, mode))
    else:
        _print(header, result, compared, mode)
        if html is not None:
            typer.echo(f"report: {html}")
    if result.mismatches:
        raise typer.Exit(1)


def _check_options(
    historical: bool,
    rules: list[Path] | None,
    recording: Path | None,
    window_option: str | None,
    html: Path | None,
) -> None:
    if historical and rules:
        raise InvalidInput(
            "--historical uses the rules of the time", remedy="leave out --rules, or --historical"
        )
    if recording is not None and window_option:
        raise InvalidInput("a recording has its own window", remedy="leave out --since and --until")
    if html is not None:
        check_output(html, "--html")


async def _backtest(
    rules: list[Path], since: str, until: str | None, recording: Path | None, jobs: int, progress: bool
) -> tuple[RecordingHeader, BacktestResult]:
    from rules.replay.backtest.candidates import candidate_documents
    from rules.replay.backtest.parallel import backtest as replay
    from tocsin.cli.progress import fraction_bar, progress_lines

    async with _source(since, until, recording) as source:
        header = await source.header()
        candidate = candidate_documents(header, rules, header.since) if rules else None
        with nullcontext(progress_lines()) if progress else fraction_bar("replaying") as report:
            result = await replay(
                source, header, candidate, jobs=jobs or len(os.sched_getaffinity(0)), report=report
            )
        return header, result


@asynccontextmanager
async def _source(since: str, until: str | None, recording: Path | None) -> AsyncIterator[Recording]:
    from rules.replay.backtest.recording.database import open_database_recording
    from rules.replay.backtest.recording.parquet import open_recording
    from tocsin.cli.session import command_settings

    settings = command_settings()
    if recording is not None:
        yield open_recording(recording)
        return
    begin, end = await recording_window(since, until)
    async with open_database_recording(settings, begin, end) as source:
        yield source


def _print(header: RecordingHeader, result: BacktestResult, compared: Comparison, mode: str) -> None:
    typer.echo(f"{mode} replay of {utc_text(header.since)} to {utc_text(header.until)}: nothing was sent")
    typer.echo(f"{result.datapoints:,} datapoints, {result.events:,} events, {result.owners:,} owners")
    if compared.rules:
        typer.echo("")
        _print_rules(compared)
    if mode == "prospective":
        _print_changes(compared)
    if compared.noisiest:
        typer.echo("")
        print_table(
            ("NOISIEST OWNER", "SERIES", "ALARMS"), [(o, k, f"{n:,}") for o, k, n in compared.noisiest]
        )
    typer.echo("")
    if mode == "historical":
        _print_mismatches(result)


def _print_rules(compared: Comparison) -> None:
    print_table(
        (
            *("RULE", "ALARMS THEN", "NOW", "GAINED", "LOST", "EARLIER", "LATER"),
            *("TIME IN ALARM THEN", "NOW", "NOTIFICATIONS/DAY THEN", "NOW"),
        ),
        [
            (
                rule.rule,
                f"{rule.then:,}",
                f"{rule.now:,}",
                *(f"{rule.kinds[kind]:,}" for kind in ("gained", "lost", "earlier", "later")),
                duration_text(rule.time_then),
                duration_text(rule.time_now),
                f"{rule.notifications_then:,.1f}",
                f"{rule.notifications_now:,.1f}",
            )
            for rule in compared.rules
        ],
    )


def _print_changes(compared: Comparison) -> None:
    changed = [pair for pair in compared.pairs if pair.kind != "same"]
    if not changed:
        typer.echo("\nno alarm would be different")
        return
    typer.echo("")
    print_table(
        ("CHANGE", "RULE", "OWNER", "THEN", "NOW"),
        [
            (
                pair.kind,
                pair.span.rule,
                pair.span.owner,
                "" if pair.then is None else utc_text(pair.then.opened_at),
                "" if pair.now is None else utc_text(pair.now.opened_at),
            )
            for pair in changed[:_MAX_SHOWN]
        ],
    )
    if len(changed) > _MAX_SHOWN:
        typer.echo(f"and {len(changed) - _MAX_SHOWN:,} more: see --json or --html")


def _print_mismatches(result: BacktestResult) -> None:
    if not result.mismatches:
        same = f"{len(result.recorded_transitions):,} alarm transitions, {result.staleness_count:,} staleness changes"
        health = f", {result.health_count:,} health changes" if result.health_count else ""
        typer.echo(f"the replay equals the recording: {same}{health}")
        return
    typer.echo(f"{len(result.mismatches):,} mismatches between the replay and the recording:")
    for mismatch in result.mismatches[:_MAX_SHOWN]:
        subject = f"{mismatch.what} of {mismatch.owner}"
        values = f"recorded {mismatch.recorded}; replayed {mismatch.replayed}"
        typer.echo(f"  {printable(f'{subject}: {values}')}")
        typer.echo(f"    {printable(mismatch.cause)}")
    if len(result.mismatches) > _MAX_SHOWN:
        typer.echo(f"  and {len(result.mismatches) - _MAX_SHOWN:,} more: see --json or --html")
