"""The tree of commands, in the sections and the order in which `tocsin --help` lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from tocsin.cli import (
    doctor,
    emit,
    env,
    forget,
    health,
    metrics,
    migrate,
    prune,
    roles,
    run,
    send,
    series,
    streams,
    timers,
    tokens,
)
from tocsin.cli.actions import actions, history, stats
from tocsin.cli.alarms import ack, alarms, notifications, resolve, snooze
from tocsin.cli.calendars import holidays, import_ics, show
from tocsin.cli.cdc import adopt, rebuild, status, verify
from tocsin.cli.commands import HELP_WIDTH, Group, RootGroup
from tocsin.cli.heartbeats import check_in, heartbeats, run_job
from tocsin.cli.records import audit, dead_letters, events, explain, tail
from tocsin.cli.rules import apply, backtest, channels, check, export, imports, plan, rules, schema, test
from tocsin.cli.schedules import add, change, next, parse_time, schedules, upcoming
from tocsin.cli.silences import add as silence_add
from tocsin.cli.silences import expire
from tocsin.cli.silences import list as silence_list
from tocsin.cli.up import up

Command = Callable[..., None]


def _group(without_subcommand: Command | str, subcommands: dict[str, Command]) -> typer.Typer:
    """A command with subcommands.

    Without a subcommand it runs `without_subcommand`, or, if that is a text, prints help with this
    text as the summary.
    """
    if isinstance(without_subcommand, str):
        group = typer.Typer(cls=Group, help=without_subcommand, no_args_is_help=True, rich_markup_mode=None)
    else:
        group = typer.Typer(
            cls=Group, callback=without_subcommand, invoke_without_command=True, rich_markup_mode=None
        )
    for name, command in subcommands.items():
        group.command(name)(command)
    return group


SECTIONS: dict[str, dict[str, Command | typer.Typer]] = {
    "Rules": {
        "check": check.check,
        "plan": plan.plan,
        "apply": apply.apply,
        "test": test.run_tests,
        "schema": schema.schema,
        "rules": rules.rules,
        "channels": _group(channels.channels, {"test": channels.send_test_message}),
        "backtest": backtest.backtest,
        "export": export.export,
        "calendar": _group(
            "Show the days of a calendar, or make one of holidays or of an iCalendar file.",
            {"show": show.show, "import": import_ics.import_ics, "holidays": holidays.holidays},
        ),
        "import": _group(
            "Translate Prometheus rules or a crontab into documents.",
            {"prometheus": imports.import_prometheus, "crontab": imports.import_crontab},
        ),
        "next": next.next_times,
        "parse-time": parse_time.parse_time,
    },
    "Look": {
        "alarms": alarms.alarms,
        "notifications": notifications.notifications,
        "series": series.series,
        "health": health.health,
        "heartbeats": heartbeats.heartbeats,
        "schedules": schedules.schedules,
        "upcoming": upcoming.upcoming,
        "timers": _group(timers.timers, {"retry": timers.retry}),
        "events": events.events,
        "tail": tail.tail,
        "actions": _group(
            actions.actions, {"show": actions.show, "retry": actions.retry, "cancel": actions.cancel}
        ),
        "history": history.history,
        "stats": stats.stats,
        "explain": explain.explain,
        "audit": _group(audit.audit, {"verify": audit.verify}),
        "dead-letters": _group(dead_letters.dead_letters, {"retry": dead_letters.retry}),
    },
    "Act": {
        "ack": ack.ack,
        "snooze": snooze.snooze,
        "resolve": resolve.resolve,
        "silence": _group(
            "Mute alarms that match a condition for a time; list and end silences.",
            {"add": silence_add.add, "list": silence_list.list_silences, "expire": expire.expire},
        ),
        "send": send.send,
        "emit": emit.emit,
        "checkin": check_in.check_in,
        "run-job": run_job.run_job,
        "schedule": _group(
            "Add, show, pause, resume, run or cancel one schedule.",
            {
                "add": add.add,
                "show": change.show,
                "pause": change.pause,
                "resume": change.resume,
                "run": change.run,
                "cancel": change.cancel,
            },
        ),
    },
    "Operate": {
        "up": up.up,
        "run": run.run,
        "migrate": migrate.migrate,
        "roles": _group(
            "Create and check the Postgres roles of the components, and grant owners to roles.",
            {
                "create": roles.create,
                "check": roles.check,
                "grant": roles.grant,
                "revoke": roles.revoke,
                "grants": roles.grants,
            },
        ),
        "streams": _group(
            "Create the streams in NATS, and write the permissions of its users.",
            {"create": streams.create, "config": streams.config},
        ),
        "token": _group(
            "Add, list and revoke tokens of the HTTP API, and make login links.",
            {
                "add": tokens.add,
                "ping": tokens.ping,
                "list": tokens.list_all,
                "revoke": tokens.revoke,
                "login": tokens.login,
            },
        ),
        "doctor": doctor.doctor,
        "env": env.env,
        "metrics": metrics.metrics,
        "prune": prune.prune,
        "forget": forget.forget,
        "cdc": _group(
            "Compare the record log with the record stream, and repair them.",
            {
                "status": status.status,
                "verify": verify.verify,
                "adopt": adopt.adopt,
                "rebuild": rebuild.rebuild,
            },
        ),
    },
}


class _Tocsin(RootGroup):
    order = tuple(name for commands in SECTIONS.values() for name in commands)


app = typer.Typer(
    cls=_Tocsin,
    help="""Schedules, alarms and actions on Postgres and JetStream.

    Start with `tocsin up --rules examples/quickstart.yaml`, then look around from another terminal in
    the same directory.""",
    epilog="""Exit codes: 0 done, 1 refused or invalid or a check failed, 2 wrong command line or no
    server, 3 `plan --exit-code` found changes.""",
    no_args_is_help=True,
    # Plain help: rich takes a third of the time until help appears.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH},
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


# `Group` reads the section of a command from `rich_help_panel`, although rich is off.
for section, commands in SECTIONS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=section)
        else:
            # `send` accepts a negative value such as `-5`.
            cls = send.SendCommand if command is send.send else None
            app.command(name, cls=cls, rich_help_panel=section)(command)
