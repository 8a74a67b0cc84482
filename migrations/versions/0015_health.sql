-- Health of systems: rolled up by tocsin.append itself, in the transaction of the record that changed it, whoever writes it.

create table tocsin.system_health (
    system text primary key check (length(system) between 1 and 128),
    health text not null default 'unknown' check (health in ('ok', 'degraded', 'outage', 'unknown')),
    reason text check (reason in ('stale', 'no-data', 'uncovered')),
    since timestamptz,
    -- Severities from which on an alarm of a member counts.
    degraded_at smallint not null,
    outage_at smallint not null,
    -- Its members changed: it is rolled up by the next append, which is that of the apply.
    dirty boolean not null default true
) with (fillfactor = 50);

-- The members of systems as series. A member that is named by its type has a row with the key '' until series of that type were
-- seen, and one for each of those.
create table tocsin.system_member (
    system text not null references tocsin.system_health on delete cascade,
    owner text not null,
    key text not null,
    type text not null default '',
    required boolean not null,
    -- Whether anything could ever say that it is ill: an event_rule, or a watched datapoint_type.
    covered boolean not null,
    condition text not null default 'no-data'
        check (condition in ('ok', 'degraded', 'outage', 'stale', 'no-data', 'uncovered')),
    primary key (system, owner, key, type)
) with (fillfactor = 70);
create index system_member_owner on tocsin.system_member (owner);
create index alarm_open_owner on tocsin.alarm (owner) where state = 'open';

-- What a member is in, from its series and the open alarms that its series holds. An alarm that began with the silence says no
-- more than the silence; one that began before it stands.
create function tocsin.member_condition(member tocsin.system_member) returns text
language sql stable
as $$
    select case
        when a.severity >= h.outage_at then 'outage'
        when a.severity >= h.degraded_at then 'degraded'
        when c.owner is null then 'no-data'
        when c.freshness = 'stale' then 'stale'
        when not member.covered then 'uncovered'
        else 'ok'
    end
    from tocsin.system_health h
    left join tocsin.current_value c on c.owner = member.owner and c.key = member.key
    left join lateral (
        select max(one.severity) as severity
        from tocsin.alarm one
        join tocsin.rule_state s on s.event_rule = one.event_rule and s.owner = one.owner and s.alarm_id = one.id
        where one.owner = member.owner and one.state = 'open' and s.state -> 'verdicts' ? member.key
          and (s.phase = 'clearing' or s.state #>> array['verdicts', member.key, 'clear_due_at'] is null)
          and (c.stale_since is null or one.since < c.stale_since)
    ) a on true
    where h.system = member.system
$$;

-- Roll up the systems that have members of these owners, and those whose members changed, as of an instant. Returns a calculated
-- datapoint for each whose health is another one than before. Called under the log's lock, so roll-ups take turns, and each
-- sees what the one before it committed. rules.health.roll_up says the same in Python; a test holds them equal.
create function tocsin.roll_up(owners text[], at timestamptz) returns tocsin.calculated_input[]
language plpgsql volatile
set search_path = tocsin, pg_temp
as $$
declare
    systems text[];
    verdicts tocsin.calculated_input[];
begin
    select array_agg(distinct s.system) into systems
    from (
        select m.system from tocsin.system_member m where m.owner = any (owners)
        union all
        select h.system from tocsin.system_health h where h.dirty
    ) s;
    if systems is null then
        return '{}';
    end if;
    update tocsin.system_member m
    set condition = n.condition
    from (
        select o.system, o.owner, o.key, o.type, tocsin.member_condition(o) as condition
        from tocsin.system_member o
        join tocsin.system_health h on h.system = o.system
        where o.system = any (systems) and (o.owner = any (owners) or h.dirty)
    ) n
    where m.system = n.system and m.owner = n.owner and m.key = n.key and m.type = n.type
      and m.condition <> n.condition;
    with counted as (
        select m.system,
               count(*) filter (where m.condition = 'outage' and m.required) as outage,
               count(*) filter (where m.condition = 'stale' and m.required) as stale,
               count(*) filter (where m.condition = 'degraded'
                                or (m.condition in ('outage', 'stale') and not m.required)) as degraded,
               count(*) filter (where m.condition = 'ok' and m.required) as ok,
               count(*) filter (where m.condition = 'no-data' and m.required) as no_data
        from tocsin.system_member m
        where m.system = any (systems)
          and not (m.key = '' and exists (
              select from tocsin.system_member seen
              where seen.system = m.system and seen.owner = m.owner and seen.type = m.type and seen.key <> ''))
        group by m.system
    ),
    judged as (
        select c.*,
               case when c.outage > 0 then 'outage' when c.stale > 0 then 'unknown' when c.degraded > 0 then 'degraded'
                    when c.ok > 0 then 'ok' else 'unknown' end as health,
               case when c.outage > 0 then null when c.stale > 0 then 'stale' when c.degraded + c.ok > 0 then null
                    when c.no_data > 0 then 'no-data' else 'uncovered' end as reason
        from counted c
    ),
    changed as (
        update tocsin.system_health h
        set health = j.health, reason = j.reason, dirty = false,
            since = case when (h.health, h.reason) is distinct from (j.health, j.reason) or h.since is null
                         then roll_up.at else h.since end
        from judged j, (select * from tocsin.system_health) before
        where h.system = j.system and before.system = h.system
          and (h.dirty or (h.health, h.reason) is distinct from (j.health, j.reason))
        returning h.system, h.health, h.reason, before.health as was, before.since is null as is_new,
                  (before.health, before.reason) is distinct from (h.health, h.reason) as is_other
    )
    select array_agg(
        row(gen_random_uuid(), c.system, 'system.health', roll_up.at, 'health', null,
            jsonb_build_object(
                'health', c.health, 'reason', c.reason, 'was', case when not c.is_new then c.was end,
                'members', (
                    select coalesce(jsonb_agg(jsonb_build_object('owner', t.owner, 'key', t.key, 'type', t.type,
                                                                 'required', t.required, 'condition', t.condition)), '[]')
                    from (
                        select * from tocsin.system_member m
                        where m.system = c.system and m.condition <> 'ok'
                        order by array_position(array['outage', 'stale', 'degraded', 'no-data', 'uncovered'], m.condition),
                                 not m.required, m.owner, m.key
                        limit 10
                    ) t)))::tocsin.calculated_input
        order by c.system)
        into verdicts
    from changed c
    where c.is_new or c.is_other;
    return coalesce(verdicts, '{}');
end
$$;

-- As before, and with the health of systems: `touched` are owners of whose series something changed at `touched_at` that has no
-- record of its own. Returns the last seq of the records that were given; verdicts about health follow them.
drop function tocsin.append;
create function tocsin.append(
    events tocsin.event_input[] default '{}',
    steps tocsin.step_input[] default '{}',
    expected_epoch bigint default null,
    calculated tocsin.calculated_input[] default '{}',
    touched text[] default '{}',
    touched_at timestamptz default null
) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    current_epoch bigint;
    head bigint;
    at timestamptz;
    given integer := cardinality(events) + cardinality(steps) + cardinality(calculated);
    records integer;
begin
    -- An older snapshot would see an older epoch and an older head.
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the record log is appended to in read committed transactions, not in %',
            current_setting('transaction_isolation') using errcode = 'TS003';
    end if;
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
    -- A new statement, so a new snapshot: it sees what the previous holder of the lock committed.
    select h.epoch, greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into current_epoch, head from tocsin.log_head h;
    if expected_epoch is not null and expected_epoch <> current_epoch then
        raise exception 'deposed: epoch % was superseded by %', expected_epoch, current_epoch
            using errcode = 'TS001';
    end if;
    if given = 0 and cardinality(touched) = 0 then
        return head;
    end if;
    at := tocsin.instant();
    if exists (select from tocsin.system_health) then
        calculated := calculated || (
            select tocsin.roll_up(coalesce(array_agg(distinct c.owner), '{}'), coalesce(max(c.ts), at))
            from (
                select e.owner, e.ts from unnest(events) e where e.alarm_id is not null
                union all
                select v.owner, v.ts from unnest(calculated) v
                union all
                select t.owner, touched_at from unnest(touched) as t (owner)
            ) c);
    end if;
    records := cardinality(events) + cardinality(steps) + cardinality(calculated);
    if records = 0 then
        return head;
    end if;
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
                                        correlation_id, source_event_id, result)
        select head + cardinality(events) + s.position, s.id, s.action_id, s.name, coalesce(s.owner, ''), s.step,
               s.attempt, s.state, at, s.correlation_id, s.source_event_id, coalesce(s.result, '{}')
        from unnest(steps) with ordinality as s (id, action_id, name, owner, step, attempt, state, correlation_id,
                                                 source_event_id, result, position);
    end if;
    if cardinality(calculated) > 0 then
        insert into tocsin.datapoint_calculated (seq, id, owner, key, ts, recorded_at, verdict, payload,
                                                 correlation_id, epoch)
        select head + cardinality(events) + cardinality(steps) + c.position, c.id, c.owner, c.key, c.ts, at,
               c.verdict, coalesce(c.payload, '{}'), coalesce(c.correlation_id, c.id), expected_epoch
        from unnest(calculated) with ordinality as c (id, owner, key, ts, verdict, correlation_id, payload, position);
    end if;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    values (head + records, head + 1, at, expected_epoch);
    perform pg_notify('tocsin_log', '');
    return head + given;
end
$$;
revoke all on function tocsin.roll_up, tocsin.append from public;
