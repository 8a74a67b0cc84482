-- Verdicts that wait for the pipeline: which, and whether it was said.

-- Timers that are due and must not speak yet, because their partition has not been read up to their instant. The clock decides by
-- its own statements (clock/lock_due_watchdogs, clock/lock_due_sustains); this is for people to look at.
create view tocsin.held_timer as
select t.kind, t.ref, t.key, t.nominal_at, p.lane, p.partition
from tocsin.timer t
join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
join tocsin.ingest_partition p on p.lane = 'data' and p.partition = c.partition
where t.kind = 'watchdog' and t.parked_at is null and t.fire_at <= (select tocsin.instant())
  and c.freshness = 'fresh'
  and c.arrived_at + (t.payload ->> 'within_us')::bigint * interval '1 microsecond' <= t.nominal_at
  and (p.complete_until is null or p.complete_until < t.nominal_at)
union all
select t.kind, t.ref, t.key, t.nominal_at, p.lane, p.partition
from tocsin.timer t
join tocsin.alarm a on a.id = t.ref::uuid
join tocsin.rule_state s on s.event_rule = a.event_rule and s.owner = a.owner
join tocsin.ingest_partition p on p.lane = s.lane and p.partition = s.partition
where t.kind = 'for-sustain' and t.key <> 'snooze' and t.parked_at is null and t.fire_at <= (select tocsin.instant())
  and (p.complete_until is null or p.complete_until < t.nominal_at);

-- One row: whether the pipeline is known to be behind. One event tells of the beginning of an episode and one of its end.
create table tocsin.pipeline_report (
    only_row boolean primary key default true check (only_row),
    since timestamptz
) with (fillfactor = 50);
insert into tocsin.pipeline_report default values;
