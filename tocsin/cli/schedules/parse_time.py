"""`tocsin parse-time`: shows the instant that a text means. Needs no server.

Guarantee: `tocsin schedule add --at` with the same phrase means the same instant, because both use
the same code.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.options import Json, Tz, instant_option
from tocsin.cli.output import countdown, local_text, print_json, utc_text


def parse_time(
    text: Annotated[
        str,
        typer.Argument(
            help='A phrase such as "tomorrow at 9am", an ISO text, or a Unix timestamp.', metavar="TEXT"
        ),
    ],
    tz: Tz = "UTC",
    now: Annotated[str | None, typer.Option("--now", help="Instant to count from; now by default.")] = None,
    as_json: Json = False,
) -> None:
    """Show the instant that a text means; needs no server.

    \b
    Examples:
      tocsin parse-time "friday at 3pm" --tz Europe/London
      tocsin parse-time 1736882445
    """
    from clock.time_source import wall_now
    from timers.natural_time import parse_time as parse

    start = wall_now() if now is None else instant_option(now, "--now")
    instant = parse(text, now=start, tz=tz)
    if as_json:
        print_json({"text": text, "local": local_text(instant, tz), "utc": instant, "tz": tz})
    else:
        typer.echo(f"{local_text(instant, tz)} ({tz}) = {utc_text(instant)}, {countdown(instant - start)}")
