"""The options of a recurrence, which `schedule add` and `next` share."""

from __future__ import annotations

from typing import Annotated

import typer

Cron = Annotated[str | None, typer.Option("--cron", help="Five fields, or @daily and the like.")]
Rrule = Annotated[str | None, typer.Option("--rrule", help="Recurrence of RFC 5545, without DTSTART.")]
Every = Annotated[str | None, typer.Option("--every", help="Interval such as 90s or 1h30m.")]
Dtstart = Annotated[str | None, typer.Option("--dtstart", help="First wall time of an rrule.")]
DstGap = Annotated[
    str, typer.Option("--dst-gap", help="For a time that the clocks skip: forward (move it) or skip.")
]
DstFold = Annotated[
    str,
    typer.Option("--dst-fold", help="For a time that occurs twice: first, second or both."),
]
