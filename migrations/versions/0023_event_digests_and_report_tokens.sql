-- Another event under a known key is recognised by its content. Reports carry a token that cannot be
-- computed from the ids of the run and the step.

alter table tocsin.ingest_event add column digest bytea;
comment on column tocsin.ingest_event.digest is
    'SHA-256 of type, owner, severity and payload. Null: appended before there were digests.';

create table tocsin.instance_key (
    key bytea not null default uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    only_row boolean primary key default true check (only_row)
);
comment on table tocsin.instance_key is
    'Random key of the instance, which no role may read. tocsin.report_token derives tokens from it.';
insert into tocsin.instance_key default values;

create function tocsin.report_token(action_id uuid, step integer) returns text
language sql stable security definer
set search_path = tocsin, pg_temp
as $$
    select left(encode(sha256(k.key || sha256(k.key || uuid_send(report_token.action_id) || int4send(report_token.step))),
                       'hex'), 32)
    from tocsin.instance_key k
$$;
comment on function tocsin.report_token is
    'Token of the reports about a step: 128 bits of a keyed hash. The message of a dispatch carries it.';

create function tocsin.report(
    action_id uuid, step integer, state text, result jsonb default '{}', error text default null,
    attempt integer default null, token text default null
) returns boolean
language plpgsql volatile security definer
set enable_seqscan = off
set search_path = tocsin, pg_temp
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
    if report.token is null then
        perform tocsin.require_owner((select a.owner from tocsin.action a where a.id = report.action_id));
    elsif report.token <> tocsin.report_token(report.action_id, report.step) then
        raise exception 'the token of the report is not that of step % of action %: use the one that came with the message',
            report.step, report.action_id using errcode = 'TS002';
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
comment on function tocsin.report(uuid, integer, text, jsonb, text, integer, text) is
    'Reports the outcome of a step that was dispatched to the caller, in the transaction of the caller. It '
    'arms a timer that is due at once. The caller has the token of the message, or a grant for the owner of '
    'the run. Returns false if the step is completed already. A report after the deadline is stored but does '
    'not change the outcome.';
drop function tocsin.report(uuid, integer, text, jsonb, text, integer);
revoke all on function tocsin.report, tocsin.report_token from public;
