-- Health of systems: a function of instants (docs/decisions/0017). tocsin.append stores
-- observations about members; a worker computes health from them once every partition has been read
-- that far.

create table tocsin.system_health (
    system text primary key check (length(system) between 1 and 128),
    health text not null default 'unknown' check (health in ('ok', 'degraded', 'outage', 'unknown')),
    reason text check (reason in ('stale', 'no-data', 'uncovered')),
    since timestamptz,
    holds_from timestamptz not null
) with (fillfactor = 50);
comment on table tocsin.system_health is
    'Health of each system. Written by an apply, and by the worker that computes health. Read '
    'with `tocsin health`.';
comment on column tocsin.system_health.reason is 'Why the health is unknown; null otherwise.';
comment on column tocsin.system_health.since is 'Start of the current health and reason.';
comment on column tocsin.system_health.holds_from is
    'Instant from which the current documents are in force. No health is computed for an earlier '
    'one.';

create table tocsin.system_member (
    system text not null references tocsin.system_health on delete cascade,
    owner text not null,
    key text not null,
    type text not null default '',
    required boolean not null,
    covered boolean not null,
    condition text not null default 'no-data'
        check (condition in ('ok', 'degraded', 'outage', 'stale', 'no-data', 'uncovered')),
    holds boolean not null default false,
    primary key (system, owner, key, type)
) with (fillfactor = 70);
create index system_member_owner on tocsin.system_member (owner);
comment on table tocsin.system_member is
    'Members of systems, one row per series. A member that is given by a datapoint_type has one '
    'row with an empty key until a series of that type is seen. Written as tocsin.system_health.';
comment on column tocsin.system_member.type is
    'The datapoint_type that the member was given by; empty if by its key.';
comment on column tocsin.system_member.required is
    'An outage of a required member is an outage of the system; one of an optional member '
    'degrades it.';
comment on column tocsin.system_member.covered is
    'Whether an event_rule or the deadline of a datapoint_type can detect a problem of the series.';
comment on column tocsin.system_member.holds is
    'Whether the last value stays valid when the series is stale (on_stale: hold).';

create table tocsin.member_observation (
    id bigint generated always as identity primary key,
    owner text not null,
    at timestamptz not null,
    what text not null check (what in ('fresh', 'stale', 'alarm')),
    subject text not null,
    severity smallint,
    since timestamptz,
    keys text[] not null default '{}'
);
comment on table tocsin.member_observation is
    'Observations: changes of the series and alarms of members that health was not yet computed '
    'from. Written by tocsin.append, removed by the worker that computes health.';
comment on column tocsin.member_observation.at is
    'Instant of the change. Health takes observations in this order.';
comment on column tocsin.member_observation.what is
    'fresh or stale: a series changed; alarm: an alarm opened, changed or resolved.';
comment on column tocsin.member_observation.subject is
    'Key of the series, or name of the event_rule of the alarm.';
comment on column tocsin.member_observation.keys is
    'Keys of the series that keep the alarm open; empty if the alarm is not open.';

create table tocsin.member_series (
    owner text not null,
    key text not null,
    stale_since timestamptz,
    primary key (owner, key)
) with (fillfactor = 70);
comment on table tocsin.member_series is
    'Series of the owners of members, as of the observations that health was computed from. '
    'Written by an apply, and by the worker that computes health.';

create table tocsin.member_alarm (
    owner text not null,
    rule text not null,
    severity smallint not null,
    since timestamptz not null,
    keys text[] not null,
    primary key (owner, rule)
) with (fillfactor = 70);
comment on table tocsin.member_alarm is
    'Open alarms of the owners of members, as of the observations that health was computed from. '
    'Written as tocsin.member_series.';
comment on column tocsin.member_alarm.keys is 'Keys of the series that keep the alarm open.';

create function tocsin.record_observations(
    events tocsin.event_input[],
    calculated tocsin.calculated_input[],
    observations tocsin.member_observation_input[]
) returns void
language plpgsql volatile
-- Without this, Postgres plans every call again, which takes longer than the call.
set plan_cache_mode = force_generic_plan
as $$
begin
    if observations is not null then
        insert into tocsin.member_observation (owner, at, what, subject, severity, since, keys)
        select o.owner, o.at, o.what, o.subject, o.severity, o.since, coalesce(o.keys, '{}')
        from unnest(observations) with ordinality as o (owner, at, what, subject, severity, since, keys, position)
        where exists (select from tocsin.system_member m where m.owner = o.owner)
        order by o.position;
        return;
    end if;
    -- Most records concern no member. This test does not copy the arrays and reads only the index
    -- on owner.
    if exists (select from (select unnest(calculated) as c) g
               where (select true from tocsin.system_member m where m.owner = (g.c).owner limit 1)) then
        insert into tocsin.member_observation (owner, at, what, subject)
        select c.owner, c.ts, c.kind, c.key
        from unnest(calculated) with ordinality as c (id, owner, key, ts, kind, correlation_id, payload, position)
        where c.kind in ('fresh', 'stale') and exists (select from tocsin.system_member m where m.owner = c.owner)
        order by c.position;
    end if;
    if exists (select from (select unnest(events) as e) g
               where (g.e).alarm_id is not null
                 and (select true from tocsin.system_member m where m.owner = (g.e).owner limit 1)) then
        insert into tocsin.member_observation (owner, at, what, subject, severity, since, keys)
        select e.owner, e.ts, 'alarm', e.rule, e.severity, a.since,
               case when e.type = 'alarm-opened' then
                   array(select v.key from jsonb_each(s.state -> 'firing_series') v where v.value ->> 'clear_due_at' is null)
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
comment on function tocsin.record_observations is
    'Stores the observations about owners of members that a worker gives or, if observations is '
    'null, those that follow from the records. Called by tocsin.append under the lock of the log, '
    'which an apply also takes when it changes members.';
revoke all on function tocsin.record_observations from public;
