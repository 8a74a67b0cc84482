-- The schema that all migrations add up to, from the catalog of Postgres. Do not edit: `python -m tests.migrations`
-- writes it. The reasons are in migrations/versions. Executable on an empty database:
--
--     psql --single-transaction --set ON_ERROR_STOP=1 --file migrations/schema.sql

create schema tocsin;
comment on schema tocsin is 'Tables and functions of Tocsin. Created by `tocsin migrate`, written by its services.';

create type tocsin.calculated_input as (
    id uuid,
    owner text,
    key text,
    ts timestamp with time zone,
    kind text,
    correlation_id uuid,
    payload jsonb
);
comment on type tocsin.calculated_input is 'A calculated datapoint to append; the columns of tocsin.datapoint_calculated that the caller gives.';

create type tocsin.event_input as (
    id uuid,
    ts timestamp with time zone,
    origin text,
    type text,
    schedule text,
    rule text,
    action text,
    owner text,
    fire_at timestamp with time zone,
    alarm_id uuid,
    severity smallint,
    source_event_id uuid,
    correlation_id uuid,
    payload jsonb
);
comment on type tocsin.event_input is 'An event to append; the columns of tocsin.event that the caller gives.';

create type tocsin.member_observation_input as (
    owner text,
    at timestamp with time zone,
    what text,
    subject text,
    severity smallint,
    since timestamp with time zone,
    keys text[],
    instance text
);
comment on type tocsin.member_observation_input is 'An observation about a member of a system; the columns of tocsin.member_observation without the id.';

create type tocsin.step_input as (
    id uuid,
    action_id uuid,
    name text,
    owner text,
    step integer,
    attempt integer,
    state text,
    correlation_id uuid,
    source_event_id uuid,
    result jsonb
);
comment on type tocsin.step_input is 'An action step to append; the columns of tocsin.action_step that the caller gives.';

CREATE OR REPLACE FUNCTION tocsin.instant()
 RETURNS timestamp with time zone
 LANGUAGE sql
 PARALLEL SAFE
AS $function$
    select clock_timestamp()
$function$;
comment on function tocsin.instant() is 'Current time of this database: the only SQL function that reads a clock. In the databases of tests it follows the setting tocsin.now of the session; `tocsin doctor` is red if it does.';
revoke all on function tocsin.instant() from public;

CREATE OR REPLACE FUNCTION tocsin.is_readable(document jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
begin
    if jsonb_typeof(document) is distinct from 'object' then
        return false;
    end if;
    return octet_length(document::text) <= 4300 or not exists (
        select from jsonb_path_query(document, 'strict $.**') as part
        where jsonb_typeof(part) = 'number' and length(part::text) > 4300);
end
$function$;
comment on function tocsin.is_readable(jsonb) is 'Whether a JSON document is an object that every service can read. Python rejects integers of more than 4300 digits.';
revoke all on function tocsin.is_readable(jsonb) from public;

create table public.tocsin_migration (
    number integer not null,
    name text not null,
    checksum text not null,
    applied_at timestamp with time zone not null default clock_timestamp(),
    constraint tocsin_migration_pkey PRIMARY KEY (number)
);
comment on table public.tocsin_migration is 'Schema versions that were applied to this database. Written by `tocsin migrate`.';
comment on column public.tocsin_migration.checksum is 'SHA-256 of the version file. Services refuse a database whose checksums differ from their own files.';

create table tocsin.action (
    id uuid not null,
    name text not null,
    action_rule text not null,
    event_id uuid not null,
    event_seq bigint not null,
    document jsonb not null,
    owner text not null default ''::text,
    state text not null,
    started_at timestamp with time zone not null,
    ended_at timestamp with time zone,
    result jsonb,
    error text,
    correlation_id uuid not null,
    group_key text not null default ''::text,
    alarm_id uuid,
    active jsonb not null default '{}'::jsonb,
    answers jsonb not null default '{}'::jsonb,
    lineage text[] not null default '{}'::text[],
    version bigint not null default 1,
    held_by text[],
    failing_since timestamp with time zone,
    ends_with text[] not null default '{resolved,acknowledged}'::text[],
    ending text,
    priority text,
    constraint action_ending_check CHECK ((ending = ANY (ARRAY['ended'::text, 'cancelled'::text]))),
    constraint action_pkey PRIMARY KEY (id),
    constraint action_priority_check CHECK ((priority = ANY (ARRAY['high'::text, 'low'::text]))),
    constraint action_state_check CHECK ((state = ANY (ARRAY['gathering'::text, 'queued'::text, 'running'::text, 'completed'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text, 'skipped'::text])))
) with (fillfactor=60);
CREATE INDEX action_active ON tocsin.action USING btree (action_rule, group_key) WHERE (state = ANY (ARRAY['gathering'::text, 'queued'::text, 'running'::text]));
CREATE INDEX action_dead ON tocsin.action USING btree (ended_at DESC) WHERE (state = ANY (ARRAY['failed'::text, 'timed_out'::text]));
CREATE INDEX action_ended ON tocsin.action USING btree (ended_at, id) WHERE (ended_at IS NOT NULL);
CREATE INDEX action_failing ON tocsin.action USING btree (failing_since) WHERE (failing_since IS NOT NULL);
CREATE UNIQUE INDEX action_gathering ON tocsin.action USING btree (action_rule, group_key) WHERE (state = 'gathering'::text);
CREATE INDEX action_held ON tocsin.action USING gin (held_by) WHERE (held_by IS NOT NULL);
CREATE INDEX action_newest ON tocsin.action USING btree (started_at DESC);
CREATE INDEX action_of_rule ON tocsin.action USING btree (action_rule, started_at);
CREATE INDEX action_queued ON tocsin.action USING btree (action_rule, group_key, started_at) WHERE (state = 'queued'::text);
comment on table tocsin.action is 'Runs: one row per execution of an action, with its current state. The history is in tocsin.action_step; both change in one transaction. Written by workers, by the clock when a wait ends, and by an apply or an operator who cancels.';
comment on column tocsin.action.name is 'Name of the action.';
comment on column tocsin.action.action_rule is 'What started the run: an action_rule, schedule:<schedule>, or notify:<rule>:<channel>, where the rule is an event_rule, stale:<datapoint_type>, heartbeat:<heartbeat> or an action_rule.';
comment on column tocsin.action.event_id is 'First event of the run; all of them are in tocsin.action_event.';
comment on column tocsin.action.document is 'Action document at the start of the run. A later apply does not change it.';
comment on column tocsin.action.state is 'gathering: collects events of its group; queued: waits for another run of the rule; skipped: rejected by overlap or rate limit.';
comment on column tocsin.action.group_key is 'Values of group_by as JSON; of a notification about one alarm: the id of the alarm.';
comment on column tocsin.action.alarm_id is 'Alarm of the first event. All alarms of the run are in tocsin.action_event.';
comment on column tocsin.action.active is 'Steps in progress: {"<step>": {"attempt": 1, "state": "due" or "waiting"}}. Several only inside parallel.';
comment on column tocsin.action.answers is 'Results of finished steps for the steps that follow: {"<step or its name>": {...}}.';
comment on column tocsin.action.lineage is 'The action_rules that led to this run, oldest first. It stops loops.';
comment on column tocsin.action.version is 'Raised by every change, to detect a concurrent one.';
comment on column tocsin.action.held_by is 'What holds a step of the run: snooze, silence:<id>, alarm:<id of the inhibiting alarm>.';
comment on column tocsin.action.failing_since is 'First of the failed deliveries of a notification since the last success. It stays after the notification was given up.';
comment on column tocsin.action.ends_with is 'Transitions of its alarm that cancel the run, from its action_rule.';
comment on column tocsin.action.ending is 'Set when the steps of `finally` begin, once in a run: ended (all other steps have ended) or cancelled. The state stays running until they have ended.';
comment on column tocsin.action.priority is 'Priority of its steps, from the document; null: normal. Workers perform high before normal, and normal before low.';

create table tocsin.action_event (
    action_rule text not null,
    event_id uuid not null,
    event_seq bigint not null,
    action_id uuid not null,
    alarm_id uuid,
    constraint action_event_pkey PRIMARY KEY (action_rule, event_id)
);
CREATE INDEX action_event_of ON tocsin.action_event USING btree (action_id, event_seq);
CREATE INDEX action_event_of_alarm ON tocsin.action_event USING btree (alarm_id) WHERE (alarm_id IS NOT NULL);
comment on table tocsin.action_event is 'Events of each run: one, or all that its group gathered, and for a notification the later transitions of its alarms. The primary key makes an event start at most one run per action_rule. Written by workers.';
comment on column tocsin.action_event.alarm_id is 'Alarm that the event is about, if it is about one.';

create table tocsin.action_limit (
    action_rule text not null,
    starts timestamp with time zone[] not null,
    constraint action_limit_pkey PRIMARY KEY (action_rule)
);
comment on table tocsin.action_limit is 'Recent starts of each action_rule with a rate limit, at most as many as it allows. Written by workers.';

create table tocsin.action_step (
    seq bigint not null,
    id uuid not null,
    action_id uuid not null,
    name text not null,
    owner text not null default ''::text,
    step integer not null,
    attempt integer not null,
    state text not null,
    recorded_at timestamp with time zone not null,
    correlation_id uuid not null,
    source_event_id uuid,
    result jsonb not null default '{}'::jsonb,
    priority text,
    constraint action_step_name_check CHECK (((length(name) >= 1) AND (length(name) <= 128))),
    constraint action_step_owner_check CHECK ((length(owner) <= 128)),
    constraint action_step_pkey PRIMARY KEY (seq),
    constraint action_step_priority_check CHECK ((priority = ANY (ARRAY['high'::text, 'low'::text]))),
    constraint action_step_result_check CHECK ((octet_length((result)::text) <= 229376)),
    constraint action_step_state_check CHECK ((state = ANY (ARRAY['due'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text, 'skipped'::text])))
) partition by RANGE (seq);
CREATE INDEX action_step_of ON tocsin.action_step USING btree (action_id, seq);
comment on table tocsin.action_step is 'History of runs: one record per state that a step reached. Written by tocsin.append; the current state of a run is in tocsin.action. A record with the state due is the message that a worker performs.';
comment on column tocsin.action_step.action_id is 'Run that the step belongs to (tocsin.action.id).';
comment on column tocsin.action_step.name is 'Name of the action.';
comment on column tocsin.action_step.step is 'Number of the step in the runbook, from 0.';
comment on column tocsin.action_step.attempt is 'Number of the attempt, from 1.';
comment on column tocsin.action_step.source_event_id is 'Event that started the run.';
comment on column tocsin.action_step.priority is 'Priority of the run, null: normal. A due step with a priority has a subject of its own, which workers read apart from the others.';
revoke all on table tocsin.action_step from public;

create table tocsin.action_wait (
    action_id uuid not null,
    step integer not null,
    attempt integer not null,
    condition text not null,
    after_seq bigint not null,
    is_new boolean not null default true,
    constraint action_wait_pkey PRIMARY KEY (action_id, step)
);
comment on table tocsin.action_wait is 'Steps that wait for an event. Written by workers; the record lane matches the condition.';
comment on column tocsin.action_wait.condition is 'CEL expression that the event must fulfil.';
comment on column tocsin.action_wait.after_seq is 'Newest seq when the step began. The record lane matches later events as it reads them.';
comment on column tocsin.action_wait.is_new is 'True until the record lane has matched the events from the one that started the run to after_seq.';

create table tocsin.alarm (
    id uuid not null,
    event_rule text not null,
    owner text not null default ''::text,
    state text not null,
    severity smallint not null,
    since timestamp with time zone not null,
    opened_at timestamp with time zone,
    resolved_at timestamp with time zone,
    resolved_reason text,
    payload jsonb not null default '{}'::jsonb,
    source_event_id uuid,
    correlation_id uuid not null,
    acknowledged_at timestamp with time zone,
    acknowledged_by text,
    acknowledged_note text,
    snoozed_until timestamp with time zone,
    snoozed_by text,
    version bigint not null default 1,
    instance text not null default ''::text,
    constraint alarm_instance_check CHECK ((length(instance) <= 512)),
    constraint alarm_pkey PRIMARY KEY (id),
    constraint alarm_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'open'::text, 'resolved'::text])))
) with (fillfactor=70);
CREATE UNIQUE INDEX alarm_active ON tocsin.alarm USING btree (event_rule, owner, instance) WHERE (state = ANY (ARRAY['pending'::text, 'open'::text]));
CREATE INDEX alarm_active_owner ON tocsin.alarm USING btree (owner) WHERE (state <> 'resolved'::text);
CREATE INDEX alarm_ended ON tocsin.alarm USING btree (resolved_at, id) WHERE (state = 'resolved'::text);
CREATE INDEX alarm_newest ON tocsin.alarm USING btree (since DESC);
comment on table tocsin.alarm is 'Alarms of event_rules. Written by workers, by the clock when a sustain fires, by an apply, and by operators who acknowledge, snooze or resolve.';
comment on column tocsin.alarm.since is 'When the condition began to hold.';
comment on column tocsin.alarm.opened_at is 'When the condition had held for long enough; null while pending.';
comment on column tocsin.alarm.source_event_id is 'Event that made the condition hold, if it was an event.';
comment on column tocsin.alarm.correlation_id is 'Shared by all records that the alarm leads to.';
comment on column tocsin.alarm.instance is 'As in tocsin.rule_state.';

create table tocsin.api_answer (
    caller text not null,
    key text not null,
    digest bytea not null,
    status integer not null,
    headers jsonb not null,
    body bytea not null,
    answered_at timestamp with time zone not null default tocsin.instant(),
    constraint api_answer_caller_check CHECK (((length(caller) >= 1) AND (length(caller) <= 300))),
    constraint api_answer_digest_check CHECK ((length(digest) = 32)),
    constraint api_answer_key_check CHECK (((length(key) >= 1) AND (length(key) <= 200))),
    constraint api_answer_pkey PRIMARY KEY (caller, key),
    constraint api_answer_status_check CHECK (((status >= 200) AND (status <= 299)))
);
CREATE INDEX api_answer_age ON tocsin.api_answer USING btree (answered_at);
comment on table tocsin.api_answer is 'Answers to requests with an Idempotency-Key, kept for a day. Written by tocsin.keep_answer.';
comment on column tocsin.api_answer.caller is 'Credential and principal of the request.';
comment on column tocsin.api_answer.digest is 'SHA-256 of method, path and body of the request.';

create table tocsin.api_login (
    digest bytea not null,
    name text not null,
    grants text[] not null,
    created_by text not null,
    created_at timestamp with time zone not null default tocsin.instant(),
    expires_at timestamp with time zone not null,
    used_at timestamp with time zone,
    constraint api_login_digest_check CHECK ((length(digest) = 32)),
    constraint api_login_name_check CHECK (((length(name) >= 1) AND (length(name) <= 128))),
    constraint api_login_pkey PRIMARY KEY (digest)
);
comment on table tocsin.api_login is 'One-time login links. Written by tocsin.add_login, used once by tocsin.begin_session.';

create table tocsin.api_session (
    digest bytea not null,
    name text not null,
    grants text[] not null,
    source text not null,
    created_at timestamp with time zone not null default tocsin.instant(),
    expires_at timestamp with time zone not null,
    last_used_at timestamp with time zone not null default tocsin.instant(),
    id uuid not null default gen_random_uuid(),
    constraint api_session_digest_check CHECK ((length(digest) = 32)),
    constraint api_session_name_check CHECK (((length(name) >= 1) AND (length(name) <= 128))),
    constraint api_session_pkey PRIMARY KEY (digest),
    constraint api_session_source_check CHECK ((source = ANY (ARRAY['link'::text, 'oidc'::text])))
);
CREATE INDEX api_session_expires ON tocsin.api_session USING btree (expires_at);
CREATE UNIQUE INDEX api_session_id ON tocsin.api_session USING btree (id);
comment on table tocsin.api_session is 'Sessions of people. Ended by tocsin.end_session, after twelve hours without use, or at expires_at.';
comment on column tocsin.api_session.name is 'Principal: the `who` of its changes.';
comment on column tocsin.api_session.last_used_at is 'Exact to a minute.';
comment on column tocsin.api_session.id is 'Names the session in lists. The secret of the session is another one.';

create table tocsin.api_token (
    id uuid not null default gen_random_uuid(),
    name text not null,
    digest bytea not null,
    hint text not null,
    grants text[] not null,
    created_by text not null,
    created_at timestamp with time zone not null default tocsin.instant(),
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by text,
    constraint api_token_digest_check CHECK ((length(digest) = 32)),
    constraint api_token_digest_key UNIQUE (digest),
    constraint api_token_grants_check CHECK (((cardinality(grants) >= 1) AND (cardinality(grants) <= 50))),
    constraint api_token_hint_check CHECK ((length(hint) <= 40)),
    constraint api_token_name_check CHECK (((length(name) >= 1) AND (length(name) <= 128))),
    constraint api_token_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX api_token_name ON tocsin.api_token USING btree (name) WHERE (revoked_at IS NULL);
comment on table tocsin.api_token is 'Tokens of programs for the HTTP API. Written by tocsin.add_token and tocsin.revoke_token.';
comment on column tocsin.api_token.name is 'Principal that acts with the token: the `who` of its changes.';
comment on column tocsin.api_token.digest is 'SHA-256 of the token, which has 160 random bits.';
comment on column tocsin.api_token.hint is 'Beginning of the token, to recognise it.';
comment on column tocsin.api_token.grants is 'Roles by owners, each as role:pattern.';
comment on column tocsin.api_token.last_used_at is 'Exact to a minute.';

create table tocsin.arrival_gap (
    partition integer not null,
    began_at timestamp with time zone not null,
    ended_at timestamp with time zone not null,
    constraint arrival_gap_check CHECK ((ended_at > began_at)),
    constraint arrival_gap_pkey PRIMARY KEY (partition, began_at)
);
CREATE INDEX arrival_gap_ended ON tocsin.arrival_gap USING btree (ended_at, partition);
comment on table tocsin.arrival_gap is 'Intervals in which no message arrived in a partition of the data stream, not even a canary: producers may have been unable to publish. They extend the deadlines of watched series. Written by the worker that holds the partition, with the position of the message that ended the gap.';
comment on column tocsin.arrival_gap.began_at is 'Arrival of the last message before the gap.';
comment on column tocsin.arrival_gap.ended_at is 'Arrival of the first message after the gap.';

create table tocsin.audit (
    id bigint not null generated always as identity,
    at timestamp with time zone not null,
    who text not null,
    via text not null,
    verb text not null,
    kind text not null,
    owner text not null default ''::text,
    name text not null,
    old jsonb,
    new jsonb,
    claimed text,
    constraint audit_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_at ON tocsin.audit USING btree (at, id);
CREATE INDEX audit_subject ON tocsin.audit USING btree (kind, name, id);
comment on table tocsin.audit is 'Changes that operators and services made, one row each, in the transaction of the change. Read with `tocsin audit`.';
comment on column tocsin.audit.at is 'When the change was made, by the clock of the database.';
comment on column tocsin.audit.who is 'Principal: the role of the session, or what a trusted session named.';
comment on column tocsin.audit.via is 'Interface that was used, such as cli, up or sql.';
comment on column tocsin.audit.verb is 'Kind of change, such as add, cancel or acknowledge.';
comment on column tocsin.audit.kind is 'Kind of object that changed, such as schedule or alarm.';
comment on column tocsin.audit.old is 'Object before the change; null if there was none.';
comment on column tocsin.audit.new is 'Object after the change; null if it is gone.';
comment on column tocsin.audit.claimed is 'Name that the caller gave, if it differs from who.';

create table tocsin.audit_seal (
    "position" bigint not null,
    audit_id bigint not null,
    digest bytea not null,
    previous bytea not null,
    hash bytea not null,
    sealed_at timestamp with time zone not null,
    pruned_at timestamp with time zone,
    erased_digest bytea,
    constraint audit_seal_audit_id_key UNIQUE (audit_id),
    constraint audit_seal_pkey PRIMARY KEY ("position")
);
CREATE INDEX audit_seal_pruned ON tocsin.audit_seal USING btree ("position") WHERE (pruned_at IS NULL);
comment on table tocsin.audit_seal is 'Hash chain over tocsin.audit. Written by tocsin.seal_audit, which the clock calls, and checked by `tocsin audit verify`.';
comment on column tocsin.audit_seal.digest is 'SHA-256 of the row of the audit.';
comment on column tocsin.audit_seal.hash is 'SHA-256 of the hash before and the digest.';
comment on column tocsin.audit_seal.pruned_at is 'When retention removed the row of the audit.';
comment on column tocsin.audit_seal.erased_digest is 'Digest of the row without its contents, which an erasure removed. The chain keeps the digest of the original.';

create table tocsin.calc_position (
    only_row boolean not null default true,
    until timestamp with time zone,
    rules_seq bigint,
    rules_begin timestamp with time zone,
    constraint calc_position_only_row_check CHECK (only_row),
    constraint calc_position_pkey PRIMARY KEY (only_row)
) with (fillfactor=50);
comment on table tocsin.calc_position is 'How far the windows of calc_rules were calculated: one row. Written by the worker that calculates, in the transaction of the results.';
comment on column tocsin.calc_position.until is 'End of the last window that was calculated; null before the first.';
comment on column tocsin.calc_position.rules_seq is 'Seq of the rules-applied event of the apply whose documents calculated it.';
comment on column tocsin.calc_position.rules_begin is 'Instant from which these documents calculate windows.';
insert into tocsin.calc_position default values;

create table tocsin.cdc_report (
    only_row boolean not null default true,
    at timestamp with time zone,
    holder text,
    head bigint,
    first_seq bigint,
    last_seq bigint,
    lag_s double precision,
    compared integer,
    problem text,
    detail text,
    remedy text,
    seq bigint,
    since timestamp with time zone,
    constraint cdc_report_only_row_check CHECK (only_row),
    constraint cdc_report_pkey PRIMARY KEY (only_row)
) with (fillfactor=50);
comment on table tocsin.cdc_report is 'One row: what the leading publisher found when it last compared log and stream. Written by the publisher, read by `tocsin doctor`. The start and the end of a problem are one event each.';
comment on column tocsin.cdc_report.at is 'Time of the last comparison.';
comment on column tocsin.cdc_report.holder is 'Publisher that made it.';
comment on column tocsin.cdc_report.head is 'Head of the record log.';
comment on column tocsin.cdc_report.first_seq is 'First sequence of the record stream.';
comment on column tocsin.cdc_report.last_seq is 'Last sequence of the record stream.';
comment on column tocsin.cdc_report.lag_s is 'Age of the oldest record that is not published, in seconds.';
comment on column tocsin.cdc_report.compared is 'Number of records that were compared.';
comment on column tocsin.cdc_report.problem is 'Kind of problem; null if there is none.';
comment on column tocsin.cdc_report.detail is 'Message about the problem.';
comment on column tocsin.cdc_report.remedy is 'What an operator can do about it.';
comment on column tocsin.cdc_report.seq is 'Sequence at which the problem is.';
comment on column tocsin.cdc_report.since is 'Start of the problem.';
insert into tocsin.cdc_report default values;

create table tocsin.channel_test (
    id uuid not null,
    channel text not null,
    transition text not null,
    requested_by text not null,
    requested_at timestamp with time zone not null default tocsin.instant(),
    worker text,
    taken_at timestamp with time zone,
    state text,
    result text,
    constraint channel_test_pkey PRIMARY KEY (id),
    constraint channel_test_state_check CHECK ((state = ANY (ARRAY['delivered'::text, 'retryable'::text, 'permanent'::text])))
);
CREATE INDEX channel_test_new ON tocsin.channel_test USING btree (requested_at) WHERE (taken_at IS NULL);
CREATE INDEX channel_test_requested ON tocsin.channel_test USING btree (requested_at);
comment on table tocsin.channel_test is 'Tests of channels. The command line inserts a row and waits for its result. A worker sends the message, with its own secrets and its own network: those of the operator are not involved. Rows older than a day are removed by the next test.';
comment on column tocsin.channel_test.transition is 'The occasion that the message is about, such as opened.';
comment on column tocsin.channel_test.state is 'Outcome of the delivery, null until it has ended.';

create table tocsin.current_value (
    owner text not null,
    key text not null,
    partition integer not null,
    value jsonb not null,
    ts timestamp with time zone not null,
    labels jsonb not null default '{}'::jsonb,
    arrived_at timestamp with time zone not null,
    stream_seq bigint not null,
    first_arrived_at timestamp with time zone not null,
    freshness text not null default 'fresh'::text,
    stale_since timestamp with time zone,
    handled_stale_since timestamp with time zone,
    version bigint not null default 1,
    constraint current_value_freshness_check CHECK ((freshness = ANY (ARRAY['fresh'::text, 'stale'::text]))),
    constraint current_value_key_check CHECK (((length(key) >= 1) AND (length(key) <= 512))),
    constraint current_value_owner_check CHECK ((length(owner) <= 128)),
    constraint current_value_pkey PRIMARY KEY (owner, key)
) with (fillfactor=70);
CREATE INDEX current_value_base_key ON tocsin.current_value USING btree (split_part(key, '{'::text, 1));
CREATE INDEX current_value_stale ON tocsin.current_value USING btree (owner, stale_since) WHERE (freshness = 'stale'::text);
comment on table tocsin.current_value is 'One row per series: its newest value and whether it is stale. Written by workers; the clock marks a series as stale.';
comment on column tocsin.current_value.partition is 'Partition of the data lane that the owner belongs to.';
comment on column tocsin.current_value.value is 'Value with the newest ts.';
comment on column tocsin.current_value.arrived_at is 'Newest arrival, even if its ts is older than that of the value.';
comment on column tocsin.current_value.stale_since is 'Deadline that passed without a datapoint; null if fresh.';
comment on column tocsin.current_value.handled_stale_since is 'Value of stale_since that the rules have processed. The clock marks a series first; the rules learn of it through the stream.';
comment on column tocsin.current_value.version is 'Raised by every change, to detect a concurrent one.';

create table tocsin.datapoint (
    arrived_at timestamp with time zone not null,
    stream_seq bigint not null,
    "position" integer not null,
    owner text not null,
    key text not null,
    ts timestamp with time zone not null,
    value jsonb not null,
    labels jsonb,
    constraint datapoint_pkey PRIMARY KEY (arrived_at, stream_seq, "position")
) partition by RANGE (arrived_at);
CREATE INDEX datapoint_series ON tocsin.datapoint USING btree (owner, key, arrived_at);
comment on table tocsin.datapoint is 'Datapoints of producers in the order of the data stream, in one partition per UTC day of arrival. Written by the worker that holds the partition of the lane.';
comment on column tocsin.datapoint.arrived_at is 'When the data stream stored it. Rules and deadlines use this instant.';
comment on column tocsin.datapoint."position" is 'Position inside a message with several datapoints, from 0.';
comment on column tocsin.datapoint.ts is 'Time that the producer gave. It orders the values of a series.';

create table tocsin.datapoint_calculated (
    seq bigint not null,
    id uuid not null,
    owner text not null,
    key text not null,
    ts timestamp with time zone not null,
    recorded_at timestamp with time zone not null,
    kind text not null,
    payload jsonb not null,
    correlation_id uuid not null,
    epoch bigint,
    constraint datapoint_calculated_key_check CHECK (((length(key) >= 1) AND (length(key) <= 512))),
    constraint datapoint_calculated_kind_check CHECK ((kind = ANY (ARRAY['stale'::text, 'fresh'::text, 'health'::text, 'calc'::text]))),
    constraint datapoint_calculated_owner_check CHECK ((length(owner) <= 128)),
    constraint datapoint_calculated_payload_check CHECK ((octet_length((payload)::text) <= 229376)),
    constraint datapoint_calculated_pkey PRIMARY KEY (seq)
) partition by RANGE (seq);
CREATE INDEX datapoint_calculated_result ON tocsin.datapoint_calculated USING btree (split_part(key, '{'::text, 1), ts) WHERE (kind = 'calc'::text);
comment on table tocsin.datapoint_calculated is 'Datapoints that Tocsin derives: a series became stale or fresh, the health of a system changed, or a calc_rule gave a value. Written by tocsin.append for the clock (stale) and the workers.';
comment on column tocsin.datapoint_calculated.owner is 'Owner of the series, or the name of the system.';
comment on column tocsin.datapoint_calculated.ts is 'Instant that it is for, such as the deadline that passed.';
comment on column tocsin.datapoint_calculated.kind is 'Kind of calculated datapoint: stale, fresh, health or calc.';
revoke all on table tocsin.datapoint_calculated from public;

create table tocsin.datapoint_kept (
    owner text not null,
    key text not null,
    arrived_at timestamp with time zone not null,
    ts timestamp with time zone not null,
    value jsonb not null,
    labels jsonb,
    constraint datapoint_kept_pkey PRIMARY KEY (owner, key)
);
comment on table tocsin.datapoint_kept is 'Last datapoint of each series before the oldest partition of tocsin.datapoint. A replay that begins there needs it to know which series were stale, and since when. Written by retention.';

create table tocsin.erasure (
    seq bigint not null,
    owner text not null,
    arrived_until timestamp with time zone not null,
    ended_at timestamp with time zone,
    counts jsonb not null default '{}'::jsonb,
    constraint erasure_pkey PRIMARY KEY (seq)
);
CREATE INDEX erasure_owner ON tocsin.erasure USING btree (owner, seq);
comment on table tocsin.erasure is 'Erasures of the data of owners. Written by tocsin.begin_erasure and tocsin.end_erasure, for `tocsin forget`.';
comment on column tocsin.erasure.seq is 'The event owner-forgotten: records of the owner before it have no content any more.';
comment on column tocsin.erasure.arrived_until is 'Datapoints of the owner that arrived up to then are removed.';
comment on column tocsin.erasure.ended_at is 'Null: interrupted. `tocsin forget` continues it.';
comment on column tocsin.erasure.counts is 'How many rows and messages were redacted or removed, by table or stream.';
revoke all on table tocsin.erasure from public;

create table tocsin.event (
    seq bigint not null,
    id uuid not null,
    ts timestamp with time zone not null,
    recorded_at timestamp with time zone not null,
    origin text not null,
    type text not null,
    schedule text not null default ''::text,
    rule text not null default ''::text,
    action text not null default ''::text,
    owner text not null default ''::text,
    fire_at timestamp with time zone,
    alarm_id uuid,
    severity smallint,
    source_event_id uuid,
    correlation_id uuid not null,
    payload jsonb not null,
    epoch bigint,
    constraint event_action_check CHECK ((length(action) <= 128)),
    constraint event_origin_check CHECK ((origin = ANY (ARRAY['external'::text, 'caused'::text, 'derived'::text, 'scheduled'::text]))),
    constraint event_owner_check CHECK ((length(owner) <= 128)),
    constraint event_payload_check CHECK ((octet_length((payload)::text) <= 229376)),
    constraint event_pkey PRIMARY KEY (seq),
    constraint event_rule_check CHECK ((length(rule) <= 128)),
    constraint event_schedule_check CHECK ((length(schedule) <= 128)),
    constraint event_type_check CHECK ((type ~ '^[A-Za-z0-9_-]{1,128}$'::text))
) partition by RANGE (seq);
CREATE INDEX event_missed ON tocsin.event USING btree (schedule, seq) WHERE (type = 'schedule-missed'::text);
CREATE INDEX event_of_alarm ON tocsin.event USING btree (alarm_id, seq) WHERE (alarm_id IS NOT NULL);
CREATE INDEX event_of_rule ON tocsin.event USING btree (rule, seq) WHERE (rule <> ''::text);
comment on table tocsin.event is 'Records that something happened. Written by tocsin.append, published to the record stream by the publisher, read with `tocsin events`.';
comment on column tocsin.event.seq is 'Position in the record log, in commit order; equal to the sequence in the record stream.';
comment on column tocsin.event.ts is 'Nominal time: the instant that the event is for, however late it was recorded.';
comment on column tocsin.event.recorded_at is 'When it was appended, by the clock of the database.';
comment on column tocsin.event.origin is 'scheduled (a schedule), derived (an event_rule), caused (an action or an operator) or external (sent by a producer).';
comment on column tocsin.event.schedule is 'Name of the schedule that fired; empty if none did.';
comment on column tocsin.event.rule is 'Name of the event_rule that derived the event; empty if none did.';
comment on column tocsin.event.action is 'Name of the action that emitted the event; empty if none did.';
comment on column tocsin.event.fire_at is 'When a schedule was due: nominal time plus spread.';
comment on column tocsin.event.source_event_id is 'Event that led to this one.';
comment on column tocsin.event.correlation_id is 'Shared by all records that one cause led to.';
comment on column tocsin.event.epoch is 'Epoch of the clock that wrote it; null for a worker or a command.';
revoke all on table tocsin.event from public;

create table tocsin.event_kept (
    seq bigint not null,
    id uuid not null,
    ts timestamp with time zone not null,
    recorded_at timestamp with time zone not null,
    origin text not null,
    type text not null,
    schedule text not null default ''::text,
    rule text not null default ''::text,
    action text not null default ''::text,
    owner text not null default ''::text,
    fire_at timestamp with time zone,
    alarm_id uuid,
    severity smallint,
    source_event_id uuid,
    correlation_id uuid not null,
    payload jsonb not null,
    epoch bigint,
    constraint event_kept_pkey PRIMARY KEY (seq)
);
CREATE INDEX event_kept_of_alarm ON tocsin.event_kept USING btree (alarm_id) WHERE (alarm_id IS NOT NULL);
CREATE INDEX event_kept_of_rule ON tocsin.event_kept USING btree (rule, seq);
comment on table tocsin.event_kept is 'Events below the horizon that are among the newest of their rule. Not part of the record log: a rebuild of the stream begins at the horizon. Written by tocsin.raise_horizon.';
comment on column tocsin.event_kept.seq is 'Position in the record log, in commit order; equal to the sequence in the record stream.';
comment on column tocsin.event_kept.ts is 'Nominal time: the instant that the event is for, however late it was recorded.';
comment on column tocsin.event_kept.recorded_at is 'When it was appended, by the clock of the database.';
comment on column tocsin.event_kept.origin is 'scheduled (a schedule), derived (an event_rule), caused (an action or an operator) or external (sent by a producer).';
comment on column tocsin.event_kept.schedule is 'Name of the schedule that fired; empty if none did.';
comment on column tocsin.event_kept.rule is 'Name of the event_rule that derived the event; empty if none did.';
comment on column tocsin.event_kept.action is 'Name of the action that emitted the event; empty if none did.';
comment on column tocsin.event_kept.fire_at is 'When a schedule was due: nominal time plus spread.';
comment on column tocsin.event_kept.source_event_id is 'Event that led to this one.';
comment on column tocsin.event_kept.correlation_id is 'Shared by all records that one cause led to.';
comment on column tocsin.event_kept.epoch is 'Epoch of the clock that wrote it; null for a worker or a command.';

create table tocsin.event_lineage (
    event_id uuid not null,
    lineage text[] not null,
    at timestamp with time zone not null default tocsin.instant(),
    constraint event_lineage_lineage_check CHECK ((cardinality(lineage) > 0)),
    constraint event_lineage_pkey PRIMARY KEY (event_id)
);
CREATE INDEX event_lineage_at ON tocsin.event_lineage USING btree (at, event_id);
comment on table tocsin.event_lineage is 'The action_rules that led to an event, oldest first, so that no rule starts itself again. Only for events that an action emitted, or that a producer sent with a lineage. Written by workers.';
comment on column tocsin.event_lineage.at is 'When it was written, shortly before its event.';

create table tocsin.ingest_event (
    key text not null,
    event_id uuid not null,
    at timestamp with time zone not null,
    digest bytea,
    constraint ingest_event_key_check CHECK (((length(key) >= 1) AND (length(key) <= 256))),
    constraint ingest_event_pkey PRIMARY KEY (key)
);
CREATE INDEX ingest_event_at ON tocsin.ingest_event USING btree (at, key);
comment on table tocsin.ingest_event is 'Keys of the events that producers sent and a worker appended: the same key again is the same event and is ignored.';
comment on column tocsin.ingest_event.digest is 'SHA-256 of type, owner, severity and payload. Null: appended before there were digests.';

create table tocsin.instance_key (
    key bytea not null default ((uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) || uuid_send(gen_random_uuid())),
    only_row boolean not null default true,
    constraint instance_key_only_row_check CHECK (only_row),
    constraint instance_key_pkey PRIMARY KEY (only_row)
);
comment on table tocsin.instance_key is 'Random key of the instance, which no role may read. tocsin.report_token derives tokens from it.';
insert into tocsin.instance_key default values;

create table tocsin.lane_partition (
    lane text not null,
    partition integer not null,
    last_seq bigint not null default 0,
    watermark timestamp with time zone,
    holder text,
    held_until timestamp with time zone,
    incarnation text,
    last_source_seq bigint not null default 0,
    last_stored_at timestamp with time zone,
    last_gap_at timestamp with time zone,
    canary_error text,
    constraint lane_partition_lane_check CHECK ((lane = ANY (ARRAY['record'::text, 'data'::text]))),
    constraint lane_partition_partition_check CHECK ((partition >= 0)),
    constraint lane_partition_pkey PRIMARY KEY (lane, partition)
) with (fillfactor=50);
comment on table tocsin.lane_partition is 'Position of each partition of each lane. It moves in the transaction of the effects of a batch, so every message counts exactly once. Written by the worker that holds the partition.';
comment on column tocsin.lane_partition.lane is 'record: the record stream; data: the datapoints of producers, partitioned by owner.';
comment on column tocsin.lane_partition.last_seq is 'Last stream sequence that was read.';
comment on column tocsin.lane_partition.watermark is 'Watermark: everything that arrived up to this instant has been read. No deadline after it fires. In the data lane it is the arrival of a message.';
comment on column tocsin.lane_partition.holder is 'Worker that reads the partition; null if none does.';
comment on column tocsin.lane_partition.held_until is 'End of the lease of the holder. Then another worker may take the partition.';
comment on column tocsin.lane_partition.incarnation is 'When the stream was created. The sequences of a recreated stream are not comparable.';
comment on column tocsin.lane_partition.last_source_seq is 'Last record seq among the messages that the data stream sources from the record stream. After a stream is rebuilt they arrive again, and the worker skips them.';
comment on column tocsin.lane_partition.last_stored_at is 'When the server stored the message at last_seq. A stream that lost its end and grew again has another message there.';
comment on column tocsin.lane_partition.last_gap_at is 'Start of the newest arrival gap of the partition; null if there was none.';
comment on column tocsin.lane_partition.canary_error is 'Why the data stream did not accept the last canary; null if it did.';

create table tocsin.lane_worker (
    holder text not null,
    seen_until timestamp with time zone not null,
    since timestamp with time zone not null,
    problem text,
    remedy text,
    constraint lane_worker_pkey PRIMARY KEY (holder)
) with (fillfactor=50);
comment on table tocsin.lane_worker is 'Workers that are alive, so that each takes a fair share of the partitions. Written by each worker.';
comment on column tocsin.lane_worker.seen_until is 'The worker counts as alive until then.';
comment on column tocsin.lane_worker.since is 'Start of the worker.';
comment on column tocsin.lane_worker.problem is 'Why the worker cannot work; it then takes no partition. Shown by `tocsin doctor`.';
comment on column tocsin.lane_worker.remedy is 'What an operator can do about the problem.';

create table tocsin.lock_audit ();
comment on table tocsin.lock_audit is 'Lock for chaining the audit, without rows. See tocsin.seal_audit().';

create table tocsin.lock_calculation ();
comment on table tocsin.lock_calculation is 'Lock for calculating windows, without rows. See tocsin.try_lock_calculation().';
revoke all on table tocsin.lock_calculation from public;

create table tocsin.lock_health ();
comment on table tocsin.lock_health is 'Lock for writing health, without rows. See tocsin.lock_health().';
revoke all on table tocsin.lock_health from public;

create table tocsin.lock_log ();
comment on table tocsin.lock_log is 'Lock of the record log, without rows. Taken by tocsin.append until the commit.';
revoke all on table tocsin.lock_log from public;

create table tocsin.lock_partitions ();
comment on table tocsin.lock_partitions is 'Lock for creating partitions, without rows. Taken by tocsin.extend_log and tocsin.extend_datapoints.';
revoke all on table tocsin.lock_partitions from public;

create table tocsin.lock_prune ();
comment on table tocsin.lock_prune is 'Lock for starting a run of retention, without rows. See tocsin.claim_prune().';
revoke all on table tocsin.lock_prune from public;

create table tocsin.lock_rules ();
comment on table tocsin.lock_rules is 'Lock of the rule set, without rows: one apply at a time. See tocsin.lock_rules().';
revoke all on table tocsin.lock_rules from public;

create table tocsin.lock_tz_version ();
comment on table tocsin.lock_tz_version is 'Lock of the tz version, without rows: shared by edits of schedules, exclusive for a clock that stores a new version.';
revoke all on table tocsin.lock_tz_version from public;

create table tocsin.log_commit (
    last_seq bigint not null,
    first_seq bigint not null,
    recorded_at timestamp with time zone not null,
    epoch bigint,
    constraint log_commit_pkey PRIMARY KEY (last_seq)
);
comment on table tocsin.log_commit is 'One row per committed append; the largest last_seq is the head of the record log. Written by tocsin.append.';
comment on column tocsin.log_commit.epoch is 'Epoch that the append proved; null for a worker or a command.';
revoke all on table tocsin.log_commit from public;

create table tocsin.log_gap (
    from_seq bigint not null,
    until_seq bigint not null,
    reason text not null,
    who text not null,
    at timestamp with time zone not null,
    constraint log_gap_apart EXCLUDE USING gist (int8range(from_seq, until_seq, '[]'::text) WITH &&) DEFERRABLE INITIALLY DEFERRED,
    constraint log_gap_check CHECK ((until_seq >= from_seq)),
    constraint log_gap_from_seq_check CHECK ((from_seq > 0))
);
comment on table tocsin.log_gap is 'Gaps in the record log that an operator accepted as lost. The publisher fills them with tombstones and stops at any other gap (docs/decisions/0006, 0007). Written by tocsin.adopt, tocsin.adopt_inside and tocsin.record_gap.';
comment on column tocsin.log_gap.until_seq is 'Last seq of the gap.';
revoke all on table tocsin.log_gap from public;

create table tocsin.log_head (
    only_row boolean not null default true,
    epoch bigint not null default 0,
    floor bigint not null default 0,
    partition_size bigint not null default 1000000,
    holder text,
    holder_pid integer,
    holder_backend_start timestamp with time zone,
    taken_at timestamp with time zone,
    horizon bigint not null default 1,
    constraint log_head_only_row_check CHECK (only_row),
    constraint log_head_partition_size_check CHECK ((partition_size > 0)),
    constraint log_head_pkey PRIMARY KEY (only_row)
);
comment on table tocsin.log_head is 'One row: the leading clock and the bounds of the record log. Written by tocsin.raise_epoch, tocsin.adopt and tocsin.raise_horizon.';
comment on column tocsin.log_head.epoch is 'Number of the current leadership. Every takeover raises it; tocsin.append rejects an older one.';
comment on column tocsin.log_head.floor is 'Smallest seq that the head of the log may have. tocsin.adopt raises it to the end of the stream.';
comment on column tocsin.log_head.partition_size is 'Number of seqs in one partition of a log table.';
comment on column tocsin.log_head.holder is 'Name of the clock that leads.';
comment on column tocsin.log_head.holder_pid is 'Server process of the leading clock. A takeover terminates it, so that a frozen leader cannot keep the lock of the log.';
comment on column tocsin.log_head.holder_backend_start is 'Start of that server process. It tells the process from a later one with the same pid.';
comment on column tocsin.log_head.horizon is 'First seq that the log still promises to have. Retention raises it before it drops the partitions below it, so readers ignore what a crash leaves of them.';
revoke all on table tocsin.log_head from public;
insert into tocsin.log_head default values;

create table tocsin.member_alarm (
    owner text not null,
    rule text not null,
    severity smallint not null,
    since timestamp with time zone not null,
    keys text[] not null,
    instance text not null default ''::text,
    constraint member_alarm_pkey PRIMARY KEY (owner, rule, instance)
) with (fillfactor=70);
comment on table tocsin.member_alarm is 'Open alarms of the owners of members, as of the observations that health was computed from. Written as tocsin.member_series.';
comment on column tocsin.member_alarm.keys is 'Keys of the series that keep the alarm open.';
comment on column tocsin.member_alarm.instance is 'As in tocsin.rule_state.';

create table tocsin.member_observation (
    id bigint not null generated always as identity,
    owner text not null,
    at timestamp with time zone not null,
    what text not null,
    subject text not null,
    severity smallint,
    since timestamp with time zone,
    keys text[] not null default '{}'::text[],
    instance text not null default ''::text,
    constraint member_observation_pkey PRIMARY KEY (id),
    constraint member_observation_what_check CHECK ((what = ANY (ARRAY['fresh'::text, 'stale'::text, 'alarm'::text])))
);
comment on table tocsin.member_observation is 'Observations: changes of the series and alarms of members that health was not yet computed from. Written by tocsin.append, removed by the worker that computes health.';
comment on column tocsin.member_observation.at is 'Instant of the change. Health takes observations in this order.';
comment on column tocsin.member_observation.what is 'fresh or stale: a series changed; alarm: an alarm opened, changed or resolved.';
comment on column tocsin.member_observation.subject is 'Key of the series, or name of the event_rule of the alarm.';
comment on column tocsin.member_observation.keys is 'Keys of the series that keep the alarm open; empty if the alarm is not open.';
comment on column tocsin.member_observation.instance is 'Instance of the alarm; empty if the observation is about a series.';

create table tocsin.member_series (
    owner text not null,
    key text not null,
    stale_since timestamp with time zone,
    constraint member_series_pkey PRIMARY KEY (owner, key)
) with (fillfactor=70);
comment on table tocsin.member_series is 'Series of the owners of members, as of the observations that health was computed from. Written by an apply, and by the worker that computes health.';

create table tocsin.message_attempt (
    consumer text not null,
    seq bigint not null,
    process text not null,
    is_shared boolean not null default false,
    deaths integer not null default 0,
    began_at timestamp with time zone not null,
    constraint message_attempt_consumer_check CHECK (((length(consumer) >= 1) AND (length(consumer) <= 100))),
    constraint message_attempt_pkey PRIMARY KEY (consumer, seq)
) with (fillfactor=50);
CREATE INDEX message_attempt_began ON tocsin.message_attempt USING btree (began_at);
CREATE INDEX message_attempt_process ON tocsin.message_attempt USING btree (process);
comment on table tocsin.message_attempt is 'Messages that a worker is handling again after their handling was interrupted. The worker removes the row when the handling ends, in whatever way, so a row of a process that is gone means that the process died over the message.';
comment on column tocsin.message_attempt.consumer is 'Consumer of a stream (actions, events, reports), or partition of a lane (data/3).';
comment on column tocsin.message_attempt.seq is 'Sequence of the message in its stream.';
comment on column tocsin.message_attempt.process is 'Process that handles the message.';
comment on column tocsin.message_attempt.is_shared is 'Whether the process handled another message that is listed here at the same time.';
comment on column tocsin.message_attempt.deaths is 'Processes that died while they handled this message, and no other one that is listed here.';

create table tocsin.owner_grant (
    grantee text not null,
    pattern text not null,
    granted_by text not null default SESSION_USER,
    granted_at timestamp with time zone not null default tocsin.instant(),
    constraint owner_grant_grantee_check CHECK (((length(grantee) >= 1) AND (length(grantee) <= 128))),
    constraint owner_grant_pattern_check CHECK (((length(pattern) <= 129) AND (POSITION(('*'::text) IN ("left"(pattern, '-1'::integer))) = 0))),
    constraint owner_grant_pkey PRIMARY KEY (grantee, pattern)
);
comment on table tocsin.owner_grant is 'Owners that a role may use: services in tocsin.schedule_once and the like, readers in the rows that they see. Written with `tocsin roles grant`.';
comment on column tocsin.owner_grant.grantee is 'A role, which its members share, or a principal of the API.';
comment on column tocsin.owner_grant.pattern is 'An owner, or the beginning of owners followed by *.';

create table tocsin.pipeline_report (
    only_row boolean not null default true,
    since timestamp with time zone,
    constraint pipeline_report_only_row_check CHECK (only_row),
    constraint pipeline_report_pkey PRIMARY KEY (only_row)
) with (fillfactor=50);
comment on table tocsin.pipeline_report is 'One row: whether held timers were reported. Written by the clock with the events pipeline-behind and pipeline-caught-up, so that each episode is reported once.';
comment on column tocsin.pipeline_report.since is 'Start of the episode; null if there is none.';
insert into tocsin.pipeline_report default values;

create table tocsin.prune_report (
    only_row boolean not null default true,
    began_at timestamp with time zone,
    ended_at timestamp with time zone,
    removed jsonb not null default '{}'::jsonb,
    left_over jsonb not null default '[]'::jsonb,
    claim_key bigint,
    claim_pid integer,
    constraint prune_report_only_row_check CHECK (only_row),
    constraint prune_report_pkey PRIMARY KEY (only_row)
) with (fillfactor=50);
comment on table tocsin.prune_report is 'One row: the last run of retention, or the one in progress. Written by the clock or `tocsin prune`, read by `tocsin doctor`.';
comment on column tocsin.prune_report.ended_at is 'Null while the run is in progress, or if it was interrupted.';
comment on column tocsin.prune_report.removed is 'Number of removed rows, by table.';
comment on column tocsin.prune_report.left_over is 'What may be removed but could not be, and why.';
comment on column tocsin.prune_report.claim_key is 'Key of the advisory lock that the run holds.';
comment on column tocsin.prune_report.claim_pid is 'Server process of the run.';
insert into tocsin.prune_report default values;

create table tocsin.rule_cutover (
    lane text not null,
    partition integer not null,
    rules_seq bigint not null,
    seq bigint not null,
    watermark timestamp with time zone,
    constraint rule_cutover_pkey PRIMARY KEY (lane, partition, rules_seq)
);
comment on table tocsin.rule_cutover is 'Cutovers: where each partition was when an apply committed. Later messages are evaluated with the rules of that apply. Written by the apply, which locks the partitions; read by replays.';
comment on column tocsin.rule_cutover.rules_seq is 'Seq of the rules-applied event of the apply.';
comment on column tocsin.rule_cutover.seq is 'Last sequence that the partition had read.';
comment on column tocsin.rule_cutover.watermark is 'Watermark of the partition: everything that arrived up to this instant had been read.';

create table tocsin.rule_state (
    event_rule text not null,
    owner text not null,
    lane text not null,
    partition integer not null,
    phase text not null default 'ok'::text,
    alarm_id uuid,
    state jsonb not null default '{}'::jsonb,
    version bigint not null default 1,
    instance text not null default ''::text,
    recheck_at timestamp with time zone,
    constraint rule_state_instance_check CHECK ((length(instance) <= 512)),
    constraint rule_state_phase_check CHECK ((phase = ANY (ARRAY['ok'::text, 'pending'::text, 'open'::text, 'clearing'::text]))),
    constraint rule_state_pkey PRIMARY KEY (event_rule, owner, instance)
) with (fillfactor=70);
CREATE INDEX rule_state_recheck ON tocsin.rule_state USING btree (lane, partition, recheck_at) WHERE (recheck_at IS NOT NULL);
comment on table tocsin.rule_state is 'State of each event_rule for each owner and instance. Written by workers, by the clock when a sustain fires, by an apply, and by an operator who resolves an alarm.';
comment on column tocsin.rule_state.event_rule is 'Name of the event_rule; stale:<type> for the rule that a datapoint_type implies, heartbeat:<name> for a heartbeat.';
comment on column tocsin.rule_state.lane is 'Lane whose inputs the rule evaluates.';
comment on column tocsin.rule_state.partition is 'Partition of that lane that the owner belongs to.';
comment on column tocsin.rule_state.phase is 'pending: the condition holds, but not yet for long enough; clearing: it is clear, but not yet for long enough.';
comment on column tocsin.rule_state.alarm_id is 'Alarm that is pending or open.';
comment on column tocsin.rule_state.state is 'State of the rule engine as JSON: firing_series holds the series that fire, tracks the previous values of rules that look back.';
comment on column tocsin.rule_state.version is 'Raised by every change, to detect a concurrent one.';
comment on column tocsin.rule_state.instance is 'What the rule has an alarm of its own for: the key of a series, or the values of `per` as JSON. Empty: the owner as a whole.';
comment on column tocsin.rule_state.recheck_at is 'When the state changes although nothing arrives: values leave a window, or a check-in is late. The worker that moves the watermark beyond it evaluates the rule.';

create table tocsin.rule_version (
    kind text not null,
    name text not null,
    version integer not null,
    document jsonb not null,
    from_seq bigint not null,
    until_seq bigint,
    constraint rule_version_pkey PRIMARY KEY (kind, name, version)
);
CREATE UNIQUE INDEX rule_version_current ON tocsin.rule_version USING btree (kind, name) WHERE (until_seq IS NULL);
CREATE INDEX rule_version_from ON tocsin.rule_version USING btree (from_seq);
CREATE INDEX rule_version_until ON tocsin.rule_version USING btree (until_seq);
comment on table tocsin.rule_version is 'Every version of every document of the rule files. Written by an apply, in one transaction (docs/decisions/0005).';
comment on column tocsin.rule_version.kind is 'Kind of document, such as schedule, event_rule or action.';
comment on column tocsin.rule_version.from_seq is 'Seq of the rules-applied event of the apply that stored it. It is in force for later records.';
comment on column tocsin.rule_version.until_seq is 'Last seq for which it is in force; null for the version in force now.';

create table tocsin.schedule (
    id uuid not null default gen_random_uuid(),
    owner text not null default ''::text,
    name text not null,
    recurrence jsonb not null,
    spread interval not null default '00:00:00'::interval,
    catch_up text not null default 'latest'::text,
    "window" interval,
    grace interval,
    max_catch_up integer not null default 100,
    type text not null default 'schedule-fired'::text,
    payload jsonb not null default '{}'::jsonb,
    action text,
    status text not null default 'active'::text,
    generation bigint not null default 1,
    last_occurrence timestamp with time zone,
    last_identity text,
    source text not null default 'api'::text,
    created_by text not null,
    created_via text not null,
    created_at timestamp with time zone not null,
    updated_at timestamp with time zone not null,
    retry jsonb,
    title text,
    description text,
    runbook_url text,
    constraint schedule_action_check CHECK (((length(action) >= 1) AND (length(action) <= 128))),
    constraint schedule_catch_up_check CHECK ((catch_up = ANY (ARRAY['latest'::text, 'all'::text, 'none'::text]))),
    constraint schedule_grace_check CHECK ((grace >= '00:00:00'::interval)),
    constraint schedule_max_catch_up_check CHECK (((max_catch_up >= 1) AND (max_catch_up <= 10000))),
    constraint schedule_name_check CHECK (((length(name) >= 1) AND (length(name) <= 128))),
    constraint schedule_owner_check CHECK ((length(owner) <= 128)),
    constraint schedule_owner_name_key UNIQUE (owner, name),
    constraint schedule_payload_check CHECK (((octet_length((payload)::text) <= 229376) AND tocsin.is_readable(payload))),
    constraint schedule_pkey PRIMARY KEY (id),
    constraint schedule_recurrence_check CHECK (tocsin.is_readable(recurrence)),
    constraint schedule_source_check CHECK ((source = ANY (ARRAY['api'::text, 'rules'::text]))),
    constraint schedule_spread_check CHECK ((spread >= '00:00:00'::interval)),
    constraint schedule_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'fired'::text, 'ended'::text, 'cancelled'::text, 'failed'::text]))),
    constraint schedule_type_check CHECK ((type ~ '^[A-Za-z0-9_-]{1,128}$'::text)),
    constraint schedule_window_check CHECK (("window" >= '00:00:00'::interval))
);
CREATE INDEX schedule_ended ON tocsin.schedule USING btree (updated_at, id) WHERE (status = ANY (ARRAY['fired'::text, 'ended'::text, 'cancelled'::text, 'failed'::text]));
comment on table tocsin.schedule is 'Schedules: named recurrences. An active one has one schedule-tick in tocsin.timer. Written by an apply of rule files, the command line and the functions tocsin.schedule_*.';
comment on column tocsin.schedule.recurrence is 'Arguments of the recurrence parser (cron, rrule, every or at, with tz), in canonical form.';
comment on column tocsin.schedule.spread is 'Each fire is delayed by a stable share of this, derived from owner and name.';
comment on column tocsin.schedule.catch_up is 'What happens with occurrences that were missed: fire the latest, all of them or none.';
comment on column tocsin.schedule."window" is 'Missed occurrences older than this are not caught up.';
comment on column tocsin.schedule.grace is 'A fire that is late by no more than this is not a missed one.';
comment on column tocsin.schedule.max_catch_up is 'Largest number of missed occurrences that are fired.';
comment on column tocsin.schedule.type is 'Type of the event that a fire records.';
comment on column tocsin.schedule.action is 'Action that a fire starts; null for the event alone.';
comment on column tocsin.schedule.status is 'fired: a single occurrence that is done; ended: a recurrence without further occurrences; failed: a single occurrence whose run failed.';
comment on column tocsin.schedule.generation is 'Raised by every edit, so that an older tick is recognised.';
comment on column tocsin.schedule.last_occurrence is 'Newest occurrence that is done. While a tick is armed, timer.last_nominal_at is ahead of it.';
comment on column tocsin.schedule.last_identity is 'Wall time and fold of that occurrence, as in timer.last_identity.';
comment on column tocsin.schedule.source is 'rules: defined by a rule file; api: put by a command or a service.';
comment on column tocsin.schedule.retry is 'Attempts and delays for the steps of its action, instead of those of the action; null: those of the action.';
comment on column tocsin.schedule.title is 'A name for people.';

create table tocsin.setting (
    name text not null,
    value text not null,
    constraint setting_pkey PRIMARY KEY (name)
);
comment on table tocsin.setting is 'Facts about this database that outlive every process. Written by the clock: tz-version is the version of its time zone data, and tz-ticks-version is the version that all pending schedule ticks were computed with.';

create table tocsin.silence (
    id uuid not null,
    matcher text not null,
    starts_at timestamp with time zone not null,
    ends_at timestamp with time zone not null,
    reason text not null default ''::text,
    created_by text not null,
    created_via text not null,
    created_at timestamp with time zone not null,
    source text not null default 'operator'::text,
    recurrence jsonb,
    ended_at timestamp with time zone,
    constraint silence_check CHECK ((ends_at > starts_at)),
    constraint silence_check1 CHECK (((recurrence IS NULL) = (source = 'operator'::text))),
    constraint silence_matcher_check CHECK (((length(matcher) >= 1) AND (length(matcher) <= 2000))),
    constraint silence_pkey PRIMARY KEY (id),
    constraint silence_reason_check CHECK ((length(reason) <= 1000)),
    constraint silence_source_check CHECK ((source ~ '^(operator|maintenance:.{1,128})$'::text))
);
CREATE INDEX silence_active ON tocsin.silence USING btree (ends_at) WHERE (ended_at IS NULL);
CREATE INDEX silence_ended ON tocsin.silence USING btree (ended_at, id) WHERE (ended_at IS NOT NULL);
CREATE UNIQUE INDEX silence_window ON tocsin.silence USING btree (source) WHERE ((ended_at IS NULL) AND (source <> 'operator'::text));
comment on table tocsin.silence is 'Silences: alarms that match notify no one from starts_at until ends_at. Written by commands, by an apply of maintenance documents, and by the record lane when one ends. Whether one is in force depends on the time alone; its end is also a one-shot schedule with the same id, whose event wakes what was held (docs/decisions/0026).';
comment on column tocsin.silence.matcher is 'CEL condition over an alarm.';
comment on column tocsin.silence.source is 'operator: added by a command; maintenance:<name>: a window of that document.';
comment on column tocsin.silence.recurrence is 'Recurrence of the maintenance, from which the next window is computed.';
comment on column tocsin.silence.ended_at is 'When it ended: its end, or earlier if it was expired. Null until the record lane has read the end.';

create table tocsin.system_health (
    system text not null,
    health text not null default 'unknown'::text,
    reason text,
    since timestamp with time zone,
    holds_from timestamp with time zone not null,
    constraint system_health_health_check CHECK ((health = ANY (ARRAY['ok'::text, 'degraded'::text, 'outage'::text, 'unknown'::text]))),
    constraint system_health_pkey PRIMARY KEY (system),
    constraint system_health_reason_check CHECK ((reason = ANY (ARRAY['stale'::text, 'no-data'::text, 'uncovered'::text]))),
    constraint system_health_system_check CHECK (((length(system) >= 1) AND (length(system) <= 128)))
) with (fillfactor=50);
comment on table tocsin.system_health is 'Health of each system. Written by an apply, and by the worker that computes health. Read with `tocsin health`.';
comment on column tocsin.system_health.reason is 'Why the health is unknown; null otherwise.';
comment on column tocsin.system_health.since is 'Start of the current health and reason.';
comment on column tocsin.system_health.holds_from is 'Instant from which the current documents are in force. No health is computed for an earlier one.';

create table tocsin.system_member (
    system text not null,
    owner text not null,
    key text not null,
    type text not null default ''::text,
    required boolean not null,
    covered boolean not null,
    condition text not null default 'no-data'::text,
    holds boolean not null default false,
    constraint system_member_condition_check CHECK ((condition = ANY (ARRAY['ok'::text, 'degraded'::text, 'outage'::text, 'stale'::text, 'no-data'::text, 'uncovered'::text]))),
    constraint system_member_pkey PRIMARY KEY (system, owner, key, type)
) with (fillfactor=70);
CREATE INDEX system_member_owner ON tocsin.system_member USING btree (owner);
comment on table tocsin.system_member is 'Members of systems, one row per series. A member that is given by a datapoint_type has one row with an empty key until a series of that type is seen. Written as tocsin.system_health.';
comment on column tocsin.system_member.type is 'The datapoint_type that the member was given by; empty if by its key.';
comment on column tocsin.system_member.required is 'An outage of a required member is an outage of the system; one of an optional member degrades it.';
comment on column tocsin.system_member.covered is 'Whether an event_rule or the deadline of a datapoint_type can detect a problem of the series.';
comment on column tocsin.system_member.holds is 'Whether the last value stays valid when the series is stale (on_stale: hold).';

create table tocsin.timer (
    kind text not null,
    ref text not null,
    key text not null default ''::text,
    fire_at timestamp with time zone not null,
    nominal_at timestamp with time zone not null,
    last_nominal_at timestamp with time zone,
    last_identity text,
    generation bigint not null default 1,
    payload jsonb not null default '{}'::jsonb,
    attempts integer not null default 0,
    last_error text,
    parked_at timestamp with time zone,
    identity text,
    identity_at timestamp with time zone,
    constraint timer_fire_at_check CHECK (((fire_at >= '0001-01-03 00:00:00+00'::timestamp with time zone) AND (fire_at <= '9999-12-30 00:00:00+00'::timestamp with time zone))),
    constraint timer_key_check CHECK ((length(key) <= 512)),
    constraint timer_kind_check CHECK ((kind = ANY (ARRAY['schedule-tick'::text, 'for-sustain'::text, 'runbook-wait'::text, 'watchdog'::text]))),
    constraint timer_nominal_at_check CHECK (((nominal_at >= '0001-01-03 00:00:00+00'::timestamp with time zone) AND (nominal_at <= '9999-12-30 00:00:00+00'::timestamp with time zone))),
    constraint timer_pkey PRIMARY KEY (kind, ref, key),
    constraint timer_ref_check CHECK (((length(ref) >= 1) AND (length(ref) <= 1536)))
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_cost_delay=0, autovacuum_analyze_scale_factor=0.05);
CREATE INDEX timer_due ON tocsin.timer USING btree (kind, fire_at, ref, key) WHERE (parked_at IS NULL);
CREATE INDEX timer_parked ON tocsin.timer USING btree (kind) WHERE (parked_at IS NOT NULL);
comment on table tocsin.timer is 'Working set of the clock: one row per pending fire. Written by schedules, workers, services (tocsin.arm) and the clock, which removes or moves a row in the transaction of what it fires.';
comment on column tocsin.timer.ref is 'What the timer belongs to: id of the schedule (schedule-tick), the alarm (for-sustain) or the run (runbook-wait), or the token of the owner (watchdog).';
comment on column tocsin.timer.key is 'Which timer of that object: open, clear or snooze (for-sustain), the step, <step>/report or group (runbook-wait), the key of the series (watchdog); empty for schedule-tick.';
comment on column tocsin.timer.fire_at is 'When the clock fires it: nominal time plus spread or backoff, and never before it was armed.';
comment on column tocsin.timer.nominal_at is 'Instant that the timer is for.';
comment on column tocsin.timer.last_nominal_at is 'Newest occurrence of the schedule that is done. It is kept here and not in tocsin.schedule, so that a fire writes one row less (docs/decisions/0003).';
comment on column tocsin.timer.last_identity is 'Wall time and fold of that occurrence, if they identify it: new tz data may move the wall time to another instant, and it must not fire again.';
comment on column tocsin.timer.generation is 'Generation of the schedule that armed the tick; 1 for other kinds unless the caller gives one.';
comment on column tocsin.timer.attempts is 'Failed fires in a row.';
comment on column tocsin.timer.parked_at is 'Set after too many failed fires: the clock ignores the row until `tocsin timers retry`.';
comment on column tocsin.timer.identity is 'Identity of the occurrence of a tick: wall time and fold, or the instant. Stored when the tick is armed, because computing it again costs as much as the next occurrence (docs/decisions/0015).';
comment on column tocsin.timer.identity_at is 'Nominal time that identity belongs to. If it differs from nominal_at, the clock computes the identity again.';

alter table tocsin.action_event add constraint action_event_action_id_fkey FOREIGN KEY (action_id) REFERENCES tocsin.action(id);

alter table tocsin.action_wait add constraint action_wait_action_id_fkey FOREIGN KEY (action_id) REFERENCES tocsin.action(id);

alter table tocsin.system_member add constraint system_member_system_fkey FOREIGN KEY (system) REFERENCES tocsin.system_health(system) ON DELETE CASCADE;

CREATE OR REPLACE FUNCTION tocsin.add_login(name text, digest bytea, grants text[], expires_at timestamp with time zone, created_by text, via text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    perform tocsin.check_grants(add_login.grants);
    delete from tocsin.api_login l where l.expires_at < tocsin.instant() - interval '1 day';
    insert into tocsin.api_login (digest, name, grants, created_by, expires_at)
    values (add_login.digest, add_login.name, add_login.grants, tocsin.principal(add_login.created_by),
            add_login.expires_at);
    perform tocsin.write_audit(add_login.created_by, add_login.via, 'add', 'login-link', '', add_login.name, null,
        jsonb_build_object('grants', add_login.grants, 'expires_at', add_login.expires_at));
end
$function$;
comment on function tocsin.add_login(text,bytea,text[],timestamp with time zone,text,text) is 'Stores the digest of a one-time login link. The audit has its grants.';
revoke all on function tocsin.add_login(text,bytea,text[],timestamp with time zone,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.add_token(name text, digest bytea, hint text, grants text[], expires_at timestamp with time zone, created_by text, via text)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
    token_id uuid;
begin
    perform tocsin.check_grants(add_token.grants);
    if add_token.expires_at <= tocsin.instant() then
        raise exception 'the token would expire before it is used' using errcode = 'TS002';
    end if;
    insert into tocsin.api_token (name, digest, hint, grants, expires_at, created_by)
    values (add_token.name, add_token.digest, add_token.hint, add_token.grants, add_token.expires_at,
            tocsin.principal(add_token.created_by))
    on conflict (name) where revoked_at is null do nothing
    returning id into token_id;
    if token_id is null then
        raise exception 'there is a token % already: revoke it, or choose another name', quote_literal(add_token.name)
            using errcode = 'TS002';
    end if;
    perform tocsin.write_audit(add_token.created_by, add_token.via, 'add', 'token', '', add_token.name, null,
        jsonb_build_object('id', token_id, 'grants', add_token.grants, 'expires_at', add_token.expires_at));
    return token_id;
end
$function$;
comment on function tocsin.add_token(text,bytea,text,text[],timestamp with time zone,text,text) is 'Stores the digest of a new token. The audit has its grants.';
revoke all on function tocsin.add_token(text,bytea,text,text[],timestamp with time zone,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.adopt(agreed_until bigint, stream_last bigint, reason text, who text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    head bigint;
    size bigint;
    shift bigint := stream_last - agreed_until;
    moved bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the record log is changed in read committed transactions, not in %',
            current_setting('transaction_isolation') using errcode = 'TS003';
    end if;
    -- Workers remove waits before they lock the log. Locking the table first lets them commit and
    -- avoids a deadlock.
    lock table tocsin.action_wait in share row exclusive mode;
    lock table tocsin.lock_log in share row exclusive mode;
    select greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)), h.partition_size
        into head, size from tocsin.log_head h;
    -- A gap that begins here was adopted after the caller compared log and stream.
    if shift <= 0 or agreed_until < 0 or agreed_until > head
        or exists (select from tocsin.log_gap g where g.from_seq = agreed_until + 1)
    then
        raise exception 'nothing to adopt: the log is at %, and agrees until % with a stream that ends at %',
            head, agreed_until, stream_last using errcode = 'TS005';
    end if;
    update tocsin.log_head set floor = greatest(floor, stream_last);
    perform tocsin.extend_log(((head + shift) / size - greatest(head, stream_last) / size)::integer + 2);
    moved := tocsin.move_records(agreed_until, shift);
    insert into tocsin.log_gap (from_seq, until_seq, reason, who, at)
    values (agreed_until + 1, stream_last, adopt.reason, adopt.who, tocsin.instant());
    return moved;
end
$function$;
comment on function tocsin.adopt(bigint,bigint,text,text) is 'Lets the log continue behind a stream that has more than the log: both agree up to agreed_until, and the stream ends at stream_last. Records the range between as a gap and moves the records of the log in it behind stream_last. Returns how many were moved.';
revoke all on function tocsin.adopt(bigint,bigint,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.adopt_inside(first_seq bigint, last_seq bigint, reason text, who text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    head bigint;
    size bigint;
    shift bigint;
    log_table text;
    of_table bigint;
    moved bigint := 0;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the record log is changed in read committed transactions, not in %',
            current_setting('transaction_isolation') using errcode = 'TS003';
    end if;
    lock table tocsin.lock_log in share row exclusive mode;
    select greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)), h.partition_size
        into head, size from tocsin.log_head h;
    shift := head - adopt_inside.first_seq + 1;
    perform tocsin.extend_log(((adopt_inside.last_seq - adopt_inside.first_seq) / size)::integer + 2);
    foreach log_table in array tocsin.log_tables() loop
        execute format('create temporary table moving on commit drop as select * from tocsin.%I where seq between %s and %s',
                       log_table, adopt_inside.first_seq, adopt_inside.last_seq);
        execute format('delete from tocsin.%I where seq between %s and %s',
                       log_table, adopt_inside.first_seq, adopt_inside.last_seq);
        execute format('update moving set seq = seq + %s', shift);
        execute format('insert into tocsin.%I select * from moving', log_table);
        get diagnostics of_table = row_count;
        moved := moved + of_table;
        drop table moving;
    end loop;
    if moved <> adopt_inside.last_seq - adopt_inside.first_seq + 1 then
        raise exception 'nothing to adopt: the log has % records from % to %',
            moved, adopt_inside.first_seq, adopt_inside.last_seq using errcode = 'TS005';
    end if;
    create temporary table moving on commit drop as
        select * from tocsin.log_commit c
        where c.last_seq >= adopt_inside.first_seq and c.first_seq <= adopt_inside.last_seq;
    delete from tocsin.log_commit c
        where c.last_seq >= adopt_inside.first_seq and c.first_seq <= adopt_inside.last_seq;
    -- A commit keeps the parts that agree with the stream.
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    select adopt_inside.first_seq - 1, m.first_seq, m.recorded_at, m.epoch
    from moving m where m.first_seq < adopt_inside.first_seq;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    select m.last_seq, adopt_inside.last_seq + 1, m.recorded_at, m.epoch
    from moving m where m.last_seq > adopt_inside.last_seq;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    select least(m.last_seq, adopt_inside.last_seq) + shift, greatest(m.first_seq, adopt_inside.first_seq) + shift,
           m.recorded_at, m.epoch
    from moving m;
    drop table moving;
    insert into tocsin.log_gap (from_seq, until_seq, reason, who, at)
    values (adopt_inside.first_seq, adopt_inside.last_seq, adopt_inside.reason, adopt_inside.who, tocsin.instant());
    return shift;
end
$function$;
comment on function tocsin.adopt_inside(bigint,bigint,text,text) is 'Moves the records from first_seq to last_seq behind the head of the log and records a gap in their place: the stream gave their sequences to others, and agrees with the log again behind them. Returns by how much their seq rose. Raises TS005 unless the log has all of them.';
revoke all on function tocsin.adopt_inside(bigint,bigint,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.append(events tocsin.event_input[] DEFAULT '{}'::tocsin.event_input[], steps tocsin.step_input[] DEFAULT '{}'::tocsin.step_input[], expected_epoch bigint DEFAULT NULL::bigint, calculated tocsin.calculated_input[] DEFAULT '{}'::tocsin.calculated_input[], observations tocsin.member_observation_input[] DEFAULT NULL::tocsin.member_observation_input[])
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
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
    lock table tocsin.lock_log in share row exclusive mode;
    -- A new statement, so a new snapshot: it sees what the previous holder of the lock committed.
    select h.epoch, greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into current_epoch, head from tocsin.log_head h;
    if expected_epoch is not null and expected_epoch <> current_epoch then
        raise exception 'deposed: epoch % was superseded by %', expected_epoch, current_epoch
            using errcode = 'TS001';
    end if;
    if exists (select from tocsin.system_health) then
        perform tocsin.record_observations(events, calculated, observations);
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
                                        correlation_id, source_event_id, result, priority)
        select head + cardinality(events) + s.position, s.id, s.action_id, s.name, coalesce(s.owner, ''), s.step,
               s.attempt, s.state, at, s.correlation_id, s.source_event_id, coalesce(s.result, '{}'),
               (select a.priority from tocsin.action a where a.id = s.action_id)
        from unnest(steps) with ordinality as s (id, action_id, name, owner, step, attempt, state, correlation_id,
                                                 source_event_id, result, position);
    end if;
    if cardinality(calculated) > 0 then
        insert into tocsin.datapoint_calculated (seq, id, owner, key, ts, recorded_at, kind, payload,
                                                 correlation_id, epoch)
        select head + cardinality(events) + cardinality(steps) + c.position, c.id, c.owner, c.key, c.ts, at,
               c.kind, coalesce(c.payload, '{}'), coalesce(c.correlation_id, c.id), expected_epoch
        from unnest(calculated) with ordinality as c (id, owner, key, ts, kind, correlation_id, payload, position);
    end if;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    values (head + records, head + 1, at, expected_epoch);
    perform pg_notify('tocsin_log', '');
    return head + records;
end
$function$;
comment on function tocsin.append(tocsin.event_input[],tocsin.step_input[],bigint,tocsin.calculated_input[],tocsin.member_observation_input[]) is 'Appends records to the record log; the only way to write it. Call it last in the transaction: it holds the lock of the log until the commit. Returns the last seq. With expected_epoch it raises TS001 if another clock has taken over. Stores the observations about members of systems; if observations is null, it derives them from the records.';
revoke all on function tocsin.append(tocsin.event_input[],tocsin.step_input[],bigint,tocsin.calculated_input[],tocsin.member_observation_input[]) from public;

CREATE OR REPLACE FUNCTION tocsin.arm(kind text, ref text, key text, fire_at timestamp with time zone, payload jsonb DEFAULT '{}'::jsonb, generation bigint DEFAULT 1)
 RETURNS boolean
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
    is_new boolean;
begin
    if arm.kind = 'schedule-tick' then
        raise exception 'schedule ticks are armed by their schedule only: put the schedule'
            using errcode = 'TS002';
    end if;
    if not tocsin.is_readable(arm.payload) then
        raise exception 'the payload of timer % is no JSON object, or has a number of more than 4300 digits: '
            'send an object, and such a number as a text', quote_literal(arm.ref) using errcode = 'TS002';
    end if;
    if arm.fire_at not between '0001-01-03 00:00Z' and '9999-12-30 00:00Z' then
        raise exception 'fire_at % is not an instant of the years 1 to 9999: give one', arm.fire_at
            using errcode = 'TS002';
    end if;
    insert into tocsin.timer as t (kind, ref, key, fire_at, nominal_at, payload, generation)
    values (arm.kind, arm.ref, arm.key, greatest(arm.fire_at, tocsin.instant()), arm.fire_at,
            arm.payload, arm.generation)
    on conflict on constraint timer_pkey do update
        set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, payload = excluded.payload,
            generation = excluded.generation, attempts = 0, last_error = null, parked_at = null
    returning (t.xmax = 0) into is_new;
    return is_new;
end
$function$;
comment on function tocsin.arm(text,text,text,timestamp with time zone,jsonb,bigint) is 'Arms a timer in the transaction of the caller. (kind, ref, key) is its identity: arming again moves it. An instant in the past is due at once; nominal_at keeps it. Returns true if the timer is new. Ticks are armed by their schedule only.';
revoke all on function tocsin.arm(text,text,text,timestamp with time zone,jsonb,bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.audit_digest(a tocsin.audit)
 RETURNS bytea
 LANGUAGE sql
 STABLE
AS $function$
    select sha256(convert_to(jsonb_build_array(
        a.id, extract(epoch from a.at), a.who, a.claimed, a.via, a.verb, a.kind, a.owner, a.name, a.old, a.new)::text,
        'UTF8'))
$function$;
comment on function tocsin.audit_digest(tocsin.audit) is 'Digest of a row of the audit. tocsin/core/sql/list_seals.sql computes the same without this function.';
revoke all on function tocsin.audit_digest(tocsin.audit) from public;

CREATE OR REPLACE FUNCTION tocsin.begin_erasure(seq bigint, arrived_until timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    insert into tocsin.erasure (seq, owner, arrived_until)
    select e.seq, e.owner, begin_erasure.arrived_until
    from tocsin.event e
    where e.seq = begin_erasure.seq and e.type = 'owner-forgotten';
    if not found then
        raise exception 'record % is not an event owner-forgotten', begin_erasure.seq using errcode = 'TS002';
    end if;
end
$function$;
comment on function tocsin.begin_erasure(bigint,timestamp with time zone) is 'Begins the erasure that an event owner-forgotten announces, in the transaction of the event.';
revoke all on function tocsin.begin_erasure(bigint,timestamp with time zone) from public;

CREATE OR REPLACE FUNCTION tocsin.begin_session(login_digest bytea, session_digest bytea, expires_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    login record;
begin
    update tocsin.api_login l set used_at = tocsin.instant()
    where l.digest = login_digest and l.used_at is null and l.expires_at > tocsin.instant()
    returning l.name, l.grants into login;
    if login.name is null then
        return null;
    end if;
    perform tocsin.open_session(login.name, session_digest, login.grants, 'link', begin_session.expires_at);
    return login.name;
end
$function$;
comment on function tocsin.begin_session(bytea,bytea,timestamp with time zone) is 'Uses a login link and begins the session of its principal. Null if the link is unknown, expired or used.';
revoke all on function tocsin.begin_session(bytea,bytea,timestamp with time zone) from public;

CREATE OR REPLACE FUNCTION tocsin.cancel(kind text, ref text, key text DEFAULT ''::text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
begin
    if cancel.kind = 'schedule-tick' then
        raise exception 'schedule ticks are cancelled with their schedule: cancel the schedule'
            using errcode = 'TS002';
    end if;
    delete from tocsin.timer t where t.kind = cancel.kind and t.ref = cancel.ref and t.key = cancel.key;
    return found;
end
$function$;
comment on function tocsin.cancel(text,text,text) is 'Cancels one timer in the transaction of the caller. Waits for a fire in progress. Returns false if there is no such timer: it has fired, or it was never armed.';
revoke all on function tocsin.cancel(text,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.cancel_all(ref text, kind text DEFAULT NULL::text)
 RETURNS bigint
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
    cancelled bigint;
begin
    if cancel_all.kind = 'schedule-tick' then
        raise exception 'schedule ticks are cancelled with their schedule: cancel the schedule'
            using errcode = 'TS002';
    end if;
    with victims as (
        select t.kind, t.ref, t.key
        from tocsin.timer t
        where t.ref = cancel_all.ref
          and t.kind in ('for-sustain', 'runbook-wait', 'watchdog')
          and (cancel_all.kind is null or t.kind = cancel_all.kind)
        order by t.kind, t.ref, t.key
        for update
    )
    delete from tocsin.timer t using victims v where (t.kind, t.ref, t.key) = (v.kind, v.ref, v.key);
    get diagnostics cancelled = row_count;
    return cancelled;
end
$function$;
comment on function tocsin.cancel_all(text,text) is 'Cancels the timers of one ref, of one kind or of all kinds but schedule-tick. Returns how many.';
revoke all on function tocsin.cancel_all(text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.check_generation(before tocsin.schedule, if_generation bigint)
 RETURNS void
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    if check_generation.if_generation <> (check_generation.before).generation then
        raise exception 'schedule % of owner % is at generation %, not %: read it again before you change it',
            quote_literal((check_generation.before).name), quote_literal((check_generation.before).owner),
            (check_generation.before).generation, check_generation.if_generation using errcode = 'TS004';
    end if;
end
$function$;
comment on function tocsin.check_generation(tocsin.schedule,bigint) is 'Raises TS004 if a schedule is not at the generation that the caller has read. Null: any.';
revoke all on function tocsin.check_generation(tocsin.schedule,bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.check_grants(grants text[])
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
    entry text;
begin
    if coalesce(cardinality(grants), 0) not between 1 and 50 then
        raise exception 'a principal needs 1 to 50 grants' using errcode = 'TS002';
    end if;
    foreach entry in array grants loop
        if entry !~ '^(viewer|responder|author|approver|sender|operator|admin):[^*]{0,128}[*]?$'
            or entry ~ ':$' then
            raise exception '% is not a grant: write role:owner or role:beginning*', quote_literal(entry)
                using errcode = 'TS002';
        end if;
    end loop;
end
$function$;
comment on function tocsin.check_grants(text[]) is 'Raises TS002 unless each text is a role, a colon and a pattern of owners.';
revoke all on function tocsin.check_grants(text[]) from public;

CREATE OR REPLACE FUNCTION tocsin.check_schedule(name text, payload jsonb, action text, retry jsonb)
 RETURNS void
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET enable_seqscan TO 'off'
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
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
$function$;
comment on function tocsin.check_schedule(text,jsonb,text,jsonb) is 'Raises TS002 if a schedule of a service cannot be stored: its payload, an action that is not applied, or a retry that is not understood. Called by the functions tocsin.schedule_*.';
revoke all on function tocsin.check_schedule(text,jsonb,text,jsonb) from public;

CREATE OR REPLACE FUNCTION tocsin.claim_prune()
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    key bigint := ('x' || left(replace(gen_random_uuid()::text, '-', ''), 12))::bit(48)::bigint;
begin
    lock table tocsin.lock_prune in share row exclusive mode;
    if tocsin.is_pruning() or not pg_try_advisory_lock(key) then
        return false;
    end if;
    update tocsin.prune_report set claim_key = key, claim_pid = pg_backend_pid();
    return true;
end
$function$;
comment on function tocsin.claim_prune() is 'Allows the session to run retention until it ends or calls tocsin.release_prune. False if another session does.';
revoke all on function tocsin.claim_prune() from public;

CREATE OR REPLACE FUNCTION tocsin.deadline_after_gaps(in_partition integer, arrived_at timestamp with time zone, within_us bigint)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
 SET "TimeZone" TO 'UTC'
AS $function$
declare
    deadline timestamptz := arrived_at + within_us * interval '1 microsecond';
    is_first boolean := true;
    gap record;
begin
    for gap in
        select g.began_at, g.ended_at
        from tocsin.arrival_gap g
        where g.partition = in_partition and g.began_at >= arrived_at
        order by g.began_at
    loop
        exit when gap.began_at >= deadline;
        deadline := case when is_first then gap.ended_at + within_us * interval '1 microsecond'
                         else deadline + (gap.ended_at - gap.began_at) end;
        is_first := false;
    end loop;
    return deadline;
end
$function$;
comment on function tocsin.deadline_after_gaps(integer,timestamp with time zone,bigint) is 'The deadline of a series, extended by the arrival gaps of its partition. rules/alarms/staleness.py defines it.';
revoke all on function tocsin.deadline_after_gaps(integer,timestamp with time zone,bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.drop_partition(partition_name text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $function$
declare
    parent text;
    start text := substring(partition_name from '_([0-9]+)$');
    is_old boolean;
begin
    select p.relname into parent
    from pg_class c
    join pg_inherits i on i.inhrelid = c.oid
    join pg_class p on p.oid = i.inhparent
    where c.relnamespace = 'tocsin'::regnamespace and c.relname = partition_name;
    if parent is null then
        return false;
    end if;
    if parent = 'datapoint' then
        is_old := to_date(start, 'YYYYMMDD') < (tocsin.instant() - interval '1 day')::date;
    else
        select start::bigint + h.partition_size <= h.horizon into is_old from tocsin.log_head h;
    end if;
    if not is_old then
        raise exception 'partition % has records that are kept: raise the horizon first', partition_name
            using errcode = 'TS005';
    end if;
    execute format('alter table tocsin.%I detach partition tocsin.%I', parent, partition_name);
    execute format('drop table tocsin.%I', partition_name);
    return true;
end
$function$;
comment on function tocsin.drop_partition(text) is 'Drops a partition of the log below the horizon, or of datapoints before yesterday. For a clock that does not own the schema; the owner detaches concurrently.';
revoke all on function tocsin.drop_partition(text) from public;

CREATE OR REPLACE FUNCTION tocsin.duration_text(milliseconds bigint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select concat(
        nullif(milliseconds / 604800000, 0) || 'w',
        nullif(milliseconds % 604800000 / 86400000, 0) || 'd',
        nullif(milliseconds % 86400000 / 3600000, 0) || 'h',
        nullif(milliseconds % 3600000 / 60000, 0) || 'm',
        nullif(milliseconds % 60000 / 1000, 0) || 's',
        nullif(milliseconds % 1000, 0) || 'ms')
$function$;
comment on function tocsin.duration_text(bigint) is 'A positive duration as schemas/values/duration.py writes it, such as 1h30m.';
revoke all on function tocsin.duration_text(bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.end_erasure(seq bigint, counts jsonb)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    update tocsin.erasure x set ended_at = tocsin.instant(), counts = end_erasure.counts
    where x.seq = end_erasure.seq;
$function$;
comment on function tocsin.end_erasure(bigint,jsonb) is 'Notes that an erasure is complete.';
revoke all on function tocsin.end_erasure(bigint,jsonb) from public;

CREATE OR REPLACE FUNCTION tocsin.end_session(digest bytea)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    ended text;
begin
    delete from tocsin.api_session s where s.digest = end_session.digest returning s.name into ended;
    if ended is null then
        return false;
    end if;
    perform tocsin.write_audit(ended, 'api', 'end', 'session', '', ended, null, null);
    return true;
end
$function$;
comment on function tocsin.end_session(bytea) is 'Ends a session. False if there is none.';
revoke all on function tocsin.end_session(bytea) from public;

CREATE OR REPLACE FUNCTION tocsin.erase_audit(erasure_seq bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    erased bigint;
begin
    -- A row that is not chained yet gets its digest first: the chain proves what was there.
    while tocsin.seal_audit() > 0 loop
    end loop;
    with redacted as (
        update tocsin.audit a set old = null, new = null
        from tocsin.erasure x
        where x.seq = erasure_seq and a.owner = x.owner and a.kind <> 'owner'
          and (a.old is not null or a.new is not null)
        returning a.id, tocsin.audit_digest(a) as digest
    )
    update tocsin.audit_seal s set erased_digest = r.digest
    from redacted r
    where s.audit_id = r.id;
    get diagnostics erased = row_count;
    return erased;
end
$function$;
comment on function tocsin.erase_audit(bigint) is 'Removes old and new contents from the audit rows about a forgotten owner. Who did what and when stays, and `tocsin audit verify` still detects any other change. Returns how many had any.';
revoke all on function tocsin.erase_audit(bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.erase_kept_events(erasure_seq bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    erased bigint;
begin
    update tocsin.event_kept k set payload = '{}'
    from tocsin.erasure x
    where x.seq = erasure_seq and k.owner = x.owner and k.seq < x.seq and k.payload <> '{}'
      and k.type <> 'owner-forgotten';
    get diagnostics erased = row_count;
    return erased;
end
$function$;
comment on function tocsin.erase_kept_events(bigint) is 'Removes the contents of the kept events of a forgotten owner. Returns how many had any.';
revoke all on function tocsin.erase_kept_events(bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.erase_records(erasure_seq bigint, first bigint, last bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    forgotten text := (select e.owner from tocsin.erasure e where e.seq = erasure_seq);
    highest bigint := least(last, erasure_seq - 1);
    erased bigint := 0;
    counted bigint;
begin
    update tocsin.ingest_event i set digest = null
    from tocsin.event e
    where e.seq between first and highest and e.owner = forgotten and e.origin = 'external'
      and i.event_id = e.id and i.digest is not null;
    update tocsin.event e set payload = '{}'
    where e.seq between first and highest and e.owner = forgotten and e.payload <> '{}'
      and e.type <> 'owner-forgotten';
    get diagnostics erased = row_count;
    update tocsin.action_step s set result = '{}'
    where s.seq between first and highest and s.owner = forgotten and s.result <> '{}';
    get diagnostics counted = row_count;
    erased := erased + counted;
    update tocsin.datapoint_calculated d set payload = '{}'
    where d.seq between first and highest and d.owner = forgotten and d.payload <> '{}';
    get diagnostics counted = row_count;
    return erased + counted;
end
$function$;
comment on function tocsin.erase_records(bigint,bigint,bigint) is 'Removes the contents of records of a forgotten owner in a range of seqs, before its erasure. Returns how many had any. The digests of external events go too, because short contents can be found by trying.';
revoke all on function tocsin.erase_records(bigint,bigint,bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.extend_datapoints(first date, last date)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    day date;
    part text;
    added integer := 0;
begin
    if last - first > 366 then
        raise exception 'from % to % is more than a year: make fewer partitions at once', first, last
            using errcode = 'TS002';
    end if;
    lock table tocsin.lock_partitions in share row exclusive mode;
    for day in select generate_series(first, last, interval '1 day')::date loop
        part := 'datapoint_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass('tocsin.' || quote_ident(part)) is not null;
        execute format('create table tocsin.%I (like tocsin.datapoint including defaults including constraints'
                       ' including indexes)', part);
        execute format('alter table tocsin.datapoint attach partition tocsin.%I for values from (%L) to (%L)', part,
                       to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00', to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
        added := added + 1;
    end loop;
    return added;
end
$function$;
comment on function tocsin.extend_datapoints(date,date) is 'Creates the partitions of tocsin.datapoint for the UTC days from first to last. Returns how many were added. Called by workers; runs as the owner, because services own no table.';
revoke all on function tocsin.extend_datapoints(date,date) from public;

CREATE OR REPLACE FUNCTION tocsin.extend_log(ahead integer DEFAULT 2)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    size bigint;
    head bigint;
    start bigint;
    part text;
    log_table text;
    is_new boolean;
    added integer := 0;
begin
    lock table tocsin.lock_partitions in share row exclusive mode;
    select h.partition_size, greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into size, head from tocsin.log_head h;
    for range_number in (head / size) .. (head / size + ahead) loop
        start := range_number * size;
        is_new := false;
        foreach log_table in array tocsin.log_tables() loop
            part := format('%s_%s', log_table, start);
            continue when to_regclass('tocsin.' || quote_ident(part)) is not null;
            execute format(
                'create table tocsin.%I (like tocsin.%I including defaults including constraints including indexes)',
                part, log_table);
            execute format('alter table tocsin.%I add unique (id)', part);
            perform tocsin.guard(part);
            execute format('alter table tocsin.%I attach partition tocsin.%I for values from (%s) to (%s)',
                           log_table, part, start, start + size);
            is_new := true;
        end loop;
        added := added + is_new::integer;
    end loop;
    return added;
end
$function$;
comment on function tocsin.extend_log(integer) is 'Creates the partitions of the log tables up to the given number of ranges beyond the head. Returns how many ranges were added. Called by the clock.';
revoke all on function tocsin.extend_log(integer) from public;

CREATE OR REPLACE FUNCTION tocsin.find_answer(caller text, key text, digest bytea, OUT outcome text, OUT status integer, OUT headers jsonb, OUT body bytea)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    stored tocsin.api_answer;
    secret text := (select encode(k.key, 'hex') from tocsin.instance_key k);
begin
    -- Held until the transaction of the effect ends.
    if not pg_try_advisory_xact_lock(hashtextextended(secret || chr(31) || caller || chr(31) || key, 27)) then
        outcome := 'under-way';
        return;
    end if;
    select * into stored from tocsin.api_answer a
    where a.caller = find_answer.caller and a.key = find_answer.key;
    if not found then
        outcome := 'new';
    elsif stored.digest <> find_answer.digest then
        outcome := 'other';
    else
        outcome := 'replayed';
        status := stored.status;
        headers := stored.headers;
        body := stored.body;
    end if;
end
$function$;
comment on function tocsin.find_answer(text,text,bytea) is 'The answer under an Idempotency-Key: new, replayed, other (another request has the key) or under-way. Locks the key until the end of the transaction.';
revoke all on function tocsin.find_answer(text,text,bytea) from public;

CREATE OR REPLACE FUNCTION tocsin.first_hole(after_seq bigint)
 RETURNS TABLE(first_missing bigint, last_missing bigint)
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
    records text;
begin
    select string_agg(format('select seq as first, seq as last from tocsin.%I where seq > $1', t.name), ' union all ')
        into records from unnest(tocsin.log_tables()) as t (name);
    return query execute format(
        'select p.last + 1, p.next - 1 from ('
        '    select i.last, lead(i.first) over (order by i.first) as next from ('
        '        %s'
        '        union all select greatest(from_seq, $1 + 1), until_seq from tocsin.log_gap where until_seq > $1'
        '        union all select $1, $1'
        '        union all select h.floor + 1, h.floor + 1 from (select greatest(floor, coalesce('
        '            (select max(last_seq) from tocsin.log_commit), 0)) as floor from tocsin.log_head) h where h.floor >= $1'
        '    ) i'
        ') p where p.next > p.last + 1 order by 1 limit 1', records) using after_seq;
end
$function$;
comment on function tocsin.first_hole(bigint) is 'First gap after a seq that is in neither the log tables nor tocsin.log_gap. Returns no row if there is none. Walks the primary keys in order and stops at the first gap.';
revoke all on function tocsin.first_hole(bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.forget_commits(most integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    gone bigint;
begin
    delete from tocsin.log_commit c
    where c.last_seq in (
        select o.last_seq from tocsin.log_commit o, tocsin.log_head h
        where o.last_seq < h.horizon
        order by o.last_seq
        limit most);
    get diagnostics gone = row_count;
    return gone;
end
$function$;
comment on function tocsin.forget_commits(integer) is 'Removes rows of tocsin.log_commit below the horizon, at most the given number. Returns how many.';
revoke all on function tocsin.forget_commits(integer) from public;

CREATE OR REPLACE FUNCTION tocsin.guard(log_table text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    execute format('alter table tocsin.%I enable row level security', log_table);
    execute format('create policy readable on tocsin.%I for select using (true)', log_table);
    execute format(
        'create trigger guard before insert or update or delete or truncate on tocsin.%I for each statement '
        'when (current_setting(''is_superuser'') = ''off'' '
        '      and (current_user = session_user or current_setting(''role'') <> ''none'')) '
        'execute function tocsin.refuse_direct_write()',
        log_table);
end
$function$;
comment on function tocsin.guard(text) is 'Protects one table of the log, or one of its partitions, against direct writes. Reading stays a matter of grants.';
revoke all on function tocsin.guard(text) from public;

CREATE OR REPLACE FUNCTION tocsin.is_member(role_name text)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
    select exists (
        select from pg_roles r where r.rolname = role_name and pg_has_role(session_user, r.oid, 'member'))
$function$;
comment on function tocsin.is_member(text) is 'Whether the session belongs to a role or one of its members; false if there is no such role.';
revoke all on function tocsin.is_member(text) from public;

CREATE OR REPLACE FUNCTION tocsin.is_pruning()
 RETURNS boolean
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select exists (
        select from tocsin.prune_report r
        join pg_locks l on l.pid = r.claim_pid
            and (l.classid::bigint << 32) | l.objid::bigint = r.claim_key
        where l.locktype = 'advisory' and l.granted and l.objsubid = 1
          and l.database = (select d.oid from pg_database d where d.datname = current_database()))
$function$;
comment on function tocsin.is_pruning() is 'Whether a run of retention is in progress.';
revoke all on function tocsin.is_pruning() from public;

CREATE OR REPLACE FUNCTION tocsin.is_reserved_type(type text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((type ~ '^(alarm|schedule|rules|notification|silence|maintenance|inhibit|action|pipeline|system|cdc|quota|heartbeat)-'::text) OR (type = ANY (ARRAY['series-forgotten'::text, 'log-pruned'::text, 'log-gap-recorded'::text, 'stream-rebuilt'::text, 'owner-forgotten'::text])));
comment on function tocsin.is_reserved_type(text) is 'Whether only Tocsin itself writes events of a type. schemas/values/event_types.py lists the same types.';
revoke all on function tocsin.is_reserved_type(text) from public;

CREATE OR REPLACE FUNCTION tocsin.is_trusted()
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
    select current_setting('is_superuser') = 'on'
        or tocsin.is_member('tocsin_api')
        or (select pg_has_role(session_user, n.nspowner, 'member') from pg_namespace n where n.nspname = 'tocsin')
$function$;
comment on function tocsin.is_trusted() is 'Whether the session may name the principal that it acts for: the API, which has authenticated it, and the owner of the schema, who could write anything.';
revoke all on function tocsin.is_trusted() from public;

CREATE OR REPLACE FUNCTION tocsin.keep_answer(caller text, key text, digest bytea, status integer, headers jsonb, body bytea)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    delete from tocsin.api_answer a
    where (a.caller, a.key) in (
        select old.caller, old.key from tocsin.api_answer old
        where old.answered_at < tocsin.instant() - interval '1 day'
        order by old.answered_at
        limit 20
        for update skip locked);
    insert into tocsin.api_answer (caller, key, digest, status, headers, body)
    values (keep_answer.caller, keep_answer.key, keep_answer.digest, keep_answer.status, keep_answer.headers,
            keep_answer.body);
$function$;
comment on function tocsin.keep_answer(text,text,bytea,integer,jsonb,bytea) is 'Stores an answer under its Idempotency-Key, in the transaction of its effect. Removes some that are older than a day.';
revoke all on function tocsin.keep_answer(text,text,bytea,integer,jsonb,bytea) from public;

CREATE OR REPLACE FUNCTION tocsin.link_signature(alarm_id uuid, expires_s bigint, channel text)
 RETURNS text
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select left(encode(sha256(k.key || sha256(
        k.key || 'link'::bytea || uuid_send(link_signature.alarm_id) || int8send(link_signature.expires_s)
        || convert_to(link_signature.channel, 'UTF8'))), 'hex'), 40)
    from tocsin.instance_key k
$function$;
comment on function tocsin.link_signature(uuid,bigint,text) is 'Signature of a link that acknowledges an alarm until an instant: 160 bits of a keyed hash.';
revoke all on function tocsin.link_signature(uuid,bigint,text) from public;

CREATE OR REPLACE FUNCTION tocsin.list_sessions(most integer)
 RETURNS TABLE(id uuid, name text, grants text[], source text, created_at timestamp with time zone, expires_at timestamp with time zone, last_used_at timestamp with time zone)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select s.id, s.name, s.grants, s.source, s.created_at, s.expires_at, s.last_used_at
    from tocsin.api_session s
    where s.expires_at > tocsin.instant() and s.last_used_at > tocsin.instant() - interval '12 hours'
    order by s.created_at desc, s.id
    limit most
$function$;
comment on function tocsin.list_sessions(integer) is 'The live sessions without their digests, the newest first.';
revoke all on function tocsin.list_sessions(integer) from public;

CREATE OR REPLACE FUNCTION tocsin.list_tokens()
 RETURNS TABLE(id uuid, name text, hint text, grants text[], created_by text, created_at timestamp with time zone, expires_at timestamp with time zone, last_used_at timestamp with time zone, revoked_at timestamp with time zone, revoked_by text)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select t.id, t.name, t.hint, t.grants, t.created_by, t.created_at, t.expires_at, t.last_used_at,
           t.revoked_at, t.revoked_by
    from tocsin.api_token t
    order by t.created_at, t.id
$function$;
comment on function tocsin.list_tokens() is 'All tokens without their digests, the oldest first.';
revoke all on function tocsin.list_tokens() from public;

CREATE OR REPLACE FUNCTION tocsin.lock_health()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    lock table tocsin.lock_health in share row exclusive mode;
end
$function$;
comment on function tocsin.lock_health() is 'Lock for writing health until the transaction ends. An apply waits for the worker that holds it.';
revoke all on function tocsin.lock_health() from public;

CREATE OR REPLACE FUNCTION tocsin.lock_log()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    lock table tocsin.lock_log in share row exclusive mode;
end
$function$;
comment on function tocsin.lock_log() is 'Locks the record log against every other append until the transaction ends. Called by an apply.';
revoke all on function tocsin.lock_log() from public;

CREATE OR REPLACE FUNCTION tocsin.lock_rules()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    lock table tocsin.lock_rules in share row exclusive mode;
end
$function$;
comment on function tocsin.lock_rules() is 'Lets one apply at a time change the rule set, until its transaction ends.';
revoke all on function tocsin.lock_rules() from public;

CREATE OR REPLACE FUNCTION tocsin.lock_tz_version()
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    lock table tocsin.lock_tz_version in share row exclusive mode;
end
$function$;
comment on function tocsin.lock_tz_version() is 'Waits until no open edit of a schedule has read the stored tz version, and blocks later edits until the transaction ends. Called by the clock.';
revoke all on function tocsin.lock_tz_version() from public;

CREATE OR REPLACE FUNCTION tocsin.log_tables()
 RETURNS text[]
 LANGUAGE sql
 STABLE
AS $function$
    select array_agg(c.relname::text order by c.relname)
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'seq' and not a.attisdropped
    where c.relnamespace = 'tocsin'::regnamespace and c.relkind = 'p'
$function$;
comment on function tocsin.log_tables() is 'Names of the tables that share the sequence of the record log.';
revoke all on function tocsin.log_tables() from public;

CREATE OR REPLACE FUNCTION tocsin.message_token(action_id uuid, step integer)
 RETURNS text
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select left(encode(sha256(k.key || sha256(
        k.key || 'message'::bytea || uuid_send(message_token.action_id) || int4send(message_token.step))), 'hex'), 32)
    from tocsin.instance_key k
$function$;
comment on function tocsin.message_token(uuid,integer) is 'Nats-Msg-Id of the message that a step sends: 128 bits of a keyed hash, the same for every attempt.';
revoke all on function tocsin.message_token(uuid,integer) from public;

CREATE OR REPLACE FUNCTION tocsin.move_records(after_seq bigint, shift bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    log_table text;
    of_table bigint;
    moved bigint := 0;
begin
    foreach log_table in array tocsin.log_tables() loop
        execute format('create temporary table moving on commit drop as select * from tocsin.%I where seq > %s',
                       log_table, after_seq);
        execute format('delete from tocsin.%I where seq > %s', log_table, after_seq);
        execute format('update moving set seq = seq + %s', shift);
        execute format('insert into tocsin.%I select * from moving', log_table);
        get diagnostics of_table = row_count;
        moved := moved + of_table;
        drop table moving;
    end loop;
    create temporary table moving on commit drop as select * from tocsin.log_commit where last_seq > after_seq;
    delete from tocsin.log_commit where last_seq > after_seq;
    -- A commit that was published in part keeps that part.
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    select after_seq, m.first_seq, m.recorded_at, m.epoch from moving m where m.first_seq <= after_seq;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    select m.last_seq + shift, greatest(m.first_seq, after_seq + 1) + shift, m.recorded_at, m.epoch from moving m;
    drop table moving;
    update tocsin.log_gap set from_seq = from_seq + shift, until_seq = until_seq + shift where from_seq > after_seq;
    -- A version begins and ends at a record of its own transaction, which moved.
    update tocsin.rule_version set from_seq = from_seq + shift where from_seq > after_seq;
    update tocsin.rule_version set until_seq = until_seq + shift where until_seq > after_seq;
    create temporary table moving on commit drop as select * from tocsin.rule_cutover where rules_seq > after_seq;
    delete from tocsin.rule_cutover where rules_seq > after_seq;
    update moving set rules_seq = rules_seq + shift;
    insert into tocsin.rule_cutover select * from moving;
    drop table moving;
    update tocsin.calc_position set rules_seq = rules_seq + shift where rules_seq > after_seq;
    -- A step that waits for an event began to wait at a record of its own transaction.
    update tocsin.action_wait w set after_seq = w.after_seq + shift where w.after_seq > move_records.after_seq;
    return moved;
end
$function$;
comment on function tocsin.move_records(bigint,bigint) is 'Moves all records after a seq by shift, with everything that refers to their seq. Returns how many. Called by tocsin.adopt only, under the lock of the log.';
revoke all on function tocsin.move_records(bigint,bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.open_session(name text, digest bytea, grants text[], source text, expires_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    perform tocsin.check_grants(open_session.grants);
    delete from tocsin.api_session s
    where s.expires_at < tocsin.instant() or s.last_used_at < tocsin.instant() - interval '12 hours';
    insert into tocsin.api_session (digest, name, grants, source, expires_at)
    values (open_session.digest, open_session.name, open_session.grants, open_session.source,
            open_session.expires_at);
    perform tocsin.write_audit(open_session.name, 'api', 'begin', 'session', '', open_session.name, null,
        jsonb_build_object('grants', open_session.grants, 'source', open_session.source));
end
$function$;
comment on function tocsin.open_session(text,bytea,text[],text,timestamp with time zone) is 'Begins a session of a person that the API has authenticated.';
revoke all on function tocsin.open_session(text,bytea,text[],text,timestamp with time zone) from public;

CREATE OR REPLACE FUNCTION tocsin.own_patterns()
 RETURNS text[]
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select case when tocsin.is_trusted() then array['*'] else coalesce(array_agg(g.pattern), '{}') end
    from tocsin.owner_grant g
    where tocsin.is_member(g.grantee)
$function$;
comment on function tocsin.own_patterns() is 'Patterns of the owners that the session may use.';
revoke all on function tocsin.own_patterns() from public;

CREATE OR REPLACE FUNCTION tocsin.owner_matches(owner text, patterns text[])
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
    select exists (
        select from unnest(patterns) as p (pattern)
        where case when right(p.pattern, 1) = '*' then starts_with(owner, left(p.pattern, -1)) else owner = p.pattern end)
$function$;
comment on function tocsin.owner_matches(text,text[]) is 'Whether an owner is named by a pattern: an owner, or the beginning of one followed by *. The same as tocsin/policy/decision.py.';
revoke all on function tocsin.owner_matches(text,text[]) from public;

CREATE OR REPLACE FUNCTION tocsin.principal(claimed text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
    select case when tocsin.is_trusted() then coalesce(nullif(claimed, ''), session_user) else session_user end
$function$;
comment on function tocsin.principal(text) is 'Who acts: the role of the session. A name that the caller claims counts only from a trusted session.';
revoke all on function tocsin.principal(text) from public;

CREATE OR REPLACE FUNCTION tocsin.protect_rows(table_name text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    execute format('alter table tocsin.%I enable row level security', table_name);
    if not exists (select from pg_policies p
                   where p.schemaname = 'tocsin' and p.tablename = table_name and p.policyname in ('readable', 'granted'))
    then
        execute format('create policy granted on tocsin.%I using (true) with check (true)', table_name);
    end if;
    execute format('drop policy if exists of_owner on tocsin.%I', table_name);
    execute format('create policy of_owner on tocsin.%I as restrictive for select to tocsin_reader '
                   'using (tocsin.owner_matches(owner, (select tocsin.own_patterns())))', table_name);
end
$function$;
comment on function tocsin.protect_rows(text) is 'Lets tocsin_reader and its members see only rows whose owner is granted to them. Other roles see what they may select.';
revoke all on function tocsin.protect_rows(text) from public;

CREATE OR REPLACE FUNCTION tocsin.prune_audit(ids bigint[])
 RETURNS SETOF bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    perform tocsin.seal_audit();
    update tocsin.audit_seal s set pruned_at = tocsin.instant() where s.audit_id = any (ids);
    return query
        delete from tocsin.audit a
        where a.id = any (ids) and exists (select from tocsin.audit_seal s where s.audit_id = a.id)
        returning a.id;
    -- The oldest seals are needed no longer: the first that stays has the hash before it.
    delete from tocsin.audit_seal s
    where s.position < (
        select coalesce(min(k.position), (select max(l.position) from tocsin.audit_seal l))
        from tocsin.audit_seal k where k.pruned_at is null);
end
$function$;
comment on function tocsin.prune_audit(bigint[]) is 'Removes rows of the audit, and notes in the chain that retention did it. Returns the ids of the rows.';
revoke all on function tocsin.prune_audit(bigint[]) from public;

CREATE OR REPLACE FUNCTION tocsin.raise_epoch(expected_epoch bigint, new_holder text, pid integer, backend_start timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    taken bigint;
begin
    lock table tocsin.lock_log in share row exclusive mode;
    update tocsin.log_head h
    set epoch = h.epoch + 1, holder = new_holder, holder_pid = pid, holder_backend_start = backend_start,
        taken_at = tocsin.instant()
    where h.epoch = expected_epoch
    returning h.epoch into taken;
    return taken;
end
$function$;
comment on function tocsin.raise_epoch(bigint,text,integer,timestamp with time zone) is 'Writing part of tocsin.take_over: log_head belongs to the log, so it runs as the owner.';
revoke all on function tocsin.raise_epoch(bigint,text,integer,timestamp with time zone) from public;

CREATE OR REPLACE FUNCTION tocsin.raise_horizon(until_seq bigint, per_rule integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    kept bigint;
    head bigint;
begin
    select max(c.last_seq) into head from tocsin.log_commit c;
    if until_seq > coalesce(head, 0) then
        raise exception 'the horizon cannot be raised to %: the log is at %', until_seq, coalesce(head, 0)
            using errcode = 'TS005';
    end if;
    insert into tocsin.event_kept
    select e.*
    from (select distinct o.rule from tocsin.event o where o.rule <> '' and o.seq < until_seq) r
    cross join lateral (
        select count(*) as newer
        from (select from tocsin.event n where n.rule = r.rule and n.seq >= until_seq limit per_rule) n
    ) c
    cross join lateral (
        select * from tocsin.event o
        where o.rule = r.rule and o.seq < until_seq
        order by o.seq desc
        limit greatest(per_rule - c.newer, 0)
    ) e
    on conflict do nothing;
    get diagnostics kept = row_count;
    delete from tocsin.event_kept k
    using (
        select o.seq, row_number() over (partition by o.rule order by o.seq desc) + (
            select count(*) from (select from tocsin.event n where n.rule = o.rule and n.seq >= until_seq limit per_rule) n
        ) as place
        from tocsin.event_kept o
    ) p
    where p.seq = k.seq and p.place > per_rule;
    update tocsin.log_head h set horizon = until_seq where h.horizon < until_seq;
    return kept;
end
$function$;
comment on function tocsin.raise_horizon(bigint,integer) is 'Moves the horizon to until_seq: copies the newest per_rule events of each rule below it to tocsin.event_kept and removes kept events that newer ones replace. Returns how many were copied. Retention calls it before it drops partitions; a second call changes nothing.';
revoke all on function tocsin.raise_horizon(bigint,integer) from public;

CREATE OR REPLACE FUNCTION tocsin.record_gap(first_missing bigint, last_missing bigint, reason text, who text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    head bigint;
    log_table text;
    left_over bigint;
begin
    lock table tocsin.lock_log in share row exclusive mode;
    select greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0))
        into head from tocsin.log_head h;
    if first_missing < 1 or last_missing < first_missing or last_missing > head then
        raise exception 'there is no hole from % to %: the log is at %', first_missing, last_missing, head
            using errcode = 'TS005';
    end if;
    foreach log_table in array tocsin.log_tables() loop
        execute format('select min(seq) from tocsin.%I where seq between %s and %s', log_table, first_missing, last_missing)
            into left_over;
        if left_over is not null then
            raise exception 'there is no hole from % to %: the log has record %', first_missing, last_missing, left_over
                using errcode = 'TS005';
        end if;
    end loop;
    insert into tocsin.log_gap (from_seq, until_seq, reason, who, at)
    values (first_missing, last_missing, record_gap.reason, record_gap.who, tocsin.instant());
end
$function$;
comment on function tocsin.record_gap(bigint,bigint,text,text) is 'Records a gap of the log as lost, so that the publisher passes it. Raises TS005 unless every seq from first_missing to last_missing is missing.';
revoke all on function tocsin.record_gap(bigint,bigint,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.record_observations(events tocsin.event_input[], calculated tocsin.calculated_input[], observations tocsin.member_observation_input[])
 RETURNS void
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
begin
    if observations is not null then
        insert into tocsin.member_observation (owner, at, what, subject, severity, since, keys, instance)
        select o.owner, o.at, o.what, o.subject, o.severity, o.since, coalesce(o.keys, '{}'), coalesce(o.instance, '')
        from unnest(observations) with ordinality as o (owner, at, what, subject, severity, since, keys, instance, position)
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
        insert into tocsin.member_observation (owner, at, what, subject, severity, since, keys, instance)
        select e.owner, e.ts, 'alarm', e.rule, e.severity, a.since,
               case when e.type = 'alarm-opened' then
                   array(select jsonb_array_elements_text(s.state -> 'alarm' -> 'series'))
               else '{}' end,
               a.instance
        from (
            select g.*
            from unnest(events) with ordinality as g (id, ts, origin, type, schedule, rule, action, owner, fire_at, alarm_id,
                                                      severity, source_event_id, correlation_id, payload, position)
            where g.origin = 'derived' and g.type in ('alarm-opened', 'alarm-resolved')
              and exists (select from tocsin.system_member m where m.owner = g.owner)
            offset 0
        ) e
        join tocsin.alarm a on a.id = e.alarm_id
        join tocsin.rule_state s
            on s.event_rule = e.rule and s.owner = e.owner and s.instance = a.instance and s.lane = 'data'
        order by e.position;
    end if;
end
$function$;
comment on function tocsin.record_observations(tocsin.event_input[],tocsin.calculated_input[],tocsin.member_observation_input[]) is 'Stores the observations about owners of members that a worker gives or, if observations is null, those that follow from the records. Called by tocsin.append under the lock of the log, which an apply also takes when it changes members.';
revoke all on function tocsin.record_observations(tocsin.event_input[],tocsin.calculated_input[],tocsin.member_observation_input[]) from public;

CREATE OR REPLACE FUNCTION tocsin.recurrence_at(at timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
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
$function$;
comment on function tocsin.recurrence_at(timestamp with time zone) is 'The stored recurrence of one fire at an instant.';
revoke all on function tocsin.recurrence_at(timestamp with time zone) from public;

CREATE OR REPLACE FUNCTION tocsin.recurrence_text(recurrence jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select case
        when recurrence ? 'at' then 'at is ' || (recurrence ->> 'at')
        when recurrence ? 'every' then 'every is ' || (recurrence ->> 'every')
        when recurrence ? 'cron' then 'cron is ' || (recurrence ->> 'cron')
        else 'rrule is ' || (recurrence ->> 'rrule')
    end
$function$;
comment on function tocsin.recurrence_text(jsonb) is 'A stored recurrence as part of an error.';
revoke all on function tocsin.recurrence_text(jsonb) from public;

CREATE OR REPLACE FUNCTION tocsin.refuse_direct_write()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
    stack text;
begin
    get diagnostics stack = pg_context;
    if exists (
            select from regexp_matches(stack, '\nPL/pgSQL function (?:tocsin\.)?([a-z_]+)\(', 'g') as caller (names)
            join pg_proc p on p.proname = caller.names[1]
            where p.pronamespace = 'tocsin'::regnamespace and p.prosecdef)
    then
        return null;
    end if;
    raise exception 'tocsin.% is written by functions of tocsin alone: append with tocsin.append', tg_table_name
        using errcode = 'insufficient_privilege';
end
$function$;
comment on function tocsin.refuse_direct_write() is 'Trigger function of the guarded tables: rejects every statement but those of the SECURITY DEFINER functions of Tocsin, which it recognises in the call stack. Not called for a superuser.';
revoke all on function tocsin.refuse_direct_write() from public;

CREATE OR REPLACE FUNCTION tocsin.refuse_reserved_type()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    raise exception 'the event type % of schedule % is reserved for events of tocsin itself: choose another type',
        quote_literal(new.type), quote_literal(new.name) using errcode = 'TS002';
end
$function$;
comment on function tocsin.refuse_reserved_type() is 'Raises TS002. The trigger schedule_type_is_free calls it.';
revoke all on function tocsin.refuse_reserved_type() from public;

CREATE OR REPLACE FUNCTION tocsin.release_prune()
 RETURNS boolean
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select pg_advisory_unlock(r.claim_key) from tocsin.prune_report r where r.claim_pid = pg_backend_pid()
$function$;
comment on function tocsin.release_prune() is 'Ends the claim of tocsin.claim_prune, so that another run can begin.';
revoke all on function tocsin.release_prune() from public;

CREATE OR REPLACE FUNCTION tocsin.replace_schedule(content tocsin.schedule, nominal_at timestamp with time zone, if_generation bigint, who text, via text, verb text DEFAULT 'edit'::text)
 RETURNS TABLE(id uuid, status text, generation bigint, fire_at timestamp with time zone, deduped boolean)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
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
$function$;
comment on function tocsin.replace_schedule(tocsin.schedule,timestamp with time zone,bigint,text,text,text) is 'Replaces the content of a schedule and arms it, whatever its status, as a new generation. The next occurrence must lie after every occurrence that is done. Called by the functions tocsin.schedule_*.';
revoke all on function tocsin.replace_schedule(tocsin.schedule,timestamp with time zone,bigint,text,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.report(action_id uuid, step integer, state text, result jsonb DEFAULT '{}'::jsonb, error text DEFAULT NULL::text, attempt integer DEFAULT NULL::integer, token text DEFAULT NULL::text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET enable_seqscan TO 'off'
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
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
$function$;
comment on function tocsin.report(uuid,integer,text,jsonb,text,integer,text) is 'Reports the outcome of a step that was dispatched to the caller, in the transaction of the caller. It arms a timer that is due at once. The caller has the token of the message, or a grant for the owner of the run. Returns false if the step is completed already. A report after the deadline is stored but does not change the outcome.';
revoke all on function tocsin.report(uuid,integer,text,jsonb,text,integer,text) from public;

CREATE OR REPLACE FUNCTION tocsin.report_token(action_id uuid, step integer)
 RETURNS text
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select left(encode(sha256(k.key || sha256(k.key || uuid_send(report_token.action_id) || int4send(report_token.step))),
                       'hex'), 32)
    from tocsin.instance_key k
$function$;
comment on function tocsin.report_token(uuid,integer) is 'Token of the reports about a step: 128 bits of a keyed hash. The message of a dispatch carries it.';
revoke all on function tocsin.report_token(uuid,integer) from public;

CREATE OR REPLACE FUNCTION tocsin.require_owner(owner text)
 RETURNS void
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    -- Schedules of Tocsin itself have owners that begin with tocsin: and belong to no service.
    if not tocsin.owner_matches(coalesce(require_owner.owner, ''), tocsin.own_patterns())
        or (starts_with(require_owner.owner, 'tocsin:') and not tocsin.is_trusted())
    then
        raise exception 'role % has no grant for owner %: an operator can give one with `tocsin roles grant`',
            quote_literal(session_user), quote_literal(coalesce(require_owner.owner, '')) using errcode = 'TS006';
    end if;
end
$function$;
comment on function tocsin.require_owner(text) is 'Raises TS006 unless the session may use the owner.';
revoke all on function tocsin.require_owner(text) from public;

CREATE OR REPLACE FUNCTION tocsin.revoke_session(session_id uuid, revoked_by text, via text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    ended text;
begin
    delete from tocsin.api_session s where s.id = session_id returning s.name into ended;
    if ended is null then
        return false;
    end if;
    perform tocsin.write_audit(revoked_by, via, 'revoke', 'session', '', ended,
        jsonb_build_object('id', session_id), null);
    return true;
end
$function$;
comment on function tocsin.revoke_session(uuid,text,text) is 'Ends the session of another person. False if there is none.';
revoke all on function tocsin.revoke_session(uuid,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.revoke_token(token_id uuid, revoked_by text, via text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    token_name text;
begin
    update tocsin.api_token t
    set revoked_at = tocsin.instant(), revoked_by = tocsin.principal(revoke_token.revoked_by)
    where t.id = token_id and t.revoked_at is null
    returning t.name into token_name;
    if token_name is null then
        return false;
    end if;
    perform tocsin.write_audit(revoke_token.revoked_by, revoke_token.via, 'revoke', 'token', '', token_name,
        jsonb_build_object('id', token_id), null);
    return true;
end
$function$;
comment on function tocsin.revoke_token(uuid,text,text) is 'Ends a token. False if it is unknown or was ended before.';
revoke all on function tocsin.revoke_token(uuid,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.schedule_cancel(owner text, name text, who text DEFAULT CURRENT_USER, via text DEFAULT 'sql'::text, if_generation bigint DEFAULT NULL::bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET enable_seqscan TO 'off'
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    before tocsin.schedule;
    tick_done timestamptz;
    tick_identity text;
    done timestamptz;
    done_identity text;
    now timestamptz := tocsin.instant();
begin
    perform tocsin.require_owner(schedule_cancel.owner);
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
$function$;
comment on function tocsin.schedule_cancel(text,text,text,text,bigint) is 'Cancels one schedule. Waits for a fire in progress, which wins. Returns false if there is no such schedule, or if it has ended. With if_generation, raises TS004 if it was edited since.';
revoke all on function tocsin.schedule_cancel(text,text,text,text,bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.schedule_cancel_all(owner text DEFAULT NULL::text, type text DEFAULT NULL::text, who text DEFAULT CURRENT_USER, via text DEFAULT 'sql'::text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET enable_seqscan TO 'off'
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
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
          and tocsin.owner_matches(s.owner, tocsin.own_patterns())
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
$function$;
comment on function tocsin.schedule_cancel_all(text,text,text,text) is 'Cancels all schedules of an owner, of a type, or of both. Returns how many. Raises TS002 if neither is given.';
revoke all on function tocsin.schedule_cancel_all(text,text,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.schedule_cancel_id(id uuid, who text DEFAULT CURRENT_USER, via text DEFAULT 'sql'::text)
 RETURNS boolean
 LANGUAGE sql
 SECURITY DEFINER
 SET enable_seqscan TO 'off'
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
    select coalesce((
        select tocsin.schedule_cancel(s.owner, s.name, schedule_cancel_id.who, schedule_cancel_id.via)
        from tocsin.schedule s
        where s.id = schedule_cancel_id.id), false)
$function$;
comment on function tocsin.schedule_cancel_id(uuid,text,text) is 'Cancels the schedule with this id, as tocsin.schedule_cancel does.';
revoke all on function tocsin.schedule_cancel_id(uuid,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.schedule_difference(before tocsin.schedule, wanted tocsin.schedule)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
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
$function$;
comment on function tocsin.schedule_difference(tocsin.schedule,tocsin.schedule) is 'What differs between a stored schedule and the wanted one, for an error; empty if they are equal.';
revoke all on function tocsin.schedule_difference(tocsin.schedule,tocsin.schedule) from public;

CREATE OR REPLACE FUNCTION tocsin.schedule_move(owner text, name text, at timestamp with time zone, who text DEFAULT CURRENT_USER, via text DEFAULT 'sql'::text, if_generation bigint DEFAULT NULL::bigint)
 RETURNS TABLE(id uuid, status text, generation bigint, fire_at timestamp with time zone, deduped boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET enable_seqscan TO 'off'
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    content tocsin.schedule;
begin
    perform tocsin.require_owner(schedule_move.owner);
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
$function$;
comment on function tocsin.schedule_move(text,text,timestamp with time zone,text,text,bigint) is 'Moves a pending single fire to another instant and keeps the rest. Raises TS004 if there is no such schedule, if it has ended, or if it is recurring. A paused one is active afterwards.';
revoke all on function tocsin.schedule_move(text,text,timestamp with time zone,text,text,bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.schedule_once(owner text, name text, at timestamp with time zone, payload jsonb DEFAULT '{}'::jsonb, type text DEFAULT 'schedule-fired'::text, action text DEFAULT NULL::text, created_by text DEFAULT CURRENT_USER, created_via text DEFAULT 'sql'::text, replace boolean DEFAULT false, if_generation bigint DEFAULT NULL::bigint, retry jsonb DEFAULT NULL::jsonb, title text DEFAULT NULL::text, description text DEFAULT NULL::text, runbook_url text DEFAULT NULL::text)
 RETURNS TABLE(id uuid, status text, generation bigint, fire_at timestamp with time zone, deduped boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET enable_seqscan TO 'off'
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    before tocsin.schedule;
    content tocsin.schedule;
    now timestamptz := tocsin.instant();
    wanted jsonb := tocsin.recurrence_at(schedule_once.at);
    difference text;
begin
    perform tocsin.require_owner(schedule_once.owner);
    schedule_once.created_by := tocsin.principal(schedule_once.created_by);
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
$function$;
comment on function tocsin.schedule_once(text,text,timestamp with time zone,jsonb,text,text,text,text,boolean,bigint,jsonb,text,text,text) is 'Schedules one fire at an instant; an instant in the past is due at once. Idempotent by owner and name: the same content again returns the row with deduped, other content raises TS004 with the difference. With replace, other content replaces the schedule, and one that fired or was cancelled is armed again. With if_generation, only if the schedule still has that generation. In a repeatable read transaction, a race with another caller raises 40001.';
revoke all on function tocsin.schedule_once(text,text,timestamp with time zone,jsonb,text,text,text,text,boolean,bigint,jsonb,text,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.schedule_recurring(owner text, name text, every interval, payload jsonb DEFAULT '{}'::jsonb, type text DEFAULT 'schedule-fired'::text, action text DEFAULT NULL::text, starts_at timestamp with time zone DEFAULT NULL::timestamp with time zone, created_by text DEFAULT CURRENT_USER, created_via text DEFAULT 'sql'::text, replace boolean DEFAULT false, if_generation bigint DEFAULT NULL::bigint, retry jsonb DEFAULT NULL::jsonb, title text DEFAULT NULL::text, description text DEFAULT NULL::text, runbook_url text DEFAULT NULL::text)
 RETURNS TABLE(id uuid, status text, generation bigint, fire_at timestamp with time zone, deduped boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET enable_seqscan TO 'off'
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    before tocsin.schedule;
    content tocsin.schedule;
    now timestamptz := tocsin.instant();
    milliseconds numeric := extract(epoch from schedule_recurring.every) * 1000;
    anchor timestamptz := coalesce(schedule_recurring.starts_at, date_trunc('second', tocsin.instant()));
    nominal_at timestamptz;
    difference text;
begin
    perform tocsin.require_owner(schedule_recurring.owner);
    schedule_recurring.created_by := tocsin.principal(schedule_recurring.created_by);
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
$function$;
comment on function tocsin.schedule_recurring(text,text,interval,jsonb,text,text,timestamp with time zone,text,text,boolean,bigint,jsonb,text,text,text) is 'Schedules a fire every interval of elapsed time, counted from starts_at or from now. Idempotent by owner and name, with replace and if_generation as in tocsin.schedule_once. Calendar times (cron, rrule) cannot be computed in SQL: the Python client, the command line and rule files have them.';
revoke all on function tocsin.schedule_recurring(text,text,interval,jsonb,text,text,timestamp with time zone,text,text,boolean,bigint,jsonb,text,text,text) from public;

CREATE OR REPLACE FUNCTION tocsin.seal_audit(most integer DEFAULT 10000)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    entry record;
    last_position bigint;
    last_hash bytea;
    sealed bigint := 0;
begin
    lock table tocsin.lock_audit in share row exclusive mode;
    select s.position, s.hash into last_position, last_hash
    from tocsin.audit_seal s order by s.position desc limit 1;
    last_position := coalesce(last_position, 0);
    last_hash := coalesce(last_hash, '\x');
    for entry in
        select a.id, tocsin.audit_digest(a) as digest
        from tocsin.audit a
        where not exists (select from tocsin.audit_seal s where s.audit_id = a.id)
        order by a.id
        limit most
    loop
        last_position := last_position + 1;
        insert into tocsin.audit_seal (position, audit_id, digest, previous, hash, sealed_at)
        values (last_position, entry.id, entry.digest, last_hash, sha256(last_hash || entry.digest), tocsin.instant())
        returning hash into last_hash;
        sealed := sealed + 1;
    end loop;
    return sealed;
end
$function$;
comment on function tocsin.seal_audit(integer) is 'Appends the committed rows of the audit that are not chained yet to the chain. Returns how many.';
revoke all on function tocsin.seal_audit(integer) from public;

CREATE OR REPLACE FUNCTION tocsin.series_deadline(p tocsin.lane_partition, arrived_at timestamp with time zone, within_us bigint)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN CASE WHEN ((p).last_gap_at >= arrived_at) THEN tocsin.deadline_after_gaps((p).partition, arrived_at, within_us) ELSE (arrived_at + ((within_us)::double precision * '00:00:00.000001'::interval)) END;
comment on function tocsin.series_deadline(tocsin.lane_partition,timestamp with time zone,bigint) is 'The instant at which a series becomes stale if nothing arrives: its last arrival plus its tolerance, extended by the arrival gaps of its partition. Most series have no gap behind their last arrival; then no table is read.';
revoke all on function tocsin.series_deadline(tocsin.lane_partition,timestamp with time zone,bigint) from public;

CREATE OR REPLACE FUNCTION tocsin.share_tz_version()
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    lock table tocsin.lock_tz_version in share mode;
    -- A new statement, so that it sees a version that was stored while this one waited.
    return (select s.value from tocsin.setting s where s.name = 'tz-version');
end
$function$;
comment on function tocsin.share_tz_version() is 'The tz version of the clock, locked against a change until the transaction of the caller ends. Called by edits of schedules that depend on a timezone; null before the first clock.';
revoke all on function tocsin.share_tz_version() from public;

CREATE OR REPLACE FUNCTION tocsin.stamp_audit()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
    claimed text := new.who;
begin
    new.at := tocsin.instant();
    new.who := tocsin.principal(claimed);
    new.claimed := nullif(claimed, new.who);
    return new;
end
$function$;
comment on function tocsin.stamp_audit() is 'Trigger function of the audit: time and principal are those of the server, whatever the caller gave.';
revoke all on function tocsin.stamp_audit() from public;

CREATE OR REPLACE FUNCTION tocsin.take_over(expected_epoch bigint, new_holder text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
begin
    perform pg_terminate_backend(a.pid, 1000)
    from tocsin.log_head h
    join pg_stat_activity a on a.pid = h.holder_pid and a.backend_start = h.holder_backend_start
    where h.epoch = expected_epoch and a.pid <> pg_backend_pid();
    return tocsin.raise_epoch(
        expected_epoch, new_holder, pg_backend_pid(),
        (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid()));
end
$function$;
comment on function tocsin.take_over(bigint,text) is 'Makes the caller the leading clock: terminates the session of the former leader and raises the epoch. Returns the new epoch, or null if another clock was faster.';
revoke all on function tocsin.take_over(bigint,text) from public;

CREATE OR REPLACE FUNCTION tocsin.token(value text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
    select case
        when value = '' then '_'
        when value = '_' then '%5F'
        when value collate "C" ~ '^[A-Za-z0-9_-]+$' then value
        else (
            select string_agg(
                case when chr(b.byte) collate "C" ~ '^[A-Za-z0-9_-]$' and b.byte < 128 then chr(b.byte)
                     else '%' || upper(lpad(to_hex(b.byte), 2, '0')) end,
                '' order by b.position)
            from (
                select p.position, get_byte(u.bytes, p.position) as byte
                from (select convert_to(value, 'UTF8') as bytes) u,
                     generate_series(0, octet_length(u.bytes) - 1) as p (position)
            ) b
        )
    end
$function$;
comment on function tocsin.token(text) is 'Text as one token of a NATS subject, the same as in Python: bytes outside [A-Za-z0-9_-] become %XX, an empty text becomes _.';
revoke all on function tocsin.token(text) from public;

CREATE OR REPLACE FUNCTION tocsin.try_lock_calculation()
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    lock table tocsin.lock_calculation in share row exclusive mode nowait;
    return true;
exception
    when lock_not_available then
        return false;
end
$function$;
comment on function tocsin.try_lock_calculation() is 'Takes the lock for calculating windows until the transaction ends. False if another session has it.';
revoke all on function tocsin.try_lock_calculation() from public;

CREATE OR REPLACE FUNCTION tocsin.try_lock_health()
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    lock table tocsin.lock_health in share row exclusive mode nowait;
    return true;
exception
    when lock_not_available then
        return false;
end
$function$;
comment on function tocsin.try_lock_health() is 'Lock for writing health, if it is free. False if another worker or an apply holds it.';
revoke all on function tocsin.try_lock_health() from public;

CREATE OR REPLACE FUNCTION tocsin.try_share_log()
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    lock table tocsin.lock_log in share mode nowait;
    return true;
exception
    when lock_not_available then
        return false;
end
$function$;
comment on function tocsin.try_share_log() is 'Prevents appends until the transaction ends. False if a session is about to commit one.';
revoke all on function tocsin.try_share_log() from public;

CREATE OR REPLACE FUNCTION tocsin.use_session(digest bytea)
 RETURNS TABLE(name text, grants text[], expires_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
    return query
        select s.name, s.grants, s.expires_at
        from tocsin.api_session s
        where s.digest = use_session.digest and s.expires_at > tocsin.instant()
          and s.last_used_at > tocsin.instant() - interval '12 hours';
    update tocsin.api_session u set last_used_at = tocsin.instant()
    where u.digest = (
        select s.digest from tocsin.api_session s
        where s.digest = use_session.digest and s.expires_at > tocsin.instant()
          and s.last_used_at > tocsin.instant() - interval '12 hours'
          and s.last_used_at < tocsin.instant() - interval '1 minute'
        for update skip locked);
end
$function$;
comment on function tocsin.use_session(bytea) is 'The principal of a live session, by its digest; no row for any other.';
revoke all on function tocsin.use_session(bytea) from public;

CREATE OR REPLACE FUNCTION tocsin.use_token(digest bytea)
 RETURNS TABLE(id uuid, name text, grants text[], expires_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
    return query
        select t.id, t.name, t.grants, t.expires_at
        from tocsin.api_token t
        where t.digest = use_token.digest and t.revoked_at is null
          and (t.expires_at is null or t.expires_at > tocsin.instant());
    -- Skipped while another request writes the same: authentication waits for no lock.
    update tocsin.api_token u set last_used_at = tocsin.instant()
    where u.id = (
        select t.id from tocsin.api_token t
        where t.digest = use_token.digest and t.revoked_at is null
          and (t.last_used_at is null or t.last_used_at < tocsin.instant() - interval '1 minute')
        for update skip locked);
end
$function$;
comment on function tocsin.use_token(bytea) is 'The principal of a valid token, by its digest; no row for any other. Notes the use once a minute.';
revoke all on function tocsin.use_token(bytea) from public;

CREATE OR REPLACE FUNCTION tocsin.write_audit(who text, via text, verb text, kind text, owner text, name text, old jsonb, new jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
begin
    insert into tocsin.audit (at, who, via, verb, kind, owner, name, old, new)
    values (tocsin.instant(), write_audit.who, write_audit.via, write_audit.verb, write_audit.kind,
            coalesce(write_audit.owner, ''), write_audit.name, write_audit.old, write_audit.new);
end
$function$;
comment on function tocsin.write_audit(text,text,text,text,text,text,jsonb,jsonb) is 'Records a change, in the transaction of the change. The only way to write the audit. Its time is that of the server, and its principal that of the session; `who` is stored as a claim.';
revoke all on function tocsin.write_audit(text,text,text,text,text,text,jsonb,jsonb) from public;

create view tocsin.held_timer as
 SELECT t.kind,
    t.ref,
    t.key,
    t.nominal_at,
    p.lane,
    p.partition
   FROM ((tocsin.timer t
     JOIN tocsin.current_value c ON (((c.owner = (t.payload ->> 'owner'::text)) AND (c.key = t.key))))
     JOIN tocsin.lane_partition p ON (((p.lane = 'data'::text) AND (p.partition = c.partition))))
  WHERE ((t.kind = 'watchdog'::text) AND (t.parked_at IS NULL) AND (t.fire_at <= ( SELECT tocsin.instant() AS instant)) AND (c.freshness = 'fresh'::text) AND (tocsin.series_deadline(p.*, c.arrived_at, ((t.payload ->> 'within_us'::text))::bigint) <= t.nominal_at) AND ((p.watermark IS NULL) OR (p.watermark < t.nominal_at)))
UNION ALL
 SELECT t.kind,
    t.ref,
    t.key,
    t.nominal_at,
    p.lane,
    p.partition
   FROM (((tocsin.timer t
     JOIN tocsin.alarm a ON ((a.id = (t.ref)::uuid)))
     JOIN tocsin.rule_state s ON (((s.event_rule = a.event_rule) AND (s.owner = a.owner) AND (s.instance = a.instance))))
     JOIN tocsin.lane_partition p ON (((p.lane = s.lane) AND (p.partition = s.partition))))
  WHERE ((t.kind = 'for-sustain'::text) AND (t.key <> 'snooze'::text) AND (t.parked_at IS NULL) AND (t.fire_at <= ( SELECT tocsin.instant() AS instant)) AND ((p.watermark IS NULL) OR (p.watermark <= t.nominal_at)))
UNION ALL
 SELECT 'heartbeat'::text AS kind,
    s.owner AS ref,
    s.event_rule AS key,
    s.recheck_at AS nominal_at,
    p.lane,
    p.partition
   FROM (tocsin.lane_partition p
     JOIN tocsin.rule_state s ON (((s.lane = p.lane) AND (s.partition = p.partition))))
  WHERE ((p.lane = 'data'::text) AND starts_with(s.event_rule, 'heartbeat:'::text) AND (s.recheck_at <= ( SELECT tocsin.instant() AS instant)) AND ((p.watermark IS NULL) OR (p.watermark <= s.recheck_at)));
comment on view tocsin.held_timer is 'Timers, and deadlines of heartbeats, that are due but held, because the watermark of their partition lies before their deadline. Read by the commands, the metrics, and the clock, which reports them.';

alter table tocsin.action_step enable row level security;
create policy readable on tocsin.action_step as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.action_step FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

alter table tocsin.audit enable row level security;
create policy readable on tocsin.audit as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.audit FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();
CREATE TRIGGER stamp BEFORE INSERT ON tocsin.audit FOR EACH ROW EXECUTE FUNCTION tocsin.stamp_audit();

alter table tocsin.audit_seal enable row level security;
create policy readable on tocsin.audit_seal as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.audit_seal FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

alter table tocsin.datapoint_calculated enable row level security;
create policy readable on tocsin.datapoint_calculated as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.datapoint_calculated FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

alter table tocsin.erasure enable row level security;
create policy readable on tocsin.erasure as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.erasure FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

alter table tocsin.event enable row level security;
create policy readable on tocsin.event as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.event FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

alter table tocsin.event_kept enable row level security;
create policy readable on tocsin.event_kept as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.event_kept FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

alter table tocsin.log_commit enable row level security;
create policy readable on tocsin.log_commit as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.log_commit FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

alter table tocsin.log_gap enable row level security;
create policy readable on tocsin.log_gap as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.log_gap FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

alter table tocsin.log_head enable row level security;
create policy readable on tocsin.log_head as permissive for select to public using (true);
CREATE TRIGGER guard BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON tocsin.log_head FOR EACH STATEMENT WHEN (((current_setting('is_superuser'::text) = 'off'::text) AND ((CURRENT_USER = SESSION_USER) OR (current_setting('role'::text) <> 'none'::text)))) EXECUTE FUNCTION tocsin.refuse_direct_write();

CREATE TRIGGER schedule_type_is_free BEFORE INSERT OR UPDATE OF type ON tocsin.schedule FOR EACH ROW WHEN (((new.type <> 'schedule-fired'::text) AND (NOT ((new.owner = 'tocsin:silences'::text) AND (new.type = 'silence-ended'::text))) AND tocsin.is_reserved_type(new.type))) EXECUTE FUNCTION tocsin.refuse_reserved_type();

insert into public.tocsin_migration (number, name, checksum) values (1, '0001_time_settings_and_audit', '8e8d99d17c6cdab63df9ebafbeb8363739bcd96b2d7d31726ef768d365f558b6');
insert into public.tocsin_migration (number, name, checksum) values (2, '0002_record_log', '58c0280d1b88ae735f7b195ca9984398400a7414cf99c7e6a47d9b545560e04e');
insert into public.tocsin_migration (number, name, checksum) values (3, '0003_timers_and_schedules', '95859a3b6430c6d0ea3de46943b072fb630a59d71c3e82ba25d12462f694d00c');
insert into public.tocsin_migration (number, name, checksum) values (4, '0004_rules', 'ad358d127ee8aa02d2927fe6692ac91e4921e119569636ee719e613577b7db5b');
insert into public.tocsin_migration (number, name, checksum) values (5, '0005_lanes', '982474d4dfbc9d83806c5898eed1b5e878ddcded055ec33580f3075a38afa66b');
insert into public.tocsin_migration (number, name, checksum) values (6, '0006_series', '1eb481f576dd085c877ff66b281c8703c15d194e2ee4a1affaf33765d7f21893');
insert into public.tocsin_migration (number, name, checksum) values (7, '0007_alarms', '3b4290f83af71ef8cc9324c96a7338e49826ab9830df2b141669bd11b3b4ba2a');
insert into public.tocsin_migration (number, name, checksum) values (8, '0008_actions', '3781139d8f65db31cda964ea70a97dba726ccc78f5f5134bd94440778fc913d2');
insert into public.tocsin_migration (number, name, checksum) values (9, '0009_health', 'bbcb36ccaa9c6a06e30e6074bdabaf72870c2fb92ed455450f90e0826bd62b07');
insert into public.tocsin_migration (number, name, checksum) values (10, '0010_publisher_and_log_repair', 'f6dd9499290e684aa8a3ba35c5dceeced837ba7567dc75bf7e2940c8d25e8361');
insert into public.tocsin_migration (number, name, checksum) values (11, '0011_retention', '8a3426b897ac2664c9188fc84733be6a532a38699b28934f43774aa87e59cd42');
insert into public.tocsin_migration (number, name, checksum) values (12, '0012_functions_for_services', 'c7ff74359f973d877d94d900cd41d1237e81cf17a831a95b8262af9bb37bfe5c');
insert into public.tocsin_migration (number, name, checksum) values (13, '0013_alarm_identity', 'dc4414c5499085ad612ab11fe6e2d6d80c11f77efe712070daa8237d5598bf56');
insert into public.tocsin_migration (number, name, checksum) values (14, '0014_notifications', '619900e2370ba6afb7703cce807315b1153d787cfabae75529de9e93b55aec15');
insert into public.tocsin_migration (number, name, checksum) values (15, '0015_silences', 'bdf03ce8eb92daa2c2dca4105c07a972a7c63f9089c9286305d8beb1da4167fa');
insert into public.tocsin_migration (number, name, checksum) values (16, '0016_schedules', '0b15944af875b87bb69360a5baa3dc134c19a9d2d15b6abc70c45b9434a24a9f');
insert into public.tocsin_migration (number, name, checksum) values (17, '0017_reserved_types', '40b8f026171cb8ecdeb1e07aea8dc0ea8e5fa9f8b3e13b8647f8342a6d664fc2');
insert into public.tocsin_migration (number, name, checksum) values (18, '0018_channel_tests', 'd2427b34efa365a3a7127d45a2fe7f0d286b1de76a329f4579eed368d7948679');
insert into public.tocsin_migration (number, name, checksum) values (19, '0019_locks_guards_and_time', '18696f1df8e464fdd7a810a9f6fd8bbe77b25235c67b04d58544d9e7f9e57c5e');
insert into public.tocsin_migration (number, name, checksum) values (20, '0020_priorities', '355b6f5e31c1058ca35d93b2d9eb62900c846c19a8e05bc3df940d52ed9a0955');
insert into public.tocsin_migration (number, name, checksum) values (21, '0021_calculated_series', 'c6a2d7a85c8861c37f829dcffe0de365d116be248844cdcd0430f68abc888915');
insert into public.tocsin_migration (number, name, checksum) values (22, '0022_principals_and_audit', 'ccd9b9698e076c55df4034005efe2f30f1e548d7577ed5f2e1884b079475c7d3');
insert into public.tocsin_migration (number, name, checksum) values (23, '0023_event_digests_and_report_tokens', '48715b8609f0d8abf3cdb1d90a8f3f2462ba4f7aaa8803f25df6782864f89400');
insert into public.tocsin_migration (number, name, checksum) values (24, '0024_api_tokens', 'ddeb7e9181cdca38e462a7ebca789ce3ced59e59a5203034e084962f7ec22dcf');
insert into public.tocsin_migration (number, name, checksum) values (25, '0025_message_attempts', 'bba8a16b927327ce6fc32cc848c29f53867b4784b16d2df33eef1d57362819e2');
insert into public.tocsin_migration (number, name, checksum) values (26, '0026_quota_events', '66d82cc75b73b4f877b7ea22b8f46d9335bcbba0da1c66989ab77db2dd99f2ef');
insert into public.tocsin_migration (number, name, checksum) values (27, '0027_message_tokens', '59a6fbb75d439d90fe3d0ef3a5da64553eb444370f7e86b8d34ea53b016c9e57');
insert into public.tocsin_migration (number, name, checksum) values (28, '0028_api_sessions', '909791aa17dbbd794b7407156f795140dc5bb3af749190cb9a06a04387276f5f');
insert into public.tocsin_migration (number, name, checksum) values (29, '0029_idempotency_keys', '28d5bfb2c91e2c290018980c21c4a5ac4a4aae6a6f42daa5b1fcd91149091288');
insert into public.tocsin_migration (number, name, checksum) values (30, '0030_heartbeats', 'a1d23030dc5100d2b51910931f70a5856a3092e6e88a093c0f706e355e95a891');
insert into public.tocsin_migration (number, name, checksum) values (31, '0031_erasures', 'f0136f6a9387854aac787970a39354d2b4822b1fe46b0a6204213012e316cd54');
insert into public.tocsin_migration (number, name, checksum) values (32, '0032_session_list', '7afffa69d46013828f58fe8474f1b291a70d5824032994bf08a77f6f4b9e60d4');
insert into public.tocsin_migration (number, name, checksum) values (33, '0033_sender_role', '2542121ea992a71555ab49ec80aa280c05b96fc5affff72aa43d99995e6c30ef');
insert into public.tocsin_migration (number, name, checksum) values (34, '0034_alarm_links', 'ad96d08cc5a7d60755141f0b2304c6696aca818f2fcc6e5b4f373e38bbaab8de');
insert into public.tocsin_migration (number, name, checksum) values (35, '0035_idempotency_locks', '3615c680114b75159d95fa2149be6aa9b9d41c0af764e318d6200a0b7c6c75dd');

select tocsin.extend_log();
