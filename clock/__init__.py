"""The clock: one leader turns due timers into what they produce, each exactly once.

Guarantees:
- I1: each occurrence of a schedule ends as exactly one of fired, missed or cancelled. The tick row moves to
  the next occurrence in the transaction that records this one.
- I2: nothing commits under a superseded epoch. Every fire proves its epoch inside `tocsin.append`.
- The four kinds of timer take turns in one loop, each with its own scan: none starves another (`kinds`, `scan`).
- A timer that fails alone never stops the others: it backs off, and is parked after `max_failures`.

Why this way: the NATS lease (`lease`) only decides who tries. Postgres (`term`) decides who may. A leader
that is frozen, partitioned or deposed finds out when it commits, and cannot do harm before.

On failure: every process may die at any line. What was not committed is still due, and the next leader
scans from the beginning of time.
"""
