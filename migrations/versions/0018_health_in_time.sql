-- Health is a function of instants: facts about members wait until everything up to their instant is decided in all partitions, and
-- are then taken in the order of their instants (rules/health). The append notes them; it rolls up nothing any more.

drop function tocsin.append;
drop function tocsin.roll_up;
drop function tocsin.member_condition;
drop index tocsin.alarm_open_owner;
create index alarm_held_owner on tocsin.alarm (owner) where state <> 'resolved';

-- The documents say which type a key has, and they change.
alter table tocsin.current_value drop column datapoint_type;

alter table tocsin.system_health
    drop column degraded_at,
    drop column outage_at,
    drop column dirty,
    -- The documents of today hold from then on: no verdict is for an earlier instant.
    add column holds_from timestamptz;
update tocsin.system_health set holds_from = coalesce(since, tocsin.instant());
alter table tocsin.system_health alter column holds_from set not null;
-- A member that is named by its type has a row without a key until a series of that type is seen.
delete from tocsin.system_member m
where m.key = '' and exists (
    select from tocsin.system_member seen
    where seen.system = m.system and seen.owner = m.owner and seen.type = m.type and seen.key <> '');

-- The last value of a silent series may still hold (on_stale: hold).
alter table tocsin.system_member add column holds boolean not null default false;

-- What changed about the owners of members, until it is decided.
create type tocsin.member_fact_input as (
    owner text,
    at timestamptz,
    what text,
    subject text,
    severity smallint,
    since timestamptz,
    keys text[]
);
create table tocsin.member_fact (
    id bigint generated always as identity primary key,
    owner text not null,
    at timestamptz not null,
    -- The series `subject` is fresh or stale; or the alarm of the rule `subject` is held by `keys`, by none: it is not open.
    what text not null check (what in ('fresh', 'stale', 'alarm')),
    subject text not null,
    severity smallint,
    since timestamptz,
    keys text[] not null default '{}'
);

-- The series and the open alarms of owners of members, as far as they are decided.
create table tocsin.member_series (
    owner text not null,
    key text not null,
    stale_since timestamptz,
    primary key (owner, key)
) with (fillfactor = 70);
create table tocsin.member_alarm (
    owner text not null,
    rule text not null,
    severity smallint not null,
    since timestamptz not null,
    keys text[] not null,
    primary key (owner, rule)
) with (fillfactor = 70);
insert into tocsin.member_series
select distinct c.owner, c.key, c.stale_since
from tocsin.current_value c
join tocsin.system_member m on m.owner = c.owner;
insert into tocsin.member_alarm
select a.owner, a.event_rule, a.severity, a.since,
       array(select v.key from jsonb_each(s.state -> 'verdicts') v where v.value ->> 'clear_due_at' is null)
from tocsin.alarm a
join tocsin.rule_state s on s.event_rule = a.event_rule and s.owner = a.owner and s.alarm_id = a.id and s.lane = 'data'
where a.state = 'open' and exists (select from tocsin.system_member m where m.owner = a.owner);

-- Facts about owners of members, from those who know (`facts`), or else from the records themselves: the clock opens an alarm
-- for the series that fire, and ends it for all. Under the log's lock, as an apply changes members: neither misses the other.
create function tocsin.note_facts(
    events tocsin.event_input[],
    calculated tocsin.calculated_input[],
    facts tocsin.member_fact_input[]
) returns void
language plpgsql volatile
-- Otherwise every call would be planned anew, for longer than it runs.
set plan_cache_mode = force_generic_plan
as $$
begin
    if facts is not null then
        insert into tocsin.member_fact (owner, at, what, subject, severity, since, keys)
        select f.owner, f.at, f.what, f.subject, f.severity, f.since, coalesce(f.keys, '{}')
        from unnest(facts) with ordinality as f (owner, at, what, subject, severity, since, keys, position)
        where exists (select from tocsin.system_member m where m.owner = f.owner)
        order by f.position;
        return;
    end if;
    -- Most records concern no member. Asked in this way, they are not copied, and only the index of owners is read.
    if exists (select from (select unnest(calculated) as c) g
               where (select true from tocsin.system_member m where m.owner = (g.c).owner limit 1)) then
        insert into tocsin.member_fact (owner, at, what, subject)
        select c.owner, c.ts, c.verdict, c.key
        from unnest(calculated) with ordinality as c (id, owner, key, ts, verdict, correlation_id, payload, position)
        where c.verdict in ('fresh', 'stale') and exists (select from tocsin.system_member m where m.owner = c.owner)
        order by c.position;
    end if;
    if exists (select from (select unnest(events) as e) g
               where (g.e).alarm_id is not null
                 and (select true from tocsin.system_member m where m.owner = (g.e).owner limit 1)) then
        insert into tocsin.member_fact (owner, at, what, subject, severity, since, keys)
        select e.owner, e.ts, 'alarm', e.rule, e.severity, a.since,
               case when e.type = 'alarm-opened' then
                   array(select v.key from jsonb_each(s.state -> 'verdicts') v where v.value ->> 'clear_due_at' is null)
               else '{}' end
        from (
            select g.*
            from unnest(events) with ordinality as g (id, ts, origin, type, schedule, rule, action, owner, fire_at, alarm_id,
                                                      severity, source_event_id, correlation_id, payload, position)
            where g.origin = 'derived' and g.type in ('alarm-opened', 'alarm-resolved')
              and exists (select from tocsin.system_member m where m.owner = g.owner)
            offset 0
        ) e
        join tocsin.rule_state s on s.event_rule = e.rule and s.owner = e.owner and s.lane = 'data'
        join tocsin.alarm a on a.id = e.alarm_id
        order by e.position;
    end if;
end
$$;

-- As before, and it notes facts about members of systems: `facts`, or if that is null what the records say.
create function tocsin.append(
    events tocsin.event_input[] default '{}',
    steps tocsin.step_input[] default '{}',
    expected_epoch bigint default null,
    calculated tocsin.calculated_input[] default '{}',
    facts tocsin.member_fact_input[] default null
) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
    -- A new statement, so a new snapshot: it sees what the previous holder of the lock committed.
    select h.epoch, greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into current_epoch, head from tocsin.log_head h;
    if expected_epoch is not null and expected_epoch <> current_epoch then
        raise exception 'deposed: epoch % was superseded by %', expected_epoch, current_epoch
            using errcode = 'TS001';
    end if;
    if exists (select from tocsin.system_health) then
        perform tocsin.note_facts(events, calculated, facts);
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
    return head + records;
end
$$;
revoke all on function tocsin.note_facts, tocsin.append from public;
