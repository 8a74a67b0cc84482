-- Due sustains with their alarms, oldest first. Those that may fire are locked. One whose partition
-- has not been read far enough, or that another transaction has locked, is returned as held and
-- without a lock. The ctid is that of the locked row, which may be newer than the row that was
-- read. Index: timer_due; the keys of alarm, rule_state and lane_partition. The state of an alarm is
-- safe to read here: every change of it removes or moves its timer first. Row by row: the planner
-- does not know the size of the batch and would compare all rows with each other.
with due as materialized (
    select t.ctid as row_id, t.ref, t.key, t.fire_at
    from tocsin.timer t
    where t.kind = 'for-sustain'
      and t.parked_at is null
      and (t.fire_at, t.ref, t.key) > (%(mark)s, %(mark_ref)s, %(mark_key)s)
      and t.fire_at <= %(now)s
    order by t.fire_at, t.ref, t.key
    limit %(limit)s
)
select taken.locked_id::text, due.ref, due.key, due.fire_at, taken.nominal_at, taken.generation, taken.payload,
       taken.generation is null, a.event_rule, a.owner, a.instance, a.state, a.severity, a.correlation_id, a.source_event_id
from due
left join lateral (
    select t.ctid as locked_id, t.nominal_at, t.generation, t.payload
    from tocsin.timer t
    where t.ctid = due.row_id and t.kind = 'for-sustain' and t.ref = due.ref and t.key = due.key
      and t.parked_at is null and t.fire_at <= %(now)s
      and (t.key = 'snooze' or not exists (
          select from tocsin.alarm a
          join tocsin.rule_state s on s.event_rule = a.event_rule and s.owner = a.owner and s.instance = a.instance
          join tocsin.lane_partition p on p.lane = s.lane and p.partition = s.partition
          where a.id = t.ref::uuid
            and (p.watermark is null or p.watermark <= t.nominal_at
                 or (s.lane = 'data' and (
                     -- A staleness deadline at or before that instant comes first: one that is not
                     -- evaluated yet,
                     exists (
                         select from tocsin.timer w
                         where w.kind = 'watchdog' and w.ref = tocsin.token(a.owner) and w.nominal_at <= t.nominal_at
                           and w.parked_at is null)
                     -- or one that the rules have not processed.
                     or exists (
                         select from tocsin.current_value c
                         where c.owner = a.owner and c.freshness = 'stale' and c.stale_since <= t.nominal_at
                           and c.handled_stale_since is distinct from c.stale_since))))))
    for update of t skip locked
) taken on true
left join lateral (
    select * from tocsin.alarm candidate where candidate.id = due.ref::uuid offset 0
) a on taken.generation is not null
order by due.fire_at, due.ref, due.key
