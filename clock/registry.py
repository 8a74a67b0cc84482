"""The timer kinds that the clock fires, in the order of their turns.

A kind that is not listed here is not scanned: its due timers never fire.
"""

from clock.kinds import AnyTimerKind
from clock.runbook_waits import RunbookWaits
from clock.sustains import Sustains
from clock.ticks import ScheduleTicks
from clock.watchdogs import Watchdogs

KINDS: tuple[AnyTimerKind, ...] = (ScheduleTicks(), Sustains(), RunbookWaits(), Watchdogs())
