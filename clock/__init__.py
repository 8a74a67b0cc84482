"""The clock: one leader turns due timers into records, each exactly once.

Any number of clocks may run; one leads and the others wait.

Guarantees (numbered as in docs/guarantees.md):
- I1: each occurrence of a schedule ends as exactly one of fired, missed or cancelled. The
  transaction that records an occurrence moves the tick row to the next one.
- I2: nothing commits under a superseded epoch. Every fire proves its epoch inside `tocsin.append`.
- The four timer kinds take turns in one loop, each with its own scan, so that none starves another
  (`kinds`, `scan`).
- A timer that fails alone never stops the others: it is retried with a growing delay, and parked
  after `max_failures`.

Why this way: the NATS lease (`lease`) only decides which process tries. Postgres (`term`) decides
which one may commit. A leader that is frozen, partitioned or deposed finds out when it commits, and
can do no harm before.

On failure: every process may die at any line. What was not committed is still due, and the next
leader scans from the beginning of time.

Entry points: `tocsin run clock` runs `service.Clock`, which calls `term.Term.run_once` in each
round. The command line calls `schedule_commands`, `explain` and `retention`. The publisher uses
`lease` as well, and other services read time through `time_source`.
"""
