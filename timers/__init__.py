"""Timers: the working set of pending fires, the schedules that feed it, and their recurrences.

Guarantees: `(kind, ref, key)` identifies a timer, so arming is idempotent. A cancel and a fire of
one timer have one winner, decided by the row. A schedule has exactly one tick row while it is
active, and none otherwise. Arming, cancelling and scheduling once are SQL functions too, so that
any service can call them inside its own transaction; they never lock the record log.

Entry points: the command line and `rules.apply` edit schedules (`schedules`), services call the SQL
functions. Workers and the client arm and cancel timers of the other kinds (`working_set`). The
clock fires what is due: `catch_up` decides what a late tick becomes, and `recurrence` computes the
next occurrence, and it moves ticks when there is new tz data (`tz_update`). `tocsin timers retry`
calls `retry`.

On failure: an edit and its tick are one transaction, so a schedule never loses its tick. A timer
that cannot be fired is delayed and then parked, until `tocsin timers retry` (`retry`).
"""
