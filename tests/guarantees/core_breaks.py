"""Breaks of leases, transactions, query plans, tz data and repairs of the log."""

from __future__ import annotations

from tests.guarantees.source_break import Break

CORE_BREAKS = (
    Break(
        "I2",
        "a leader that makes no progress keeps its lease",
        "clock/lease.py",
        "if stalled_s <= _STALLED_AFTER * self._ttl_s:",
        "if stalled_s >= 0:",
        (
            "clock/test_lease.py::test_a_holder_that_makes_no_progress_gives_its_lease_up_until_it_works_again",
            "clock/test_service.py::test_a_leader_whose_database_session_hangs_is_replaced",
        ),
    ),
    Break(
        "Failover",
        "a clock that froze inside a batch keeps its locks",
        "clock/sql/limit_transactions.sql",
        ">= 170000",
        ">= 990000",
        (
            "clock/test_takeover.py::test_a_clock_that_freezes_inside_a_batch_keeps_no_locks_even_without_a_standby",
        ),
    ),
    Break(
        "I3",
        "an erasure stays where its event was",
        "migrations/versions/0036_erasures_move.sql",
        "    update moving set seq = seq + shift;\n    insert into tocsin.erasure",
        "    insert into tocsin.erasure",
        ("cdc/test_adopt.py::test_an_erasure_moves_with_the_event_that_announced_it",),
    ),
    Break(
        "I6",
        "a migration that loses a race for its locks is not repeated",
        "migrations/runner.py",
        "for attempt in range(1, _ATTEMPTS):",
        "for attempt in range(0):",
        ("migrations/test_runner.py::test_a_version_that_loses_a_race_for_its_locks_is_applied_again",),
    ),
    Break(
        "When many timers are due",
        "services read small tables as a whole, also when they have grown",
        "tocsin/core/db.py",
        '"enable_seqscan": "off",',
        '"enable_seqscan": "on",',
        ("test_query_plans.py::test_services_read_no_growing_table_as_a_whole",),
    ),
    Break(
        "When many timers are due",
        "a held timer is looked at again without a rest",
        "clock/scan.py",
        "self._recheck_held_at = now + max(wait, min(_LONGEST_REST, _REST_PER_COST * walked))",
        "self._recheck_held_at = now + wait",
        ("clock/test_scan.py::test_a_pass_over_dead_tuples_costs_at_most_five_percent_of_the_time",),
    ),
    Break(
        "Time",
        "new tz data fires what lay inside a pause",
        "timers/tz_update.py",
        "return recurrence.occurrence_behind(tick.armed_after, done)",
        "return recurrence.occurrence_behind(tick.done_until or tick.armed_after, done)",
        ("timers/test_tz_update.py::test_a_resumed_schedule_does_not_fire_what_lay_inside_its_pause",),
    ),
    Break(
        "Time",
        "a wall time that is done fires again when its zone moves west",
        "timers/tz_update.py",
        "done = parse_identity(tick.done_identity)",
        "done = parse_identity(None)",
        ("timers/test_tz_update.py::test_a_wall_time_that_is_done_does_not_fire_again",),
    ),
)
