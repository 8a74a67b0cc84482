"""Rules: documents become versions in Postgres, and workers evaluate streams with them.

Guarantees: a set of files is applied as a whole or not at all, and applying it again changes
nothing. A rule sees only events that were committed after it was applied. An event is evaluated
with the versions that hold at its seq, whichever worker evaluates it and however late. A run starts
at most once per (action_rule, event) (guarantee I7 in docs/guarantees.md). Its steps take effect at
least once, with one idempotency key.

Why this way: versions begin and end at a seq of the record log (the `rules-applied` event), so the
rules for an event are defined by the log and not by the memory of a worker.

Entry points: `tocsin run worker` runs `worker.Worker`, which starts the lanes, the performer and the
consumers of reports and external events. `tocsin plan`, `apply` and `up` call `apply`, `tocsin
test` and `backtest` call `replay`.

The packages import each other in one order (docs/decisions/0021): `replay > apply > dispatch >
actions > alarms > health > lanes > documents > engine, runbook, delivery > language`.
"""
