-- Stores the effect of observations, and deletes them: the state of series and alarms, the
-- conditions of members, the health of systems. The caller has locked health, and no other
-- process writes these rows. Readers see all of it or nothing.
with observations as (
    delete from tocsin.member_observation where id = any (%(observations)s::bigint[])
),
series as (
    insert into tocsin.member_series (owner, key, stale_since)
    select * from jsonb_to_recordset(%(series)s) as s (owner text, key text, stale_since timestamptz)
    order by owner, key
    on conflict (owner, key) do update set stale_since = excluded.stale_since
),
ended as (
    delete from tocsin.member_alarm a
    using jsonb_to_recordset(%(ended)s) as ended_alarm (owner text, rule text, instance text)
    where a.owner = ended_alarm.owner and a.rule = ended_alarm.rule and a.instance = ended_alarm.instance
),
alarms as (
    insert into tocsin.member_alarm (owner, rule, instance, severity, since, keys)
    select *
    from jsonb_to_recordset(%(alarms)s)
        as a (owner text, rule text, instance text, severity smallint, since timestamptz, keys text[])
    order by owner, rule, instance
    on conflict (owner, rule, instance) do update
    set severity = excluded.severity, since = excluded.since, keys = excluded.keys
),
seen as (
    delete from tocsin.system_member m
    using jsonb_to_recordset(%(seen)s) as seen_member (system text, owner text, key text, type text)
    where (m.system, m.owner, m.key, m.type)
        = (seen_member.system, seen_member.owner, seen_member.key, seen_member.type)
),
members as (
    insert into tocsin.system_member (system, owner, key, type, required, covered, holds, condition)
    select *
    from jsonb_to_recordset(%(members)s)
        as m (system text, owner text, key text, type text, required boolean, covered boolean, holds boolean,
              condition text)
    order by system, owner, key, type
    on conflict (system, owner, key, type) do update set condition = excluded.condition
)
update tocsin.system_health h
set health = changed.health, reason = changed.reason, since = changed.since
from jsonb_to_recordset(%(systems)s) as changed (system text, health text, reason text, since timestamptz)
where h.system = changed.system
