"""`tocsin checkin`: a job checks in to its heartbeat.

Guarantee: when it returns, JetStream has stored the check-in. It needs NATS only, no database.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, printable
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import InvalidInput

_MAX_READ = 1_000_000


def check_in(
    name: Annotated[str, typer.Argument(help="Name of the heartbeat.")],
    status: Annotated[str, typer.Argument(help="start, success or fail.")] = "success",
    exit_code: Annotated[
        int | None, typer.Option("--exit-code", help="Exit code of the job: 0 is a success, others a fail.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Owner that runs the job; the name by default.")
    ] = None,
    run: Annotated[str, typer.Option("--run", help="Run id: pairs the start and the end of a run.")] = "",
    duration: Annotated[
        float | None, typer.Option("--duration", min=0, help="How long the run took, in seconds.")
    ] = None,
    log: Annotated[
        str,
        typer.Option("--log", help="End of the output; `-` reads it from stdin. 4,096 characters are kept."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Check in to a heartbeat.

    \b
    Examples:
      tocsin checkin nightly-backup
      tocsin checkin nightly-backup start --run 17
      tocsin checkin nightly-backup --exit-code 3 --run 17 --log "disk full"
      backup 2>&1 | tail -n 50 | tocsin checkin nightly-backup --log -
    """
    if status not in ("start", "success", "fail"):
        raise InvalidInput(f"{status!r} is no status of a check-in", remedy="use start, success or fail")
    if exit_code is not None and status == "start":
        raise InvalidInput("a start has no exit code", remedy="leave out --exit-code")
    if exit_code is not None:
        status = "fail" if exit_code else "success"
    text = sys.stdin.read(_MAX_READ) if log == "-" else log
    run_command(_check_in(name, status, owner, run, exit_code, duration, text))
    if as_json:
        print_json({"heartbeat": name, "owner": owner or name, "status": status, "run": run})
    else:
        typer.echo(printable(f"checked in to {name}: {status}"))


@over_http("instance.check_in")
async def _check_in(
    name: str,
    status: str,
    owner: str | None,
    run: str,
    exit_code: int | None,
    duration_s: float | None,
    log: str,
) -> None:
    from tocsin.cli.session import command_settings
    from tocsin.client.producer import Producer

    async with Producer(command_settings(), timeout_s=30.0) as producer:
        await producer.check_in(
            name,
            status,  # type: ignore[arg-type]
            owner=owner,
            run=run,
            exit_code=exit_code,
            duration_s=duration_s,
            log=log,
        )
