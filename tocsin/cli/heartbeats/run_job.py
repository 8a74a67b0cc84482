"""`tocsin run-job`: runs a command and checks in when it starts and when it ends."""

from __future__ import annotations

from typing import Annotated

import typer


def run_job(
    name: Annotated[str, typer.Argument(help="Name of the heartbeat.")],
    command: Annotated[list[str], typer.Argument(help="Command with its arguments, after `--`.")],
    owner: Annotated[
        str | None, typer.Option("--owner", help="Owner that runs the job; the name by default.")
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, max=3600, help="Seconds to repeat the last check-in.")
    ] = 30.0,
    log: Annotated[
        bool, typer.Option("--log/--no-log", help="Send the end of the output with the last check-in.")
    ] = True,
) -> None:
    """Run a command, and check in when it starts and when it ends.

    The exit code is that of the command; 128 and the number of the signal if one ended it. Without a
    connection the command runs all the same, and a warning is printed.

    \b
    Example of a crontab:
      0 2 * * * tocsin run-job nightly-backup -- /usr/local/bin/backup --all
    """
    import asyncio

    from tocsin.cli.heartbeats.reported_job import ReportedJob

    raise typer.Exit(asyncio.run(ReportedJob(name, command, owner or name, wait, log).run()))
