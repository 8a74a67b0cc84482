-- Due timers: an order that is exact within one instant, and ticks that know which occurrence they are.

-- Kinds whose timers have keys: a scan that stops in the middle of an instant goes on behind (fire_at, ref, key).
drop index tocsin.timer_due;
create index timer_due on tocsin.timer (kind, fire_at, ref, key) where parked_at is null;

-- The identity of a tick's occurrence (wall time and fold, or the instant), stored by whoever arms it: finding it
-- again when it fires would cost as much as finding the next one. `identity_at` is the nominal time that it belongs to;
-- where that is null or not the tick's, the identity is found again. Other kinds have none.
alter table tocsin.timer add column identity text, add column identity_at timestamptz;

-- As before, with the identity of its one occurrence: an instant is known by itself.
create or replace function tocsin.schedule_once(
    owner text,
    name text,
    at timestamptz,
    payload jsonb default '{}',
    type text default 'schedule-fired',
    action text default null,
    created_by text default current_user,
    created_via text default 'sql'
) returns table (id uuid, status text, generation bigint, fire_at timestamptz, deduped boolean)
language plpgsql volatile
as $$
declare
    before tocsin.schedule;
    now timestamptz := tocsin.instant();
    wanted jsonb := jsonb_build_object(
        'at', to_char(schedule_once.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
              || case when date_part('microseconds', schedule_once.at)::bigint % 1000000 <> 0
                      then to_char(schedule_once.at at time zone 'UTC', '.US') else '' end || 'Z',
        'tz', 'UTC', 'dst_gap', 'forward', 'dst_fold', 'first');
    difference text;
begin
    if schedule_once.at not between '0001-01-03 00:00Z' and '9999-12-30 00:00Z' then
        raise exception 'at % is not an instant of the years 1 to 9999: give one', schedule_once.at
            using errcode = 'TS002';
    end if;
    perform pg_advisory_xact_lock(
        hashtextextended('tocsin.schedule/' || schedule_once.owner || '/' || schedule_once.name, 0));
    select s.* into before from tocsin.schedule s
    where s.owner = schedule_once.owner and s.name = schedule_once.name;
    if found then
        difference := concat_ws(', ',
            case when before.recurrence <> wanted then format('at is %s, not %s',
                 coalesce(before.recurrence ->> 'at', 'a recurrence'), wanted ->> 'at') end,
            case when before.payload <> schedule_once.payload then 'the payload differs' end,
            case when before.type <> schedule_once.type then format('type is %s, not %s', before.type, schedule_once.type) end,
            case when before.action is distinct from schedule_once.action then format('action is %s, not %s',
                 coalesce(before.action, 'none'), coalesce(schedule_once.action, 'none')) end);
        if difference <> '' then
            raise exception 'schedule % of owner % exists with other content: %; cancel it, or use another name',
                quote_literal(schedule_once.name), quote_literal(schedule_once.owner), difference using errcode = 'TS004';
        end if;
        return query
            select before.id, before.status, before.generation,
                   (select t.fire_at from tocsin.timer t
                    where t.kind = 'schedule-tick' and t.ref = before.id::text and t.key = ''),
                   true;
        return;
    end if;
    id := gen_random_uuid();
    status := 'active';
    generation := 1;
    fire_at := greatest(schedule_once.at, now);
    deduped := false;
    insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, identity, identity_at)
    values ('schedule-tick', schedule_once.id::text, '', schedule_once.fire_at, schedule_once.at, wanted ->> 'at',
            schedule_once.at);
    insert into tocsin.schedule (id, owner, name, recurrence, type, payload, action, created_by, created_via, created_at,
                                 updated_at)
    values (schedule_once.id, schedule_once.owner, schedule_once.name, wanted, schedule_once.type, schedule_once.payload,
            schedule_once.action, schedule_once.created_by, schedule_once.created_via, now, now);
    insert into tocsin.audit (at, who, via, verb, kind, owner, name, new)
    values (now, schedule_once.created_by, schedule_once.created_via, 'add', 'schedule', schedule_once.owner,
            schedule_once.name,
            jsonb_build_object('recurrence', wanted, 'type', schedule_once.type, 'payload', schedule_once.payload,
                               'status', 'active', 'generation', 1));
    return next;
end
$$;
