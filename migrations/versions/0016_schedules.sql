-- Control of schedules and of runs.

alter table tocsin.action
    add column ends_with text[] not null default '{resolved,acknowledged}',
    add column ending text check (ending in ('ended', 'cancelled'));
comment on column tocsin.action.ends_with is
    'Transitions of its alarm that cancel the run, from its action_rule.';
comment on column tocsin.action.ending is
    'Set when the steps of `finally` begin, once in a run: ended (all other steps have ended) or '
    'cancelled. The state stays running until they have ended.';

alter table tocsin.action_wait add column is_new boolean not null default true;
comment on column tocsin.action_wait.after_seq is
    'Newest seq when the step began. The record lane matches later events as it reads them.';
comment on column tocsin.action_wait.is_new is
    'True until the record lane has matched the events from the one that started the run to after_seq.';

alter table tocsin.schedule
    add column retry jsonb,
    add column title text,
    add column description text,
    add column runbook_url text;
comment on column tocsin.schedule.retry is
    'Attempts and delays for the steps of its action, instead of those of the action; null: those of '
    'the action.';
comment on column tocsin.schedule.title is 'A name for people.';

create function tocsin.check_schedule(
    name text,
    payload jsonb,
    action text,
    retry jsonb
) returns void
language plpgsql stable
set enable_seqscan = off
as $$
begin
    if not tocsin.is_readable(check_schedule.payload) then
        raise exception 'the payload of schedule % is no JSON object, or has a number of more than 4300 digits: '
            'send an object, and such a number as a text', quote_literal(check_schedule.name) using errcode = 'TS002';
    end if;
    if check_schedule.action is not null and not exists (
        select from tocsin.rule_version v
        where v.kind = 'action' and v.name = check_schedule.action and v.until_seq is null
    ) then
        raise exception 'no action % is applied: apply it first, or leave it out', quote_literal(check_schedule.action)
            using errcode = 'TS002';
    end if;
    if check_schedule.retry is not null and (
        jsonb_typeof(check_schedule.retry) <> 'object'
        or exists (
            select from jsonb_each_text(check_schedule.retry) r
            where not case r.key
                when 'attempts' then r.value ~ '^([1-9][0-9]?|100)$'
                when 'initial_interval' then r.value ~ '^([0-9]+(ms|s|m|h|d|w))+$'
                when 'max_interval' then r.value ~ '^([0-9]+(ms|s|m|h|d|w))+$'
                when 'backoff' then r.value ~ '^([1-9]|10)(\.[0-9]+)?$'
                when 'jitter' then r.value ~ '^(0|1|0?\.[0-9]+|1\.0+)$'
                else false
            end)
    ) then
        raise exception 'retry % of schedule % is not understood: use attempts (1 to 100), initial_interval and '
            'max_interval (such as 10s), backoff (1 to 10) and jitter (0 to 1)', check_schedule.retry,
            quote_literal(check_schedule.name) using errcode = 'TS002';
    end if;
end
$$;
comment on function tocsin.check_schedule is
    'Raises TS002 if a schedule of a service cannot be stored: its payload, an action that is not '
    'applied, or a retry that is not understood. Called by the functions tocsin.schedule_*.';

create function tocsin.check_generation(before tocsin.schedule, if_generation bigint) returns void
language plpgsql stable
as $$
begin
    if check_generation.if_generation <> (check_generation.before).generation then
        raise exception 'schedule % of owner % is at generation %, not %: read it again before you change it',
            quote_literal((check_generation.before).name), quote_literal((check_generation.before).owner),
            (check_generation.before).generation, check_generation.if_generation using errcode = 'TS004';
    end if;
end
$$;
comment on function tocsin.check_generation is
    'Raises TS004 if a schedule is not at the generation that the caller has read. Null: any.';

create function tocsin.replace_schedule(
    content tocsin.schedule,
    nominal_at timestamptz,
    if_generation bigint,
    who text,
    via text,
    verb text default 'edit'
) returns table (id uuid, status text, generation bigint, fire_at timestamptz, deduped boolean)
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
        select s.* into strict before from tocsin.schedule s
        where s.owner = (content).owner and s.name = (content).name;
        perform tocsin.check_generation(before, replace_schedule.if_generation);
        -- Waits for a fire or an edit in progress. A tick of a later generation is removed as well;
        -- the loop then reads that generation and replaces it.
        delete from tocsin.timer t
        where t.kind = 'schedule-tick' and t.ref = before.id::text and t.key = ''
        returning t.last_nominal_at, t.last_identity into tick_done, tick_identity;
        if tick_done is not null then
            done := tick_done;
            done_identity := tick_identity;
        end if;
        if replace_schedule.nominal_at <= greatest(done, before.last_occurrence) then
            raise exception 'schedule % of owner % is done up to %: give a time after it',
                quote_literal(before.name), quote_literal(before.owner),
                to_char(greatest(done, before.last_occurrence) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                using errcode = 'TS002';
        end if;
        update tocsin.schedule s
        set recurrence = (content).recurrence, type = (content).type, payload = (content).payload,
            action = (content).action, retry = (content).retry, title = (content).title,
            description = (content).description, runbook_url = (content).runbook_url,
            spread = '0', catch_up = 'latest', "window" = null, grace = null, max_catch_up = 100,
            status = 'active', source = 'api', generation = s.generation + 1, updated_at = now,
            last_occurrence = coalesce(done, s.last_occurrence),
            last_identity = case when done is null then s.last_identity else done_identity end
        where s.id = before.id and s.generation = before.generation and s.status = before.status;
        exit when found;
    end loop;
    replace_schedule.id := before.id;
    replace_schedule.status := 'active';
    replace_schedule.generation := before.generation + 1;
    replace_schedule.fire_at := greatest(replace_schedule.nominal_at, now);
    deduped := false;
    insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, generation, last_nominal_at, last_identity)
    values ('schedule-tick', before.id::text, '', replace_schedule.fire_at, replace_schedule.nominal_at,
            before.generation + 1, coalesce(done, before.last_occurrence),
            case when done is null then before.last_identity else done_identity end);
    insert into tocsin.audit (at, who, via, verb, kind, owner, name, old, new)
    values (now, replace_schedule.who, replace_schedule.via, replace_schedule.verb, 'schedule', before.owner, before.name,
            jsonb_build_object('recurrence', before.recurrence, 'type', before.type, 'payload', before.payload,
                               'status', before.status, 'generation', before.generation),
            jsonb_build_object('recurrence', (content).recurrence, 'type', (content).type,
                               'payload', (content).payload, 'status', 'active', 'generation', before.generation + 1));
    return next;
end
$$;
comment on function tocsin.replace_schedule is
    'Replaces the content of a schedule and arms it, whatever its status, as a new generation. The '
    'next occurrence must lie after every occurrence that is done. Called by the functions '
    'tocsin.schedule_*.';

drop function tocsin.schedule_once;
create function tocsin.schedule_once(
    owner text,
    name text,
    at timestamptz,
    payload jsonb default '{}',
    type text default 'schedule-fired',
    action text default null,
    created_by text default current_user,
    created_via text default 'sql',
    replace boolean default false,
    if_generation bigint default null,
    retry jsonb default null,
    title text default null,
    description text default null,
    runbook_url text default null
) returns table (id uuid, status text, generation bigint, fire_at timestamptz, deduped boolean)
language plpgsql volatile
set enable_seqscan = off
as $$
declare
    before tocsin.schedule;
    content tocsin.schedule;
    now timestamptz := tocsin.instant();
    wanted jsonb := tocsin.recurrence_at(schedule_once.at);
    difference text;
begin
    -- Most calls need no more than this, and a burst makes thousands of them.
    if schedule_once.action is not null or schedule_once.retry is not null
        or not tocsin.is_readable(schedule_once.payload) then
        perform tocsin.check_schedule(schedule_once.name, schedule_once.payload, schedule_once.action,
                                      schedule_once.retry);
    end if;
    id := gen_random_uuid();
    -- The unique key decides a race: the second of two callers waits here for the first. A lock for
    -- each schedule would exhaust the lock table of the server in a transaction with thousands.
    insert into tocsin.schedule (id, owner, name, recurrence, type, payload, action, retry, title, description,
                                 runbook_url, created_by, created_via, created_at, updated_at)
    values (schedule_once.id, schedule_once.owner, schedule_once.name, wanted, schedule_once.type, schedule_once.payload,
            schedule_once.action, schedule_once.retry, schedule_once.title, schedule_once.description,
            schedule_once.runbook_url, schedule_once.created_by, schedule_once.created_via, now, now)
    on conflict on constraint schedule_owner_name_key do nothing;
    if not found then
        select s.* into strict before from tocsin.schedule s
        where s.owner = schedule_once.owner and s.name = schedule_once.name;
        perform tocsin.check_generation(before, schedule_once.if_generation);
        content := before;
        content.recurrence := wanted;
        content.payload := schedule_once.payload;
        content.type := schedule_once.type;
        content.action := schedule_once.action;
        content.retry := schedule_once.retry;
        content.title := schedule_once.title;
        content.description := schedule_once.description;
        content.runbook_url := schedule_once.runbook_url;
        difference := tocsin.schedule_difference(before, content);
        if (schedule_once.replace or schedule_once.if_generation is not null)
            and (difference <> '' or before.status <> 'active') then
            return query
                select r.* from tocsin.replace_schedule(content, schedule_once.at, schedule_once.if_generation,
                                                        schedule_once.created_by, schedule_once.created_via) r;
            return;
        end if;
        if difference <> '' then
            raise exception 'schedule % of owner % exists with other content: %; schedule it with replace => true, '
                'or use another name', quote_literal(schedule_once.name), quote_literal(schedule_once.owner), difference
                using errcode = 'TS004';
        end if;
        return query
            select before.id, before.status, before.generation,
                   (select t.fire_at from tocsin.timer t
                    where t.kind = 'schedule-tick' and t.ref = before.id::text and t.key = ''),
                   true;
        return;
    end if;
    if schedule_once.if_generation is not null then
        raise exception 'there is no schedule % of owner %: leave out if_generation to add it',
            quote_literal(schedule_once.name), quote_literal(schedule_once.owner) using errcode = 'TS004';
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
    'TS004 with the difference. With replace, other content replaces the schedule, and one that '
    'fired or was cancelled is armed again. With if_generation, only if the schedule still has that '
    'generation. In a repeatable read transaction, a race with another caller raises 40001.';

create function tocsin.recurrence_at(at timestamptz) returns jsonb
language plpgsql immutable
as $$
begin
    if recurrence_at.at not between '0001-01-03 00:00Z' and '9999-12-30 00:00Z' then
        raise exception 'at % is not an instant of the years 1 to 9999: give one', recurrence_at.at
            using errcode = 'TS002';
    end if;
    return jsonb_build_object(
        'at', to_char(recurrence_at.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
              || case when date_part('microseconds', recurrence_at.at)::bigint % 1000000 <> 0
                      then to_char(recurrence_at.at at time zone 'UTC', '.US') else '' end || 'Z',
        'tz', 'UTC', 'dst_gap', 'forward', 'dst_fold', 'first');
end
$$;
comment on function tocsin.recurrence_at is 'The stored recurrence of one fire at an instant.';

create function tocsin.recurrence_text(recurrence jsonb) returns text
language sql immutable
as $$
    select case
        when recurrence ? 'at' then 'at is ' || (recurrence ->> 'at')
        when recurrence ? 'every' then 'every is ' || (recurrence ->> 'every')
        when recurrence ? 'cron' then 'cron is ' || (recurrence ->> 'cron')
        else 'rrule is ' || (recurrence ->> 'rrule')
    end
$$;
comment on function tocsin.recurrence_text is 'A stored recurrence as part of an error.';

create function tocsin.schedule_difference(before tocsin.schedule, wanted tocsin.schedule) returns text
language sql immutable
as $$
    select concat_ws(', ',
        case when (before).recurrence - 'anchor' <> (wanted).recurrence - 'anchor'
                  or coalesce((wanted).recurrence ->> 'anchor', '') not in ('', (before).recurrence ->> 'anchor')
             then format('%s, not %s', tocsin.recurrence_text((before).recurrence),
                         coalesce((wanted).recurrence ->> 'at', (wanted).recurrence ->> 'every')) end,
        case when (before).payload <> (wanted).payload then 'the payload differs' end,
        case when (before).type <> (wanted).type then format('type is %s, not %s', (before).type, (wanted).type) end,
        case when (before).action is distinct from (wanted).action then format('action is %s, not %s',
             coalesce((before).action, 'none'), coalesce((wanted).action, 'none')) end,
        case when (before).retry is distinct from (wanted).retry then format('retry is %s, not %s',
             coalesce((before).retry::text, 'none'), coalesce((wanted).retry::text, 'none')) end,
        case when (before).title is distinct from (wanted).title then 'the title differs' end,
        case when (before).description is distinct from (wanted).description then 'the description differs' end,
        case when (before).runbook_url is distinct from (wanted).runbook_url then 'the runbook_url differs' end)
$$;
comment on function tocsin.schedule_difference is
    'What differs between a stored schedule and the wanted one, for an error; empty if they are equal.';

create function tocsin.schedule_move(
    owner text,
    name text,
    at timestamptz,
    who text default current_user,
    via text default 'sql',
    if_generation bigint default null
) returns table (id uuid, status text, generation bigint, fire_at timestamptz, deduped boolean)
language plpgsql volatile
set enable_seqscan = off
as $$
declare
    content tocsin.schedule;
begin
    select s.* into content from tocsin.schedule s
    where s.owner = schedule_move.owner and s.name = schedule_move.name;
    if not found or content.status not in ('active', 'paused') or not content.recurrence ? 'at' then
        raise exception 'schedule % of owner % %', quote_literal(schedule_move.name), quote_literal(schedule_move.owner),
            case when content.id is null then 'does not exist: schedule it'
                 when not content.recurrence ? 'at' then 'is recurring, and only a single fire can be moved: replace it'
                 else 'is ' || content.status || ', and only a pending one can be moved: schedule it with replace => true'
            end using errcode = 'TS004';
    end if;
    content.recurrence := tocsin.recurrence_at(schedule_move.at);
    return query
        select r.* from tocsin.replace_schedule(content, schedule_move.at, schedule_move.if_generation,
                                                schedule_move.who, schedule_move.via, 'move') r;
end
$$;
comment on function tocsin.schedule_move is
    'Moves a pending single fire to another instant and keeps the rest. Raises TS004 if there is no '
    'such schedule, if it has ended, or if it is recurring. A paused one is active afterwards.';

create function tocsin.schedule_recurring(
    owner text,
    name text,
    every interval,
    payload jsonb default '{}',
    type text default 'schedule-fired',
    action text default null,
    starts_at timestamptz default null,
    created_by text default current_user,
    created_via text default 'sql',
    replace boolean default false,
    if_generation bigint default null,
    retry jsonb default null,
    title text default null,
    description text default null,
    runbook_url text default null
) returns table (id uuid, status text, generation bigint, fire_at timestamptz, deduped boolean)
language plpgsql volatile
set enable_seqscan = off
as $$
declare
    before tocsin.schedule;
    content tocsin.schedule;
    now timestamptz := tocsin.instant();
    milliseconds numeric := extract(epoch from schedule_recurring.every) * 1000;
    anchor timestamptz := coalesce(schedule_recurring.starts_at, date_trunc('second', tocsin.instant()));
    nominal_at timestamptz;
    difference text;
begin
    perform tocsin.check_schedule(schedule_recurring.name, schedule_recurring.payload, schedule_recurring.action,
                                  schedule_recurring.retry);
    if milliseconds < 100 or milliseconds <> trunc(milliseconds) or milliseconds > 315360000000
        or extract(year from schedule_recurring.every) <> 0 or extract(month from schedule_recurring.every) <> 0 then
        raise exception 'every % is not a whole number of milliseconds from 100ms to 10 years, without months: '
            'for calendar times use cron or rrule, which the Python client, the command line and rule files have',
            schedule_recurring.every using errcode = 'TS002';
    end if;
    select s.* into before from tocsin.schedule s
    where s.owner = schedule_recurring.owner and s.name = schedule_recurring.name;
    content.owner := schedule_recurring.owner;
    content.name := schedule_recurring.name;
    -- Without starts_at, an edit that keeps the interval keeps its anchor: the same call moves nothing.
    if schedule_recurring.starts_at is null and before.recurrence ->> 'every' = tocsin.duration_text(milliseconds::bigint) then
        anchor := (before.recurrence ->> 'anchor')::timestamptz;
    end if;
    content.recurrence := jsonb_build_object(
        'every', tocsin.duration_text(milliseconds::bigint), 'anchor', tocsin.recurrence_at(anchor) ->> 'at',
        'tz', 'UTC', 'dst_gap', 'forward', 'dst_fold', 'first');
    content.payload := schedule_recurring.payload;
    content.type := schedule_recurring.type;
    content.action := schedule_recurring.action;
    content.retry := schedule_recurring.retry;
    content.title := schedule_recurring.title;
    content.description := schedule_recurring.description;
    content.runbook_url := schedule_recurring.runbook_url;
    nominal_at := anchor + greatest(floor(extract(epoch from greatest(now, before.last_occurrence) - anchor) * 1000
                                          / milliseconds) + 1, 0) * schedule_recurring.every;
    if before.id is null then
        if schedule_recurring.if_generation is not null then
            raise exception 'there is no schedule % of owner %: leave out if_generation to add it',
                quote_literal(schedule_recurring.name), quote_literal(schedule_recurring.owner) using errcode = 'TS004';
        end if;
        id := gen_random_uuid();
        insert into tocsin.schedule (id, owner, name, recurrence, type, payload, action, retry, title, description,
                                     runbook_url, created_by, created_via, created_at, updated_at)
        values (schedule_recurring.id, content.owner, content.name, content.recurrence, content.type, content.payload,
                content.action, content.retry, content.title, content.description, content.runbook_url,
                schedule_recurring.created_by, schedule_recurring.created_via, now, now)
        on conflict on constraint schedule_owner_name_key do nothing;
        if found then
            status := 'active';
            generation := 1;
            fire_at := nominal_at;
            deduped := false;
            insert into tocsin.timer (kind, ref, key, fire_at, nominal_at)
            values ('schedule-tick', schedule_recurring.id::text, '', nominal_at, nominal_at);
            insert into tocsin.audit (at, who, via, verb, kind, owner, name, new)
            values (now, schedule_recurring.created_by, schedule_recurring.created_via, 'add', 'schedule', content.owner,
                    content.name,
                    jsonb_build_object('recurrence', content.recurrence, 'type', content.type, 'payload', content.payload,
                                       'status', 'active', 'generation', 1));
            return next;
            return;
        end if;
        -- Another caller has added it meanwhile.
        select s.* into strict before from tocsin.schedule s
        where s.owner = schedule_recurring.owner and s.name = schedule_recurring.name;
        if schedule_recurring.starts_at is null and before.recurrence ->> 'every' = content.recurrence ->> 'every' then
            content.recurrence := before.recurrence;
        end if;
    end if;
    perform tocsin.check_generation(before, schedule_recurring.if_generation);
    difference := tocsin.schedule_difference(before, content);
    if (schedule_recurring.replace or schedule_recurring.if_generation is not null)
        and (difference <> '' or before.status <> 'active') then
        return query
            select r.* from tocsin.replace_schedule(content, nominal_at, schedule_recurring.if_generation,
                                                    schedule_recurring.created_by, schedule_recurring.created_via) r;
        return;
    end if;
    if difference <> '' then
        raise exception 'schedule % of owner % exists with other content: %; schedule it with replace => true, '
            'or use another name', quote_literal(content.name), quote_literal(content.owner), difference
            using errcode = 'TS004';
    end if;
    return query
        select before.id, before.status, before.generation,
               (select t.fire_at from tocsin.timer t
                where t.kind = 'schedule-tick' and t.ref = before.id::text and t.key = ''),
               true;
end
$$;
comment on function tocsin.schedule_recurring is
    'Schedules a fire every interval of elapsed time, counted from starts_at or from now. Idempotent '
    'by owner and name, with replace and if_generation as in tocsin.schedule_once. Calendar times '
    '(cron, rrule) cannot be computed in SQL: the Python client, the command line and rule files have '
    'them.';

create function tocsin.duration_text(milliseconds bigint) returns text
language sql immutable
as $$
    select concat(
        nullif(milliseconds / 604800000, 0) || 'w',
        nullif(milliseconds % 604800000 / 86400000, 0) || 'd',
        nullif(milliseconds % 86400000 / 3600000, 0) || 'h',
        nullif(milliseconds % 3600000 / 60000, 0) || 'm',
        nullif(milliseconds % 60000 / 1000, 0) || 's',
        nullif(milliseconds % 1000, 0) || 'ms')
$$;
comment on function tocsin.duration_text is
    'A positive duration as schemas/values/duration.py writes it, such as 1h30m.';

drop function tocsin.schedule_cancel;
create function tocsin.schedule_cancel(
    owner text,
    name text,
    who text default current_user,
    via text default 'sql',
    if_generation bigint default null
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
        perform tocsin.check_generation(before, schedule_cancel.if_generation);
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
    'no such schedule, or if it has ended. With if_generation, raises TS004 if it was edited since.';

create function tocsin.schedule_cancel_id(id uuid, who text default current_user, via text default 'sql')
returns boolean
language sql volatile
set enable_seqscan = off
as $$
    select coalesce((
        select tocsin.schedule_cancel(s.owner, s.name, schedule_cancel_id.who, schedule_cancel_id.via)
        from tocsin.schedule s
        where s.id = schedule_cancel_id.id), false)
$$;
comment on function tocsin.schedule_cancel_id is
    'Cancels the schedule with this id, as tocsin.schedule_cancel does.';
