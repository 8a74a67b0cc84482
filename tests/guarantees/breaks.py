"""Changes of the source that break one guarantee each, and the tests that notice.

A change is a text of one file and its replacement. `tests/test_guarantees.py` checks that each text is
there exactly once and that docs/guarantees.md names the tests. `python -m tests.guarantees` makes the
changes, one after the other, in a copy of the project, and runs the tests.
"""

from __future__ import annotations

from tests.guarantees.schedule_breaks import SCHEDULE_BREAKS
from tests.guarantees.server_breaks import SERVER_BREAKS
from tests.guarantees.source_break import Break

BREAKS = (
    *SCHEDULE_BREAKS,
    *SERVER_BREAKS,
    Break(
        "I1",
        "a tick moves on without its fire",
        "clock/sql/append_tick_events.sql",
        "where schedule.id = e.schedule_id offset 0",
        "where false offset 0",
        ("clock/test_firing.py::test_a_due_tick_becomes_one_scheduled_event",),
    ),
    Break(
        "I1",
        "the clock fires the tick of an older generation, or of a paused schedule",
        "clock/sql/lock_due_ticks.sql",
        "candidate.generation = due.generation and candidate.status = 'active'",
        "true",
        (
            "clock/test_firing.py::test_a_tick_of_another_generation_is_left_alone",
            "clock/test_firing.py::test_a_schedule_that_is_not_active_does_not_fire",
        ),
    ),
    Break(
        "I2",
        "append does not compare the epoch",
        "migrations/versions/0020_priorities.sql",
        "if expected_epoch is not null and expected_epoch <> current_epoch then",
        "if false then",
        (
            "clock/test_takeover.py::test_a_term_superseded_between_its_lock_and_its_append_is_refused",
            "clock/test_kinds.py::test_no_kind_can_write_under_a_superseded_epoch",
        ),
    ),
    Break(
        "I2",
        "two candidates take over the same epoch",
        "migrations/versions/0002_record_log.sql",
        "where h.epoch = expected_epoch\n    returning",
        "where true\n    returning",
        ("clock/test_takeover.py::test_only_one_of_two_candidates_takes_over_the_same_epoch",),
    ),
    Break(
        "I3",
        "a message does not name its predecessor",
        "cdc/chain.py",
        "headers = {_EXPECTED: str(message.seq - 1)}",
        'headers = {"Tocsin-Seq": str(message.seq - 1)}',
        (
            "cdc/test_races.py::test_publishers_that_take_turns_break_each_others_chain_and_lose_nothing",
            "cdc/test_races.py::test_a_second_publisher_is_refused_and_resumes_behind_the_first",
        ),
    ),
    Break(
        "I3",
        "transactions take their seqs without a lock",
        "migrations/versions/0019_locks_guards_and_time.sql",
        "format('lock table tocsin.%I in share row exclusive mode;', change.lock_table)",
        "''",
        (
            "cdc/test_publisher.py::test_thousands_of_records_of_four_writers_that_roll_back_arrive_in_commit_order",
        ),
    ),
    Break(
        "I3",
        "a record is identified by its id alone",
        "cdc/compare.py",
        "return id == other_id and (",
        "return id == other_id or (",
        (
            "cdc/test_divergence.py::test_a_loss_whose_fires_recur_at_the_same_seqs_stops_the_publisher",
            "cdc/test_divergence.py::test_after_any_losses_and_fires_again_each_record_is_in_the_stream_once",
        ),
    ),
    Break(
        "I3",
        "the first message of a chunk asks for no answer",
        "cdc/chain.py",
        'asking = {messages[0].seq: f"{self._inbox}.{token}.first", last:',
        "asking = {last:",
        ("cdc/test_divergence.py::test_a_foreign_message_before_a_chunk_does_not_hide_its_first_record",),
    ),
    Break(
        "I3",
        "the publisher does not wait for a synchronous standby",
        "cdc/publisher.py",
        "await self._replication.confirm(reader.connection)",
        "pass",
        (
            "cdc/test_replication.py::"
            "test_a_record_that_no_synchronous_standby_has_is_published_only_when_it_has_it",
        ),
    ),
    Break(
        "I4",
        "a fired timer stays",
        "clock/sql/remove_timers.sql",
        "where t.ctid = d.row_id",
        "where t.ctid = d.row_id and false",
        ("clock/test_sustains.py::test_a_cancel_during_a_fire_waits_and_finds_no_timer",),
    ),
    Break(
        "I5",
        "a worker computes another deadline than the clock",
        "rules/alarms/staleness.py",
        "is_new = self.stale_since is None",
        "is_new = False",
        ("rules/replay/backtest/test_identity.py::test_a_replay_equals_the_recording",),
    ),
    Break(
        "I6",
        "the position of a lane does not move with the effects",
        "rules/lanes/sql/move_position.sql",
        "set last_seq = %(last_seq)s,",
        "set last_seq = %(expected)s,",
        (
            "rules/lanes/test_faults.py::test_each_message_has_its_effects_once_although_processes_are_killed_and_frozen",
        ),
    ),
    Break(
        "I6",
        "a worker that lost a partition commits",
        "rules/lanes/sql/move_position.sql",
        "and holder = %(holder)s and last_seq = %(expected)s",
        "and %(holder)s::text is not null and %(expected)s::bigint is not null",
        (
            "rules/lanes/test_lease.py::test_a_worker_that_lost_it_and_has_it_again_is_rejected_at_its_old_position",
        ),
    ),
    Break(
        "I7",
        "an event that comes again starts its action again",
        "rules/dispatch/sql/start_actions.sql",
        "join linked l on l.action_rule = w.action_rule and l.event_id = w.event_id",
        "cross join (select 1) l",
        (
            "rules/dispatch/test_dispatch.py::test_dispatchers_at_once_on_the_same_events_start_each_action_once",
        ),
    ),
    Break(
        "I7",
        "each attempt has another idempotency key",
        "rules/actions/steps/due_step.py",
        'return f"{self.run.id}/{self.node.number}"',
        'return f"{self.run.id}/{self.node.number}/{self.attempt}"',
        (
            "rules/actions/test_deliveries.py::test_a_webhook_is_tried_until_it_is_taken_with_one_idempotency_key",
        ),
    ),
    Break(
        "Datapoints and external events",
        "an external event is appended for each delivery",
        "rules/lanes/sql/insert_ingest_events.sql",
        "on conflict do nothing",
        "on conflict (key) do update set event_id = excluded.event_id",
        (
            "rules/lanes/test_external_events.py::test_of_two_transactions_with_one_key_the_second_waits_and_appends_nothing",
        ),
    ),
    Break(
        "Datapoints and external events",
        "a gap in what the server sent is not noticed",
        "rules/lanes/reader.py",
        "if delivered != self._delivered + 1:",
        "if delivered < 0:",
        ("rules/lanes/test_reader.py::test_messages_lost_in_transit_are_read_again",),
    ),
    Break(
        "I6",
        "a missing right is blamed on the messages",
        "rules/lanes/message_fault.py",
        "return is_row_fault(error)",
        "return True",
        ("rules/lanes/test_environment_faults.py::test_a_revoked_right_delays_datapoints_and_rejects_none",),
    ),
    Break(
        "I6",
        "timers that fail in the same way are parked",
        "tocsin/core/breaker.py",
        "return len(failures.sources) < LIMIT",
        "return True",
        ("clock/test_poison.py::test_a_cause_that_all_rows_share_parks_none_of_them",),
    ),
    Break(
        "Datapoints and external events",
        "a record that only the stream has starts its actions",
        "rules/lanes/record_lane.py",
        "events = await _in_the_log(connection, read)",
        "events = read",
        (
            "rules/lanes/test_record_lane.py::"
            "test_records_that_the_log_has_lost_start_nothing_and_those_written_since_do",
        ),
    ),
    Break(
        "Datapoints and external events",
        "records that expired in the stream are skipped",
        "rules/lanes/reader.py",
        "self._last_seq = messages[-1].seq",
        "self._last_seq, messages = messages[-1].seq, messages[-1:]",
        (
            "rules/lanes/test_record_lane.py::"
            "test_records_that_expired_in_the_stream_are_read_from_the_table_in_order",
        ),
    ),
    Break(
        "Datapoints and external events",
        "records that the stream lost are skipped",
        "rules/lanes/reader.py",
        "if self._lane.has_stable_sequences and message.seq > self._last_seq + 1:",
        "if message.seq < 0:",
        ("rules/lanes/test_record_lane.py::test_records_that_the_stream_lost_are_read_from_the_table",),
    ),
    Break(
        "Datapoints and external events",
        "a stream that lost its end and grew again is taken for the same",
        "rules/lanes/reader.py",
        'return parse_instant(found["message"]["time"]) == position.last_stored_at',
        "return True",
        (
            "rules/lanes/test_reader.py::"
            "test_a_stream_that_lost_its_end_and_grew_past_the_position_is_read_by_the_time_of_arrival",
        ),
    ),
    Break(
        "Alarms and stale series",
        "a deadline passes before its partition has been read",
        "clock/sql/lock_due_watchdogs.sql",
        "or p.watermark >= t.nominal_at)",
        "or true)",
        ("clock/test_watchdogs.py::test_an_outage_of_the_workers_makes_no_series_stale",),
    ),
    Break(
        "Alarms and stale series",
        "the time in which no message could arrive counts",
        "rules/lanes/reader.py",
        "return message._replace(gap_began_at=before)",
        "return message",
        (
            "faults/test_nats_outage.py::test_after_an_outage_of_nats_only_a_series_that_stopped_in_it_is_stale",
            "rules/lanes/test_reader.py::test_a_message_that_ends_a_gap_carries_its_start",
        ),
    ),
    Break(
        "Alarms and stale series",
        "an alarm is acknowledged as often as it is asked for",
        "rules/alarms/sql/acknowledge_alarm.sql",
        "and acknowledged_at is null",
        "",
        ("rules/alarms/test_operator.py::test_many_acknowledgements_at_once_are_one",),
    ),
    Break(
        "Services that consume",
        "the mark moves over records that the inbox does not have",
        "tocsin/client/_mark_advance.py",
        "if missing is not None and missing > acknowledged:",
        "if missing is not None:",
        (
            "client/test_consume_failover.py"
            "::test_a_failover_that_lost_commits_repeats_the_lost_records_without_a_restart",
        ),
    ),
    Break(
        "Services that consume",
        "a record that was handled is claimed again",
        "tocsin/client/inbox.py",
        "claimed = {seq for seq in inserted if seq > mark[0]}",
        "claimed = set(seqs)",
        ("client/test_inbox.py::test_a_record_is_claimed_once",),
    ),
    Break(
        "Services that consume",
        "a batch begins before the records in front of it are handled",
        "tocsin/client/_batch_loop.py",
        "if not position.is_followed_by(seq, order) or (batch and _is_repeated(message)):",
        "if batch and _is_repeated(message):",
        ("client/test_consume_batches.py::test_another_process_takes_over_in_order",),
    ),
    Break(
        "Services that consume",
        "a record that was lost with a connection is not noticed",
        "tocsin/client/_follow.py",
        "if message.metadata.sequence.consumer != delivered + 1:",
        "if False:",
        (
            "client/test_follow.py::test_a_backlog_is_read_completely_although_connections_die_in_the_middle_of_it",
        ),
    ),
    Break(
        "I8",
        "an alarm that joins while a message is sent is forgotten",
        "rules/runbook/advance.py",
        'if entry.get("seq", 0) > outcome.seq:',
        "if False:",
        (
            "rules/actions/test_notify_live.py::test_an_alarm_that_joins_while_the_message_is_sent_is_in_the_next",
        ),
    ),
    Break(
        "I8",
        "a run is cancelled with its first alarm",
        "rules/actions/sql/lock_actions_of_alarms.sql",
        "where l.action_id = c.id\n",
        "where false\n",
        ("rules/actions/test_notify_live.py::test_a_run_of_a_group_ends_when_all_its_alarms_have_ended",),
    ),
    Break(
        "I8",
        "a delivery that failed is not tried again",
        "rules/runbook/notification_queue.py",
        "retry_at=now + delay,",
        "retry_at=now + timedelta(days=9),",
        (
            "rules/actions/test_delivered_alarms.py"
            "::test_every_open_alarm_is_delivered_in_order_and_the_last_message_is_its_state",
        ),
    ),
    Break(
        "I8",
        "a resolved alarm counts as open",
        "rules/actions/steps/notify_message.py",
        'alarm["state"] != "resolved",',
        "True,",
        (
            "rules/actions/test_delivered_alarms.py"
            "::test_every_open_alarm_is_delivered_in_order_and_the_last_message_is_its_state",
        ),
    ),
    Break(
        "I8",
        "a suppression that ends wakes nothing",
        "rules/dispatch/sql/wake_notifications.sql",
        "e.value ->> 'state' = 'waiting'\n",
        "false\n",
        (
            "rules/actions/test_notify_live.py"
            "::test_a_snooze_holds_notifications_and_what_is_open_at_its_end_is_notified_once",
        ),
    ),
)
