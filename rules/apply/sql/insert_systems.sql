-- Inserts the systems, the known states of the owners of their members, and the members, after
-- clear_systems.
with systems as (
    insert into tocsin.system_health (system, health, reason, since, holds_from)
    select h.system, h.health, h.reason, h.since, %(holds_from)s
    from jsonb_to_recordset(%(systems)s) as h (system text, health text, reason text, since timestamptz)
),
series as (
    insert into tocsin.member_series (owner, key, stale_since)
    select * from jsonb_to_recordset(%(series)s) as s (owner text, key text, stale_since timestamptz)
),
alarms as (
    insert into tocsin.member_alarm (owner, rule, instance, severity, since, keys)
    select *
    from jsonb_to_recordset(%(alarms)s)
        as a (owner text, rule text, instance text, severity smallint, since timestamptz, keys text[])
)
insert into tocsin.system_member (system, owner, key, type, required, covered, holds, condition)
select *
from jsonb_to_recordset(%(members)s)
    as m (system text, owner text, key text, type text, required boolean, covered boolean, holds boolean, condition text)
