-- Priorities of runs: workers that have more due steps than they can perform take the urgent ones first.

alter table tocsin.action
    add column priority text check (priority in ('high', 'low'));
comment on column tocsin.action.priority is
    'Priority of its steps, from the document; null: normal. Workers perform high before normal, and normal '
    'before low.';

alter table tocsin.action_step
    add column priority text check (priority in ('high', 'low'));
comment on column tocsin.action_step.priority is
    'Priority of the run, null: normal. A due step with a priority has a subject of its own, which workers '
    'read apart from the others.';

-- As before, with the priority of each step, which is that of its run.
create or replace function tocsin.append(events tocsin.event_input[] DEFAULT '{}'::tocsin.event_input[], steps tocsin.step_input[] DEFAULT '{}'::tocsin.step_input[], expected_epoch bigint DEFAULT NULL::bigint, calculated tocsin.calculated_input[] DEFAULT '{}'::tocsin.calculated_input[], observations tocsin.member_observation_input[] DEFAULT NULL::tocsin.member_observation_input[])
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    current_epoch bigint;
    head bigint;
    at timestamptz;
    records integer := cardinality(events) + cardinality(steps) + cardinality(calculated);
begin
    -- An older snapshot would see an older epoch and an older head.
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the record log is appended to in read committed transactions, not in %',
            current_setting('transaction_isolation') using errcode = 'TS003';
    end if;
    lock table tocsin.lock_log in share row exclusive mode;
    -- A new statement, so a new snapshot: it sees what the previous holder of the lock committed.
    select h.epoch, greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into current_epoch, head from tocsin.log_head h;
    if expected_epoch is not null and expected_epoch <> current_epoch then
        raise exception 'deposed: epoch % was superseded by %', expected_epoch, current_epoch
            using errcode = 'TS001';
    end if;
    if exists (select from tocsin.system_health) then
        perform tocsin.record_observations(events, calculated, observations);
    end if;
    if records = 0 then
        return head;
    end if;
    at := tocsin.instant();
    if cardinality(events) > 0 then
        insert into tocsin.event (seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at,
                                  alarm_id, severity, source_event_id, correlation_id, payload, epoch)
        select head + e.position, e.id, e.ts, at, e.origin, e.type, coalesce(e.schedule, ''), coalesce(e.rule, ''),
               coalesce(e.action, ''), coalesce(e.owner, ''), e.fire_at, e.alarm_id, e.severity,
               e.source_event_id, coalesce(e.correlation_id, e.id), coalesce(e.payload, '{}'), expected_epoch
        from unnest(events) with ordinality as e (id, ts, origin, type, schedule, rule, action, owner, fire_at,
                                                  alarm_id, severity, source_event_id, correlation_id, payload, position);
    end if;
    if cardinality(steps) > 0 then
        insert into tocsin.action_step (seq, id, action_id, name, owner, step, attempt, state, recorded_at,
                                        correlation_id, source_event_id, result, priority)
        select head + cardinality(events) + s.position, s.id, s.action_id, s.name, coalesce(s.owner, ''), s.step,
               s.attempt, s.state, at, s.correlation_id, s.source_event_id, coalesce(s.result, '{}'),
               (select a.priority from tocsin.action a where a.id = s.action_id)
        from unnest(steps) with ordinality as s (id, action_id, name, owner, step, attempt, state, correlation_id,
                                                 source_event_id, result, position);
    end if;
    if cardinality(calculated) > 0 then
        insert into tocsin.datapoint_calculated (seq, id, owner, key, ts, recorded_at, kind, payload,
                                                 correlation_id, epoch)
        select head + cardinality(events) + cardinality(steps) + c.position, c.id, c.owner, c.key, c.ts, at,
               c.kind, coalesce(c.payload, '{}'), coalesce(c.correlation_id, c.id), expected_epoch
        from unnest(calculated) with ordinality as c (id, owner, key, ts, kind, correlation_id, payload, position);
    end if;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    values (head + records, head + 1, at, expected_epoch);
    perform pg_notify('tocsin_log', '');
    return head + records;
end
$function$;
