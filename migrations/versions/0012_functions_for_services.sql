-- Functions that other services call inside their own transactions, besides tocsin.arm and
-- tocsin.cancel. None of them appends to the record log: the caller would hold its lock until it
-- commits.

create function tocsin.schedule_once(
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
set enable_seqscan = off
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
    if not tocsin.is_readable(schedule_once.payload) then
        raise exception 'the payload of schedule % is no JSON object, or has a number of more than 4300 digits: '
            'send an object, and such a number as a text', quote_literal(schedule_once.name) using errcode = 'TS002';
    end if;
    id := gen_random_uuid();
    -- The unique key decides a race: the second of two callers waits here for the first. A lock for
    -- each schedule would exhaust the lock table of the server in a transaction with thousands.
    insert into tocsin.schedule (id, owner, name, recurrence, type, payload, action, created_by, created_via, created_at,
                                 updated_at)
    values (schedule_once.id, schedule_once.owner, schedule_once.name, wanted, schedule_once.type, schedule_once.payload,
            schedule_once.action, schedule_once.created_by, schedule_once.created_via, now, now)
    on conflict on constraint schedule_owner_name_key do nothing;
    if not found then
        select s.* into strict before from tocsin.schedule s
        where s.owner = schedule_once.owner and s.name = schedule_once.name;
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
    status := 'active';
    generation := 1;
    fire_at := greatest(schedule_once.at, now);
    deduped := false;
    insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, identity, identity_at)
    values ('schedule-tick', schedule_once.id::text, '', schedule_once.fire_at, schedule_once.at, wanted ->> 'at',
            schedule_once.at);
    insert into tocsin.audit (at, who, via, verb, kind, owner, name, new)
    values (now, schedule_once.created_by, schedule_once.created_via, 'add', 'schedule', schedule_once.owner,
            schedule_once.name,
            jsonb_build_object('recurrence', wanted, 'type', schedule_once.type, 'payload', schedule_once.payload,
                               'status', 'active', 'generation', 1));
    return next;
end
$$;
comment on function tocsin.schedule_once is
    'Schedules one fire at an instant; an instant in the past is due at once. Idempotent by '
    'owner and name: the same content again returns the row with deduped, other content raises '
    'TS004 with the difference. In a repeatable read transaction, a race with another caller raises '
    '40001.';

create function tocsin.schedule_cancel(
    owner text,
    name text,
    who text default current_user,
    via text default 'sql'
) returns boolean
language plpgsql volatile
set enable_seqscan = off
as $$
declare
    before tocsin.schedule;
    tick_done timestamptz;
    tick_identity text;
    done timestamptz;
    done_identity text;
    now timestamptz := tocsin.instant();
begin
    loop
        select s.* into before from tocsin.schedule s
        where s.owner = schedule_cancel.owner and s.name = schedule_cancel.name;
        if not found or before.status not in ('active', 'paused') then
            return false;
        end if;
        -- Waits for a fire or an edit in progress.
        delete from tocsin.timer t
        where t.kind = 'schedule-tick' and t.ref = before.id::text and t.key = ''
        returning t.last_nominal_at, t.last_identity into tick_done, tick_identity;
        if tick_done is not null then
            done := tick_done;
            done_identity := tick_identity;
        end if;
        -- No row: the schedule has changed since it was read, so the tick may be that of a later
        -- generation.
        update tocsin.schedule s
        set status = 'cancelled', generation = s.generation + 1, updated_at = now,
            last_occurrence = coalesce(done, s.last_occurrence),
            last_identity = case when done is null then s.last_identity else done_identity end
        where s.id = before.id and s.generation = before.generation and s.status = before.status;
        exit when found;
    end loop;
    insert into tocsin.audit (at, who, via, verb, kind, owner, name, old, new)
    values (now, schedule_cancel.who, schedule_cancel.via, 'cancel', 'schedule', before.owner, before.name,
            jsonb_build_object('recurrence', before.recurrence, 'status', before.status,
                               'generation', before.generation),
            jsonb_build_object('recurrence', before.recurrence, 'status', 'cancelled',
                               'generation', before.generation + 1));
    return true;
end
$$;
comment on function tocsin.schedule_cancel is
    'Cancels one schedule. Waits for a fire in progress, which wins. Returns false if there is '
    'no such schedule, or if it has ended.';

create function tocsin.schedule_cancel_all(
    owner text default null,
    type text default null,
    who text default current_user,
    via text default 'sql'
) returns bigint
language plpgsql volatile
set enable_seqscan = off
as $$
declare
    one record;
    cancelled bigint := 0;
begin
    if schedule_cancel_all.owner is null and schedule_cancel_all.type is null then
        raise exception 'name an owner or a type whose schedules to cancel' using errcode = 'TS002';
    end if;
    for one in
        select s.owner, s.name
        from tocsin.schedule s
        where s.status in ('active', 'paused')
          and (schedule_cancel_all.owner is null or s.owner = schedule_cancel_all.owner)
          and (schedule_cancel_all.type is null or s.type = schedule_cancel_all.type)
        order by s.id
    loop
        if tocsin.schedule_cancel(one.owner, one.name, schedule_cancel_all.who, schedule_cancel_all.via) then
            cancelled := cancelled + 1;
        end if;
    end loop;
    return cancelled;
end
$$;
comment on function tocsin.schedule_cancel_all is
    'Cancels all schedules of an owner, of a type, or of both. Returns how many. Raises TS002 if '
    'neither is given.';

create function tocsin.report(
    action_id uuid,
    step integer,
    state text,
    result jsonb default '{}',
    error text default null,
    attempt integer default null
) returns boolean
language plpgsql volatile
set enable_seqscan = off
as $$
declare
    reached boolean;
    completed boolean;
begin
    if report.state is null or report.state not in ('completed', 'failed') then
        raise exception 'state % is not a report: say completed or failed', coalesce(quote_literal(report.state), 'null')
            using errcode = 'TS002';
    end if;
    if not tocsin.is_readable(coalesce(report.result, '{}')) or octet_length(report.result::text) > 65536 then
        raise exception 'the result of a report is a JSON object of at most 64 kB, without numbers of more than 4300 '
            'digits: send less, or a reference to it'
            using errcode = 'TS002';
    end if;
    select count(*) > 0, coalesce(bool_or(s.state = 'completed'), false) into reached, completed
    from tocsin.action_step s
    where s.action_id = report.action_id and s.step = report.step;
    if not reached then
        raise exception 'action % has no step % that was reached: report the ids that came with the message',
            report.action_id, report.step using errcode = 'TS002';
    end if;
    if completed then
        return false;
    end if;
    perform tocsin.arm(
        'runbook-wait', report.action_id::text, report.step || '/report', tocsin.instant(),
        jsonb_build_object(
            'step', report.step::text,
            'report', jsonb_strip_nulls(jsonb_build_object(
                'state', report.state, 'result', coalesce(report.result, '{}'), 'error', left(report.error, 4000),
                'attempt', report.attempt))));
    return true;
end
$$;
comment on function tocsin.report is
    'Reports the outcome of a step that was dispatched to the caller, in the transaction of the '
    'caller. It arms a timer that is due at once. Returns false if the step is completed '
    'already. A report after the deadline is stored but does not change the outcome.';
