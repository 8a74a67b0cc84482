"""Breaks of schedules: new tz data, payloads, locks and caches."""

from __future__ import annotations

from tests.guarantees.source_break import Break

SCHEDULE_BREAKS = (
    Break(
        "Time",
        "a schedule that cannot be read ends the update of the others",
        "timers/tz_update.py",
        "except Exception as error:  # any error belongs to this tick alone",
        "except AttributeError as error:",
        ("timers/test_tz_update.py::test_a_schedule_that_cannot_be_read_does_not_stop_the_others",),
    ),
    Break(
        "Time",
        "new tz data waits for a tick that another transaction holds",
        "timers/sql/move_ticks.sql",
        "for update of locked skip locked",
        "for update of locked",
        ("timers/test_tz_update.py::test_a_tick_that_another_transaction_holds_is_moved_later",),
    ),
    Break(
        "Time",
        "an edit by older tz data is accepted",
        "timers/tz_version.py",
        "release(own) < release(stored)",
        "release(own) > release(stored)",
        ("timers/test_tz_update.py::test_an_edit_by_older_tz_data_is_refused",),
    ),
    Break(
        "Time",
        "an edit during an update is not computed again",
        "timers/tz_update.py",
        "except LOCK_TIMEOUT:\n            return False",
        "except LOCK_TIMEOUT:\n            return True",
        ("timers/test_tz_update.py::test_an_edit_that_is_open_during_an_update_is_computed_again",),
    ),
    Break(
        "Time",
        "new tz data is applied by a clock that was replaced",
        "timers/tz_update.py",
        'await connection.execute(statement("timers/prove_epoch"), {"epoch": self._epoch})',
        "pass",
        ("timers/test_tz_update.py::test_a_superseded_clock_moves_nothing",),
    ),
    Break(
        "Schedules of services",
        "a service may schedule a payload that cannot be read",
        "migrations/versions/0016_schedules.sql",
        "or not tocsin.is_readable(schedule_once.payload) then",
        "or false then",
        ("timers/test_services_sql.py::test_a_payload_that_no_service_can_read_is_refused",),
    ),
    Break(
        "Schedules of services",
        "a number of more digits than Python reads is accepted",
        "migrations/versions/0001_time_settings_and_audit.sql",
        "return octet_length(document::text) <= 4300 or not exists (",
        "return true or not exists (",
        ("timers/test_services_sql.py::test_a_payload_that_no_service_can_read_is_refused",),
    ),
    Break(
        "Schedules of services",
        "each schedule of a transaction takes a lock",
        "migrations/versions/0016_schedules.sql",
        "    -- The unique key decides a race",
        "    perform pg_advisory_xact_lock(hashtextextended(schedule_once.name, 0));\n"
        "    -- The unique key decides a race",
        (
            "timers/test_services_sql.py::"
            "test_the_locks_of_a_transaction_do_not_grow_with_what_it_schedules_and_cancels",
        ),
    ),
    Break(
        "When many timers are due",
        "a batch is not bounded in bytes",
        "clock/ticks.py",
        "or self.bytes >= BYTES_PER_BATCH",
        "or self.bytes < 0",
        ("clock/test_firing.py::test_a_batch_is_bounded_in_the_bytes_of_its_payloads",),
    ),
    Break(
        "When many timers are due",
        "single times fill the cache of recurrences",
        "clock/ticks.py",
        """return parse_spec(json.loads(text)) if text.startswith('{"at"') else _recurring(text)""",
        "return _recurring(text)",
        ("clock/test_firing.py::test_single_times_fill_no_cache",),
    ),
    Break(
        "When a schedule fires",
        "the doctor does not look for active schedules that have no tick",
        "tocsin/doctor/sql/list_schedules_without_tick.sql",
        "where s.status = 'active'",
        "where false",
        ("doctor/test_doctor.py::test_doctor_finds_active_schedules_that_nothing_fires",),
    ),
)
