-- Runbooks: history by action, reports of whoever took a dispatched message, and where an event came from.

-- `tocsin actions show`, and the check of `tocsin.report`.
create index action_step_of on tocsin.action_step (action_id, seq);
-- The dead-letter list.
create index action_dead on tocsin.action (ended_at desc) where state in ('failed', 'timed_out');
-- Whose turn is next, where actions of one rule take turns.
create index action_queued on tocsin.action (action_rule, group_key, started_at) where state = 'queued';

-- The action_rules behind an event that an action caused, oldest first: a rule is not started by itself again. Of caught
-- events, if whoever sent them passed it on. Events without a lineage, which are nearly all, have no row.
create table tocsin.event_lineage (
    event_id uuid primary key,
    lineage text[] not null check (cardinality(lineage) > 0)
);

-- Report what came of a dispatched message, inside the caller's transaction: with the caller's own work, or not at
-- all. It arms a timer that is due at once, so it never touches the record log. True if it counts; false if the step
-- is known to be completed already. A report after the deadline is kept beside the outcome.
create function tocsin.report(
    action_id uuid,
    step integer,
    state text,
    result jsonb default '{}',
    error text default null,
    attempt integer default null
) returns boolean
language plpgsql volatile
as $$
declare
    reached boolean;
    completed boolean;
begin
    if report.state is null or report.state not in ('completed', 'failed') then
        raise exception 'state % is not a report: say completed or failed', coalesce(quote_literal(report.state), 'null')
            using errcode = 'TS002';
    end if;
    if jsonb_typeof(coalesce(report.result, '{}')) <> 'object' or octet_length(report.result::text) > 65536 then
        raise exception 'the result of a report is a JSON object of at most 64 kB: send less, or a reference to it'
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
