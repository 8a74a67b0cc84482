"""Runs of actions in Postgres: performing steps, committing outcomes, cancelling and retrying runs.

Guarantees: an outcome is committed together with everything that follows from it, once per (run,
step, attempt). A second commit finds that the run has changed, and writes nothing. A cancelled run
takes no outcome and has no timers and no event waits left. Every transaction locks in the global
order: timers, entities, one append.

Why a version decides: branches of a `parallel` end at the same moment on different workers. A
commit is based on the run as it was read, and Postgres rejects it if the version has changed; the
worker then reads the run again.

Entry points: the worker runs `performer` and `reports`, the record lane calls `cancel` and `queue`,
and commands of operators use `history`, `retry`, `cancel` and `channels`.
"""
