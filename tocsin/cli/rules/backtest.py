"""`tocsin backtest`: rules over what was recorded. Reads only: nothing is sent, and nothing live is touched.

Exit codes: 0 the replay is what was recorded, or the comparison was made; 1 a historical replay differs, or failure.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json, check_output
from tocsin.cli.output import duration_text, print_json, print_table, printable, utc_text
from tocsin.cli.rules.export import Until, window
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from rules.replay.backtest.owner_replay import Found
    from rules.replay.backtest.recording.model import Source, Story
    from rules.replay.backtest.report.compare import Comparison

_SHOWN = 20


def backtest(
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", help="Rules files or folders to try; may be repeated.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="From when: a duration ago, or an instant; 30d by default.")
    ] = None,
    until: Until = None,
    recording: Annotated[
        Path | None, typer.Option("--recording", help="Read this export, and no database.")
    ] = None,
    historical: Annotated[
        bool, typer.Option("--historical", help="With the rules of the time; fails if anything differs.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report as a page.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=0, max=256, help="Processes; 0: one per core.")] = 0,
    as_json: Json = False,
) -> None:
    """Replay what was recorded, with the rules of the time or with others. Nothing is sent.

    \b
    Examples:
      tocsin backtest --historical --since 7d
      tocsin backtest --rules rules/ --since 30d --html report.html
      tocsin backtest --rules rules/ --recording recording.ndjson.gz
    """
    if historical and rules:
        raise InvalidInput(
            "--historical uses the rules of the time", remedy="leave out --rules, or --historical"
        )
    if recording is not None and (since or until):
        raise InvalidInput("a recording has its own window", remedy="leave out --since and --until")
    if html is not None:
        check_output(html, "--html")
    story, found = finish(_backtest(rules or [], since or "30d", until, recording, jobs))
    from rules.replay.backtest.report.compare import as_json as told
    from rules.replay.backtest.report.compare import compare

    mode = "prospective" if rules else "historical"
    compared = compare(story, found)
    if html is not None:
        from rules.replay.backtest.report.html import report_page
        from tocsin.core.files import written_whole

        with written_whole(html) as being_written:
            being_written.write_text(report_page(story, found, compared, mode), encoding="utf-8")
    if as_json:
        print_json(told(story, found, compared, mode))
    else:
        _print(story, found, compared, mode)
        if html is not None:
            typer.echo(f"report: {html}")
    if found.differences:
        raise typer.Exit(1)


async def _backtest(
    rules: list[Path], since: str, until: str | None, recording: Path | None, jobs: int
) -> tuple[Story, Found]:
    from rules.replay.backtest.candidates import candidate_documents
    from rules.replay.backtest.parallel import backtest as replay
    from tocsin.cli.progress import part_bar

    async with _source(since, until, recording) as source:
        story = await source.story()
        candidate = candidate_documents(story, rules, story.since) if rules else None
        with part_bar("replaying") as report:
            found = await replay(
                source, story, candidate, jobs=jobs or len(os.sched_getaffinity(0)), report=report
            )
        return story, found


@asynccontextmanager
async def _source(since: str, until: str | None, recording: Path | None) -> AsyncIterator[Source]:
    from rules.replay.backtest.recording.database import recorded
    from rules.replay.backtest.recording.parquet import open_recording
    from tocsin.cli.session import command_settings

    settings = command_settings()
    if recording is not None:
        yield open_recording(recording)
        return
    begin, end = await window(since, until)
    async with recorded(settings, begin, end) as source:
        yield source


def _print(story: Story, found: Found, compared: Comparison, mode: str) -> None:
    typer.echo(f"{mode} replay of {utc_text(story.since)} to {utc_text(story.until)}: nothing was sent")
    typer.echo(f"{found.datapoints:,} datapoints, {found.events:,} events, {found.owners:,} owners")
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
        _print_identity(found)


def _print_rules(compared: Comparison) -> None:
    heads = (
        "RULE",
        "THEN",
        "NOW",
        "GAINED",
        "LOST",
        "EARLIER",
        "LATER",
        "IN ALARM",
        "NOW",
        "PAGES/DAY",
        "NOW",
    )
    print_table(
        heads,
        [
            (
                line.rule,
                f"{line.then:,}",
                f"{line.now:,}",
                *(f"{line.kinds[kind]:,}" for kind in ("gained", "lost", "earlier", "later")),
                duration_text(line.time_then),
                duration_text(line.time_now),
                f"{line.pages_then:,.1f}",
                f"{line.pages_now:,.1f}",
            )
            for line in compared.rules
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
            for pair in changed[:_SHOWN]
        ],
    )
    if len(changed) > _SHOWN:
        typer.echo(f"and {len(changed) - _SHOWN:,} more: see --json or --html")


def _print_identity(found: Found) -> None:
    if not found.differences:
        same = f"{len(found.then):,} edges of alarms and {found.staleness:,} verdicts of staleness"
        health = f" and {found.health:,} of health" if found.health else ""
        typer.echo(f"the replay is what was recorded: {same}{health}")
        return
    typer.echo(f"{len(found.differences):,} differences from what was recorded:")
    for one in found.differences[:_SHOWN]:
        told = f"{one.what} of {one.owner}: recorded {one.recorded}; replayed {one.replayed}"
        typer.echo(f"  {printable(told)}")
        typer.echo(f"    {printable(one.cause)}")
    if len(found.differences) > _SHOWN:
        typer.echo(f"  and {len(found.differences) - _SHOWN:,} more: see --json or --html")
