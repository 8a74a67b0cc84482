"""Each column that holds a seq either moves with the records at an adopt, or follows the stream."""

from __future__ import annotations

from tests.sql import all_rows
from tocsin.core.db import Connection

# Every column that holds a seq: whether `tocsin.adopt` moves it with the records, or it follows the stream.
MOVED = {
    *(
        "event.seq",
        "action_step.seq",
        "datapoint_calculated.seq",
        "log_commit.first_seq",
        "log_commit.last_seq",
    ),
    *("rule_version.from_seq", "rule_version.until_seq", "rule_cutover.rules_seq"),
    *("calc_position.rules_seq", "erasure.seq"),
    *("log_gap.from_seq", "log_gap.until_seq", "action_wait.after_seq"),
}
FOLLOWS_THE_STREAM = {
    *("action.event_seq", "action_event.event_seq", "lane_partition.last_seq", "message_attempt.seq"),
    *(
        "datapoint.stream_seq",
        "current_value.stream_seq",
        "rule_cutover.seq",
        "lane_partition.last_source_seq",
    ),
    *("cdc_report.first_seq", "cdc_report.last_seq", "cdc_report.seq", "event_kept.seq"),
}


async def test_every_column_with_a_seq_is_listed_as_moved_or_kept(connection: Connection) -> None:
    rows = await all_rows(
        connection,
        "select c.relname || '.' || a.attname as name from pg_class c join pg_attribute a on a.attrelid = c.oid"
        " where c.relnamespace = 'tocsin'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition"
        " and a.attname ~ 'seq' and a.attnum > 0 and not a.attisdropped",
    )
    listed = MOVED | FOLLOWS_THE_STREAM
    assert {row["name"] for row in rows} - listed == set(), (
        "list it here, and in tocsin.move_records if it moves"
    )
