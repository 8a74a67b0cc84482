"""Recurrences: the times of a schedule by `cron`, `rrule`, `every` or `at`, in an IANA timezone.

Guarantee: a recurrence is a pure function of an instant. Fixed times (`0 8 * * *`, an RRULE of
DAILY or coarser, a wall-clock `at`) fire exactly once per wall time: one that the clocks skip fires
right after the jump, one that they repeat fires the first time; `dst_gap` and `dst_fold` choose
otherwise. Interval-like ones (`*/5 * * * *`, `every: 10s`) follow elapsed time: nothing in a gap,
both passes of a fold.

Why our own resolution: croniter and dateutil are exact on naive wall time and wrong across changes
of the clocks, each in its own way. They iterate wall time; only `wall_time` turns it into UTC.

On failure: `parse` rejects with `InvalidInput` what is ambiguous, hostile, or never fires. After
that nothing raises: an exhausted recurrence returns None.
"""

from timers.recurrence.occurrence import Occurrence, WallIdentity, parse_identity
from timers.recurrence.parse import parse, parse_spec
from timers.recurrence.recurrence import Recurrence

__all__ = ["Occurrence", "Recurrence", "WallIdentity", "parse", "parse_identity", "parse_spec"]
