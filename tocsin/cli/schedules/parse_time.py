"""`tocsin parse-time`: shows the instant that a phrase means. Needs no server.

Guarantee: `tocsin schedule add --at` uses the same code, so both mean the same instant.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.options import Json, Tz, instant_option
from tocsin.cli.output import countdown, local_text, print_json, utc_text


def parse_time(
    text: Annotated[str, typer.Argument(help="A time, as people say it.")],
    tz: Tz = "UTC",
    now: Annotated[str | None, typer.Option("--now", help="Instant to count from; now by default.")] = None,
    as_json: Json = False,
) -> None:
    """Say which instant a phrase means.

    \b
    Example:
      tocsin parse-time "next friday at 3pm" --tz Europe/London
    """
    from clock.time_source import wall_now
    from timers.natural_time import parse_when

    start = wall_now() if now is None else instant_option(now, "--now")
    found = parse_when(text, now=start, tz=tz)
    if as_json:
        print_json({"text": text, "local": local_text(found, tz), "utc": found, "tz": tz})
    else:
        typer.echo(f"{local_text(found, tz)} ({tz}) = {utc_text(found)}, {countdown(found - start)}")
