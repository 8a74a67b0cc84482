"""The tree of commands, in the order in which a new user meets them."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli import alarms, health, metrics, migrate, next_times, prune, run, send, series, stats, timers
from tocsin.cli.actions import command as actions
from tocsin.cli.cdc import repair as cdc_repair
from tocsin.cli.cdc import status as cdc_status
from tocsin.cli.cdc import verify as cdc_verify
from tocsin.cli.doctor import command as doctor
from tocsin.cli.errors import Commands
from tocsin.cli.records import audit, backtest, events, explain, export, tail
from tocsin.cli.records import dead_letters as dead
from tocsin.cli.rules import apply as rules_files
from tocsin.cli.rules import channels, rule_tests, schema
from tocsin.cli.schedule import add as schedule_add
from tocsin.cli.schedule import change as schedule_changes
from tocsin.cli.schedule import listing as schedules
from tocsin.cli.up import command as up

app = typer.Typer(
    cls=Commands,
    help="Tocsin turns the passage of time into ordinary events, once each, on Postgres and JetStream.",
    epilog="Example: tocsin up --rules examples/quickstart.yaml",
    add_completion=False,
    no_args_is_help=True,
    # Plain help: the formatted one costs a third of the time to the first letter.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"tocsin {version('tocsin')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


app.command("up")(up.up)
app.command("run")(run.run)
app.command("check")(rules_files.check)
app.command("plan")(rules_files.plan)
app.command("apply")(rules_files.apply)
app.command("test")(rule_tests.run_tests)
app.command("schema")(schema.schema)
app.command("upcoming")(schedules.upcoming)
app.command("schedules")(schedules.schedules)
app.command("events")(events.events)
app.command("tail")(tail.tail)
app.command("alarms")(alarms.alarms)
app.command("ack")(alarms.ack)
app.command("snooze")(alarms.snooze)
app.command("history")(actions.history)
app.command("stats")(stats.stats)
app.command("explain")(explain.explain)
app.command("backtest")(backtest.backtest)
app.command("export")(export.export)
app.command("send", cls=send.SendCommand)(send.send)
app.command("emit")(send.emit)
app.command("series")(series.series)
app.command("health")(health.health)
app.command("dead")(dead.dead)
app.command("doctor")(doctor.doctor)
app.command("metrics")(metrics.metrics)
app.command("migrate")(migrate.migrate)
app.command("prune")(prune.prune)
app.command("next")(next_times.next_times)
app.command("when")(next_times.when)
app.command("audit")(audit.audit)

timer = typer.Typer(invoke_without_command=True, callback=timers.timers, rich_markup_mode=None)
timer.command("retry")(timers.retry)
app.add_typer(timer, name="timers")

action = typer.Typer(invoke_without_command=True, callback=actions.actions, rich_markup_mode=None)
action.command("show")(actions.show)
action.command("retry")(actions.retry)
action.command("cancel")(actions.cancel)
app.add_typer(action, name="actions")

channel = typer.Typer(help="Channels: try one.", no_args_is_help=True, rich_markup_mode=None)
channel.command("test")(channels.try_channel)
app.add_typer(channel, name="channel")

schedule = typer.Typer(
    help="Add, pause, resume, cancel, run and inspect single schedules.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
schedule.command("add")(schedule_add.add)
schedule.command("pause")(schedule_changes.pause)
schedule.command("resume")(schedule_changes.resume)
schedule.command("cancel")(schedule_changes.cancel)
schedule.command("run")(schedule_changes.run)
schedule.command("get")(schedule_changes.get)
app.add_typer(schedule, name="schedule")

cdc = typer.Typer(
    help="The record log and its stream: look, compare, rebuild, and accept what was lost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
cdc.command("status")(cdc_status.status)
cdc.command("verify")(cdc_verify.verify)
cdc.command("rebuild")(cdc_repair.rebuild)
cdc.command("adopt")(cdc_repair.adopt)
app.add_typer(cdc, name="cdc")
