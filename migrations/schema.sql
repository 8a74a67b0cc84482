-- The schema that all migrations add up to. Written by `python -m tests.migrations`; do not edit.


table action with (fillfactor=60)
    id uuid not null
    name text not null
    action_rule text not null
    event_id uuid not null
    event_seq bigint not null
    document jsonb not null
    owner text not null default ''::text
    state text not null
    started_at timestamp with time zone not null
    ended_at timestamp with time zone
    result jsonb
    error text
    correlation_id uuid not null
    group_key text not null default ''::text
    alarm_id uuid
    active jsonb not null default '{}'::jsonb
    answers jsonb not null default '{}'::jsonb
    lineage text[] not null default '{}'::text[]
    version bigint not null default 1
    constraint action_pkey PRIMARY KEY (id)
    constraint action_state_check CHECK ((state = ANY (ARRAY['gathering'::text, 'queued'::text, 'running'::text, 'completed'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text, 'skipped'::text])))

table action_event
    action_rule text not null
    event_id uuid not null
    event_seq bigint not null
    action_id uuid not null
    constraint action_event_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id)
    constraint action_event_pkey PRIMARY KEY (action_rule, event_id)

table action_limit
    action_rule text not null
    starts timestamp with time zone[] not null
    constraint action_limit_pkey PRIMARY KEY (action_rule)

table action_step partition by RANGE (seq) row security
    seq bigint not null
    id uuid not null
    action_id uuid not null
    name text not null
    owner text not null default ''::text
    step integer not null
    attempt integer not null
    state text not null
    recorded_at timestamp with time zone not null
    correlation_id uuid not null
    source_event_id uuid
    result jsonb not null default '{}'::jsonb
    constraint action_step_name_check CHECK (((length(name) >= 1) AND (length(name) <= 128)))
    constraint action_step_owner_check CHECK ((length(owner) <= 128))
    constraint action_step_pkey PRIMARY KEY (seq)
    constraint action_step_result_check CHECK ((octet_length((result)::text) <= 229376))
    constraint action_step_state_check CHECK ((state = ANY (ARRAY['due'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text, 'skipped'::text])))

table action_wait
    action_id uuid not null
    step integer not null
    attempt integer not null
    condition text not null
    after_seq bigint not null
    constraint action_wait_action_id_fkey FOREIGN KEY (action_id) REFERENCES action(id)
    constraint action_wait_pkey PRIMARY KEY (action_id, step)

table alarm with (fillfactor=70)
    id uuid not null
    event_rule text not null
    owner text not null default ''::text
    state text not null
    severity smallint not null
    since timestamp with time zone not null
    opened_at timestamp with time zone
    resolved_at timestamp with time zone
    resolved_reason text
    payload jsonb not null default '{}'::jsonb
    source_event_id uuid
    correlation_id uuid not null
    acknowledged_at timestamp with time zone
    acknowledged_by text
    acknowledged_note text
    snoozed_until timestamp with time zone
    snoozed_by text
    version bigint not null default 1
    constraint alarm_pkey PRIMARY KEY (id)
    constraint alarm_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'open'::text, 'resolved'::text])))

table audit
    id bigint not null generated always as identity
    at timestamp with time zone not null
    who text not null
    via text not null
    verb text not null
    kind text not null
    owner text not null default ''::text
    name text not null
    old jsonb
    new jsonb
    constraint audit_pkey PRIMARY KEY (id)

type calculated_input
    id uuid
    owner text
    key text
    ts timestamp with time zone
    verdict text
    correlation_id uuid
    payload jsonb

table cdc_report with (fillfactor=50)
    only_row boolean not null default true
    at timestamp with time zone
    holder text
    head bigint
    first_seq bigint
    last_seq bigint
    lag_s double precision
    compared integer
    problem text
    detail text
    seq bigint
    since timestamp with time zone
    constraint cdc_report_only_row_check CHECK (only_row)
    constraint cdc_report_pkey PRIMARY KEY (only_row)

table current_value with (fillfactor=70)
    owner text not null
    key text not null
    partition integer not null
    value jsonb not null
    ts timestamp with time zone not null
    labels jsonb not null default '{}'::jsonb
    arrived_at timestamp with time zone not null
    stream_seq bigint not null
    first_arrived_at timestamp with time zone not null
    freshness text not null default 'fresh'::text
    stale_since timestamp with time zone
    heard_stale_since timestamp with time zone
    version bigint not null default 1
    constraint current_value_freshness_check CHECK ((freshness = ANY (ARRAY['fresh'::text, 'stale'::text])))
    constraint current_value_key_check CHECK (((length(key) >= 1) AND (length(key) <= 256)))
    constraint current_value_owner_check CHECK ((length(owner) <= 128))
    constraint current_value_pkey PRIMARY KEY (owner, key)

table datapoint partition by RANGE (arrived_at)
    arrived_at timestamp with time zone not null
    stream_seq bigint not null
    position integer not null
    owner text not null
    key text not null
    ts timestamp with time zone not null
    value jsonb not null
    labels jsonb
    constraint datapoint_pkey PRIMARY KEY (arrived_at, stream_seq, "position")

table datapoint_calculated partition by RANGE (seq) row security
    seq bigint not null
    id uuid not null
    owner text not null
    key text not null
    ts timestamp with time zone not null
    recorded_at timestamp with time zone not null
    verdict text not null
    payload jsonb not null
    correlation_id uuid not null
    epoch bigint
    constraint datapoint_calculated_key_check CHECK (((length(key) >= 1) AND (length(key) <= 256)))
    constraint datapoint_calculated_owner_check CHECK ((length(owner) <= 128))
    constraint datapoint_calculated_payload_check CHECK ((octet_length((payload)::text) <= 229376))
    constraint datapoint_calculated_pkey PRIMARY KEY (seq)
    constraint datapoint_calculated_verdict_check CHECK ((verdict = ANY (ARRAY['stale'::text, 'fresh'::text, 'health'::text])))

table datapoint_kept
    owner text not null
    key text not null
    arrived_at timestamp with time zone not null
    ts timestamp with time zone not null
    value jsonb not null
    labels jsonb
    constraint datapoint_kept_pkey PRIMARY KEY (owner, key)

table event partition by RANGE (seq) row security
    seq bigint not null
    id uuid not null
    ts timestamp with time zone not null
    recorded_at timestamp with time zone not null
    origin text not null
    type text not null
    schedule text not null default ''::text
    rule text not null default ''::text
    action text not null default ''::text
    owner text not null default ''::text
    fire_at timestamp with time zone
    alarm_id uuid
    severity smallint
    source_event_id uuid
    correlation_id uuid not null
    payload jsonb not null
    epoch bigint
    constraint event_action_check CHECK ((length(action) <= 128))
    constraint event_origin_check CHECK ((origin = ANY (ARRAY['caught'::text, 'caused'::text, 'derived'::text, 'scheduled'::text])))
    constraint event_owner_check CHECK ((length(owner) <= 128))
    constraint event_payload_check CHECK ((octet_length((payload)::text) <= 229376))
    constraint event_pkey PRIMARY KEY (seq)
    constraint event_rule_check CHECK ((length(rule) <= 128))
    constraint event_schedule_check CHECK ((length(schedule) <= 128))
    constraint event_type_check CHECK ((type ~ '^[A-Za-z0-9_-]{1,128}$'::text))

type event_input
    id uuid
    ts timestamp with time zone
    origin text
    type text
    schedule text
    rule text
    action text
    owner text
    fire_at timestamp with time zone
    alarm_id uuid
    severity smallint
    source_event_id uuid
    correlation_id uuid
    payload jsonb

table event_kept
    seq bigint not null
    id uuid not null
    ts timestamp with time zone not null
    recorded_at timestamp with time zone not null
    origin text not null
    type text not null
    schedule text not null default ''::text
    rule text not null default ''::text
    action text not null default ''::text
    owner text not null default ''::text
    fire_at timestamp with time zone
    alarm_id uuid
    severity smallint
    source_event_id uuid
    correlation_id uuid not null
    payload jsonb not null
    epoch bigint
    constraint event_kept_pkey PRIMARY KEY (seq)

table event_lineage
    event_id uuid not null
    lineage text[] not null
    at timestamp with time zone not null default instant()
    constraint event_lineage_lineage_check CHECK ((cardinality(lineage) > 0))
    constraint event_lineage_pkey PRIMARY KEY (event_id)

table ingest_event
    key text not null
    event_id uuid not null
    at timestamp with time zone not null
    constraint ingest_event_key_check CHECK (((length(key) >= 1) AND (length(key) <= 256)))
    constraint ingest_event_pkey PRIMARY KEY (key)

table ingest_partition with (fillfactor=50)
    lane text not null
    partition integer not null
    last_seq bigint not null default 0
    complete_until timestamp with time zone
    holder text
    held_until timestamp with time zone
    incarnation text
    last_source_seq bigint not null default 0
    constraint ingest_partition_lane_check CHECK ((lane = ANY (ARRAY['record'::text, 'data'::text])))
    constraint ingest_partition_partition_check CHECK ((partition >= 0))
    constraint ingest_partition_pkey PRIMARY KEY (lane, partition)

table ingest_worker with (fillfactor=50)
    holder text not null
    seen_until timestamp with time zone not null
    since timestamp with time zone not null
    problem text
    constraint ingest_worker_pkey PRIMARY KEY (holder)

table log_commit row security
    last_seq bigint not null
    first_seq bigint not null
    recorded_at timestamp with time zone not null
    epoch bigint
    constraint log_commit_pkey PRIMARY KEY (last_seq)

table log_gap row security
    from_seq bigint not null
    until_seq bigint not null
    reason text not null
    who text not null
    at timestamp with time zone not null
    constraint log_gap_apart EXCLUDE USING gist (int8range(from_seq, until_seq, '[]'::text) WITH &&) DEFERRABLE INITIALLY DEFERRED
    constraint log_gap_check CHECK ((until_seq >= from_seq))
    constraint log_gap_from_seq_check CHECK ((from_seq > 0))

table log_head row security
    only_row boolean not null default true
    epoch bigint not null default 0
    floor bigint not null default 0
    partition_size bigint not null default 1000000
    holder text
    holder_pid integer
    holder_backend_start timestamp with time zone
    taken_at timestamp with time zone
    horizon bigint not null default 1
    constraint log_head_only_row_check CHECK (only_row)
    constraint log_head_partition_size_check CHECK ((partition_size > 0))
    constraint log_head_pkey PRIMARY KEY (only_row)

table member_alarm with (fillfactor=70)
    owner text not null
    rule text not null
    severity smallint not null
    since timestamp with time zone not null
    keys text[] not null
    constraint member_alarm_pkey PRIMARY KEY (owner, rule)

table member_fact
    id bigint not null generated always as identity
    owner text not null
    at timestamp with time zone not null
    what text not null
    subject text not null
    severity smallint
    since timestamp with time zone
    keys text[] not null default '{}'::text[]
    constraint member_fact_pkey PRIMARY KEY (id)
    constraint member_fact_what_check CHECK ((what = ANY (ARRAY['fresh'::text, 'stale'::text, 'alarm'::text])))

type member_fact_input
    owner text
    at timestamp with time zone
    what text
    subject text
    severity smallint
    since timestamp with time zone
    keys text[]

table member_series with (fillfactor=70)
    owner text not null
    key text not null
    stale_since timestamp with time zone
    constraint member_series_pkey PRIMARY KEY (owner, key)

table pipeline_report with (fillfactor=50)
    only_row boolean not null default true
    since timestamp with time zone
    constraint pipeline_report_only_row_check CHECK (only_row)
    constraint pipeline_report_pkey PRIMARY KEY (only_row)

table prune_report with (fillfactor=50)
    only_row boolean not null default true
    began_at timestamp with time zone
    ended_at timestamp with time zone
    removed jsonb not null default '{}'::jsonb
    left_over jsonb not null default '[]'::jsonb
    constraint prune_report_only_row_check CHECK (only_row)
    constraint prune_report_pkey PRIMARY KEY (only_row)

table rule_state with (fillfactor=70)
    event_rule text not null
    owner text not null
    lane text not null
    partition integer not null
    phase text not null default 'ok'::text
    alarm_id uuid
    state jsonb not null default '{}'::jsonb
    version bigint not null default 1
    constraint rule_state_lane_partition_fkey FOREIGN KEY (lane, partition) REFERENCES ingest_partition(lane, partition)
    constraint rule_state_phase_check CHECK ((phase = ANY (ARRAY['ok'::text, 'pending'::text, 'open'::text, 'clearing'::text])))
    constraint rule_state_pkey PRIMARY KEY (event_rule, owner)

table rule_switch
    lane text not null
    partition integer not null
    rules_seq bigint not null
    seq bigint not null
    complete_until timestamp with time zone
    constraint rule_switch_pkey PRIMARY KEY (lane, partition, rules_seq)

table rule_version
    kind text not null
    name text not null
    version integer not null
    document jsonb not null
    from_seq bigint not null
    until_seq bigint
    constraint rule_version_pkey PRIMARY KEY (kind, name, version)

table schedule
    id uuid not null default gen_random_uuid()
    owner text not null default ''::text
    name text not null
    recurrence jsonb not null
    spread interval not null default '00:00:00'::interval
    catch_up text not null default 'latest'::text
    window interval
    grace interval
    max_catch_up integer not null default 100
    type text not null default 'schedule-fired'::text
    payload jsonb not null default '{}'::jsonb
    action text
    status text not null default 'active'::text
    generation bigint not null default 1
    last_occurrence timestamp with time zone
    source text not null default 'api'::text
    created_by text not null
    created_via text not null
    created_at timestamp with time zone not null
    updated_at timestamp with time zone not null
    constraint schedule_action_check CHECK (((length(action) >= 1) AND (length(action) <= 128)))
    constraint schedule_catch_up_check CHECK ((catch_up = ANY (ARRAY['latest'::text, 'all'::text, 'none'::text])))
    constraint schedule_grace_check CHECK ((grace >= '00:00:00'::interval))
    constraint schedule_max_catch_up_check CHECK (((max_catch_up >= 1) AND (max_catch_up <= 10000)))
    constraint schedule_name_check CHECK (((length(name) >= 1) AND (length(name) <= 128)))
    constraint schedule_owner_check CHECK ((length(owner) <= 128))
    constraint schedule_owner_name_key UNIQUE (owner, name)
    constraint schedule_payload_check CHECK ((octet_length((payload)::text) <= 229376))
    constraint schedule_pkey PRIMARY KEY (id)
    constraint schedule_source_check CHECK ((source = ANY (ARRAY['api'::text, 'rules'::text])))
    constraint schedule_spread_check CHECK ((spread >= '00:00:00'::interval))
    constraint schedule_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'fired'::text, 'ended'::text, 'cancelled'::text, 'failed'::text])))
    constraint schedule_type_check CHECK ((type ~ '^[A-Za-z0-9_-]{1,128}$'::text))
    constraint schedule_window_check CHECK (("window" >= '00:00:00'::interval))

table setting
    name text not null
    value text not null
    constraint setting_pkey PRIMARY KEY (name)

type step_input
    id uuid
    action_id uuid
    name text
    owner text
    step integer
    attempt integer
    state text
    correlation_id uuid
    source_event_id uuid
    result jsonb

table system_health with (fillfactor=50)
    system text not null
    health text not null default 'unknown'::text
    reason text
    since timestamp with time zone
    holds_from timestamp with time zone not null
    constraint system_health_health_check CHECK ((health = ANY (ARRAY['ok'::text, 'degraded'::text, 'outage'::text, 'unknown'::text])))
    constraint system_health_pkey PRIMARY KEY (system)
    constraint system_health_reason_check CHECK ((reason = ANY (ARRAY['stale'::text, 'no-data'::text, 'uncovered'::text])))
    constraint system_health_system_check CHECK (((length(system) >= 1) AND (length(system) <= 128)))

table system_member with (fillfactor=70)
    system text not null
    owner text not null
    key text not null
    type text not null default ''::text
    required boolean not null
    covered boolean not null
    condition text not null default 'no-data'::text
    holds boolean not null default false
    constraint system_member_condition_check CHECK ((condition = ANY (ARRAY['ok'::text, 'degraded'::text, 'outage'::text, 'stale'::text, 'no-data'::text, 'uncovered'::text])))
    constraint system_member_pkey PRIMARY KEY (system, owner, key, type)
    constraint system_member_system_fkey FOREIGN KEY (system) REFERENCES system_health(system) ON DELETE CASCADE

table timer with (fillfactor=70, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_cost_delay=0, autovacuum_analyze_scale_factor=0.05)
    kind text not null
    ref text not null
    key text not null default ''::text
    fire_at timestamp with time zone not null
    nominal_at timestamp with time zone not null
    last_nominal_at timestamp with time zone
    generation bigint not null default 1
    payload jsonb not null default '{}'::jsonb
    attempts integer not null default 0
    last_error text
    parked_at timestamp with time zone
    identity text
    identity_at timestamp with time zone
    constraint timer_fire_at_check CHECK (((fire_at >= '0001-01-03 00:00:00+00'::timestamp with time zone) AND (fire_at <= '9999-12-30 00:00:00+00'::timestamp with time zone)))
    constraint timer_key_check CHECK ((length(key) <= 256))
    constraint timer_kind_check CHECK ((kind = ANY (ARRAY['schedule-tick'::text, 'for-sustain'::text, 'runbook-wait'::text, 'watchdog'::text])))
    constraint timer_nominal_at_check CHECK (((nominal_at >= '0001-01-03 00:00:00+00'::timestamp with time zone) AND (nominal_at <= '9999-12-30 00:00:00+00'::timestamp with time zone)))
    constraint timer_pkey PRIMARY KEY (kind, ref, key)
    constraint timer_ref_check CHECK (((length(ref) >= 1) AND (length(ref) <= 256)))

CREATE INDEX action_dead ON tocsin.action USING btree (ended_at DESC) WHERE (state = ANY (ARRAY['failed'::text, 'timed_out'::text]))

CREATE INDEX action_ended ON tocsin.action USING btree (ended_at, id) WHERE (ended_at IS NOT NULL)

CREATE INDEX action_event_of ON tocsin.action_event USING btree (action_id, event_seq)

CREATE UNIQUE INDEX action_gathering ON tocsin.action USING btree (action_rule, group_key) WHERE (state = 'gathering'::text)

CREATE INDEX action_newest ON tocsin.action USING btree (started_at DESC)

CREATE INDEX action_of_alarm ON tocsin.action USING btree (alarm_id) WHERE (state = ANY (ARRAY['gathering'::text, 'queued'::text, 'running'::text]))

CREATE INDEX action_of_rule ON tocsin.action USING btree (action_rule, started_at)

CREATE INDEX action_queued ON tocsin.action USING btree (action_rule, group_key, started_at) WHERE (state = 'queued'::text)

CREATE INDEX action_step_of ON ONLY tocsin.action_step USING btree (action_id, seq)

CREATE INDEX action_under_way ON tocsin.action USING btree (action_rule, started_at) WHERE (state = ANY (ARRAY['gathering'::text, 'queued'::text, 'running'::text]))

CREATE INDEX alarm_ended ON tocsin.alarm USING btree (resolved_at, id) WHERE (state = 'resolved'::text)

CREATE UNIQUE INDEX alarm_held ON tocsin.alarm USING btree (event_rule, owner) WHERE (state = ANY (ARRAY['pending'::text, 'open'::text]))

CREATE INDEX alarm_held_owner ON tocsin.alarm USING btree (owner) WHERE (state <> 'resolved'::text)

CREATE INDEX alarm_newest ON tocsin.alarm USING btree (since DESC)

CREATE INDEX audit_at ON tocsin.audit USING btree (at, id)

CREATE INDEX audit_subject ON tocsin.audit USING btree (kind, name, id)

CREATE INDEX current_value_stale ON tocsin.current_value USING btree (owner, stale_since) WHERE (freshness = 'stale'::text)

CREATE INDEX datapoint_series ON ONLY tocsin.datapoint USING btree (owner, key, arrived_at)

CREATE INDEX event_kept_of_alarm ON tocsin.event_kept USING btree (alarm_id) WHERE (alarm_id IS NOT NULL)

CREATE INDEX event_kept_of_rule ON tocsin.event_kept USING btree (rule, seq)

CREATE INDEX event_lineage_at ON tocsin.event_lineage USING btree (at, event_id)

CREATE INDEX event_missed ON ONLY tocsin.event USING btree (schedule, seq) WHERE (type = 'schedule-missed'::text)

CREATE INDEX event_of_alarm ON ONLY tocsin.event USING btree (alarm_id, seq) WHERE (alarm_id IS NOT NULL)

CREATE INDEX event_of_rule ON ONLY tocsin.event USING btree (rule, seq) WHERE (rule <> ''::text)

CREATE INDEX ingest_event_at ON tocsin.ingest_event USING btree (at, key)

CREATE UNIQUE INDEX rule_version_current ON tocsin.rule_version USING btree (kind, name) WHERE (until_seq IS NULL)

CREATE INDEX rule_version_from ON tocsin.rule_version USING btree (from_seq)

CREATE INDEX rule_version_until ON tocsin.rule_version USING btree (until_seq)

CREATE INDEX schedule_ended ON tocsin.schedule USING btree (updated_at, id) WHERE (status = ANY (ARRAY['fired'::text, 'ended'::text, 'cancelled'::text, 'failed'::text]))

CREATE INDEX system_member_owner ON tocsin.system_member USING btree (owner)

CREATE INDEX timer_due ON tocsin.timer USING btree (kind, fire_at, ref, key) WHERE (parked_at IS NULL)

CREATE INDEX timer_parked ON tocsin.timer USING btree (kind) WHERE (parked_at IS NOT NULL)

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
    -- Waits are forgotten before the log is locked: whoever is at it commits first, so that nobody waits in a circle.
    lock table tocsin.action_wait in share row exclusive mode;
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
    select greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)), h.partition_size
        into head, size from tocsin.log_head h;
    -- A gap that begins there was adopted since the caller looked: log and stream agree beyond it.
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
$function$
rights {owner=X/owner}

CREATE OR REPLACE FUNCTION tocsin.append(events event_input[] DEFAULT '{}'::event_input[], steps step_input[] DEFAULT '{}'::step_input[], expected_epoch bigint DEFAULT NULL::bigint, calculated calculated_input[] DEFAULT '{}'::calculated_input[], facts member_fact_input[] DEFAULT NULL::member_fact_input[])
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
$function$
rights {owner=X/owner}

CREATE OR REPLACE FUNCTION tocsin.arm(kind text, ref text, key text, fire_at timestamp with time zone, payload jsonb DEFAULT '{}'::jsonb, generation bigint DEFAULT 1)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
    is_new boolean;
begin
    if arm.kind = 'schedule-tick' then
        raise exception 'schedule ticks are armed by their schedule only: put the schedule'
            using errcode = 'TS002';
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
$function$

CREATE OR REPLACE FUNCTION tocsin.cancel(kind text, ref text, key text DEFAULT ''::text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
    if cancel.kind = 'schedule-tick' then
        raise exception 'schedule ticks are cancelled with their schedule: cancel the schedule'
            using errcode = 'TS002';
    end if;
    delete from tocsin.timer t where t.kind = cancel.kind and t.ref = cancel.ref and t.key = cancel.key;
    return found;
end
$function$

CREATE OR REPLACE FUNCTION tocsin.cancel_all(ref text, kind text DEFAULT NULL::text)
 RETURNS bigint
 LANGUAGE plpgsql
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
$function$

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
    perform pg_advisory_xact_lock(hashtext('tocsin.extend_datapoints'));
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
$function$
rights {owner=X/owner}

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
    perform pg_advisory_xact_lock(hashtext('tocsin.extend_log'));
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
$function$
rights {owner=X/owner}

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
$function$

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
$function$
rights {owner=X/owner}

CREATE OR REPLACE FUNCTION tocsin.guard(log_table text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    execute format('alter table tocsin.%I enable row level security', log_table);
    execute format('create policy readable on tocsin.%I for select using (true)', log_table);
    execute format(
        'create trigger guard_insert before insert on tocsin.%I for each statement '
        'when (current_setting(''search_path'') <> ''tocsin, pg_temp'') execute function tocsin.refuse_direct_write()',
        log_table);
    execute format(
        'create trigger guard before update or delete or truncate on tocsin.%I for each statement '
        'execute function tocsin.refuse_direct_write()',
        log_table);
end
$function$
rights {owner=X/owner}

CREATE OR REPLACE FUNCTION tocsin.instant()
 RETURNS timestamp with time zone
 LANGUAGE sql
 PARALLEL SAFE
AS $function$
    select coalesce(nullif(current_setting('tocsin.now', true), '')::timestamptz, clock_timestamp())
$function$

CREATE OR REPLACE FUNCTION tocsin.log_tables()
 RETURNS text[]
 LANGUAGE sql
 STABLE
AS $function$
    select array_agg(c.relname::text order by c.relname)
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'seq' and not a.attisdropped
    where c.relnamespace = 'tocsin'::regnamespace and c.relkind = 'p'
$function$

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
    -- A commit of which a part was published stays with that part.
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    select after_seq, m.first_seq, m.recorded_at, m.epoch from moving m where m.first_seq <= after_seq;
    insert into tocsin.log_commit (last_seq, first_seq, recorded_at, epoch)
    select m.last_seq + shift, greatest(m.first_seq, after_seq + 1) + shift, m.recorded_at, m.epoch from moving m;
    drop table moving;
    update tocsin.log_gap set from_seq = from_seq + shift, until_seq = until_seq + shift where from_seq > after_seq;
    -- Versions begin and end at records of their own transaction, which moved.
    update tocsin.rule_version set from_seq = from_seq + shift where from_seq > after_seq;
    update tocsin.rule_version set until_seq = until_seq + shift where until_seq > after_seq;
    create temporary table moving on commit drop as select * from tocsin.rule_switch where rules_seq > after_seq;
    delete from tocsin.rule_switch where rules_seq > after_seq;
    update moving set rules_seq = rules_seq + shift;
    insert into tocsin.rule_switch select * from moving;
    drop table moving;
    -- A step that waits for an event began to wait at a record of its own transaction.
    update tocsin.action_wait w set after_seq = w.after_seq + shift where w.after_seq > move_records.after_seq;
    return moved;
end
$function$
rights {owner=X/owner}

CREATE OR REPLACE FUNCTION tocsin.note_facts(events event_input[], calculated calculated_input[], facts member_fact_input[])
 RETURNS void
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
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
$function$
rights {owner=X/owner}

CREATE OR REPLACE FUNCTION tocsin.raise_epoch(expected_epoch bigint, new_holder text, pid integer, backend_start timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'tocsin', 'pg_temp'
AS $function$
declare
    taken bigint;
begin
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
    update tocsin.log_head h
    set epoch = h.epoch + 1, holder = new_holder, holder_pid = pid, holder_backend_start = backend_start,
        taken_at = tocsin.instant()
    where h.epoch = expected_epoch
    returning h.epoch into taken;
    return taken;
end
$function$
rights {owner=X/owner}

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
$function$
rights {owner=X/owner}

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
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
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
$function$
rights {owner=X/owner}

CREATE OR REPLACE FUNCTION tocsin.refuse_direct_write()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if (select r.rolsuper
               or (current_setting('search_path') = 'tocsin, pg_temp'
                   and r.oid = (select c.relowner from pg_class c where c.oid = tg_relid))
        from pg_roles r where r.rolname = current_user)
    then
        return null;
    end if;
    raise exception 'tocsin.% is written by functions of tocsin alone: append with tocsin.append', tg_table_name
        using errcode = 'insufficient_privilege';
end
$function$

CREATE OR REPLACE FUNCTION tocsin.report(action_id uuid, step integer, state text, result jsonb DEFAULT '{}'::jsonb, error text DEFAULT NULL::text, attempt integer DEFAULT NULL::integer)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
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
$function$

CREATE OR REPLACE FUNCTION tocsin.schedule_cancel(owner text, name text, who text DEFAULT CURRENT_USER, via text DEFAULT 'sql'::text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
    schedule_id uuid;
    before tocsin.schedule;
    done timestamptz;
    now timestamptz := tocsin.instant();
begin
    perform pg_advisory_xact_lock(
        hashtextextended('tocsin.schedule/' || schedule_cancel.owner || '/' || schedule_cancel.name, 0));
    select s.id into schedule_id from tocsin.schedule s
    where s.owner = schedule_cancel.owner and s.name = schedule_cancel.name;
    if not found then
        return false;
    end if;
    delete from tocsin.timer t
    where t.kind = 'schedule-tick' and t.ref = schedule_id::text and t.key = ''
    returning t.last_nominal_at into done;
    -- Read after the tick's lock, so that what a fire in progress did is seen.
    select s.* into before from tocsin.schedule s where s.id = schedule_id for update;
    if before.status not in ('active', 'paused') then
        return false;
    end if;
    update tocsin.schedule s
    set status = 'cancelled', generation = s.generation + 1, updated_at = now,
        last_occurrence = greatest(s.last_occurrence, done)
    where s.id = schedule_id;
    insert into tocsin.audit (at, who, via, verb, kind, owner, name, old, new)
    values (now, schedule_cancel.who, schedule_cancel.via, 'cancel', 'schedule', before.owner, before.name,
            jsonb_build_object('recurrence', before.recurrence, 'status', before.status,
                               'generation', before.generation),
            jsonb_build_object('recurrence', before.recurrence, 'status', 'cancelled',
                               'generation', before.generation + 1));
    return true;
end
$function$

CREATE OR REPLACE FUNCTION tocsin.schedule_cancel_all(owner text DEFAULT NULL::text, type text DEFAULT NULL::text, who text DEFAULT CURRENT_USER, via text DEFAULT 'sql'::text)
 RETURNS bigint
 LANGUAGE plpgsql
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
$function$

CREATE OR REPLACE FUNCTION tocsin.schedule_once(owner text, name text, at timestamp with time zone, payload jsonb DEFAULT '{}'::jsonb, type text DEFAULT 'schedule-fired'::text, action text DEFAULT NULL::text, created_by text DEFAULT CURRENT_USER, created_via text DEFAULT 'sql'::text)
 RETURNS TABLE(id uuid, status text, generation bigint, fire_at timestamp with time zone, deduped boolean)
 LANGUAGE plpgsql
AS $function$
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
$function$

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
$function$
rights {owner=X/owner}

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
$function$

CREATE TRIGGER guard BEFORE DELETE OR UPDATE OR TRUNCATE ON tocsin.action_step FOR EACH STATEMENT EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard_insert BEFORE INSERT ON tocsin.action_step FOR EACH STATEMENT WHEN ((current_setting('search_path'::text) <> 'tocsin, pg_temp'::text)) EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard BEFORE DELETE OR UPDATE OR TRUNCATE ON tocsin.datapoint_calculated FOR EACH STATEMENT EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard_insert BEFORE INSERT ON tocsin.datapoint_calculated FOR EACH STATEMENT WHEN ((current_setting('search_path'::text) <> 'tocsin, pg_temp'::text)) EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard BEFORE DELETE OR UPDATE OR TRUNCATE ON tocsin.event FOR EACH STATEMENT EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard_insert BEFORE INSERT ON tocsin.event FOR EACH STATEMENT WHEN ((current_setting('search_path'::text) <> 'tocsin, pg_temp'::text)) EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard BEFORE DELETE OR UPDATE OR TRUNCATE ON tocsin.log_commit FOR EACH STATEMENT EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard_insert BEFORE INSERT ON tocsin.log_commit FOR EACH STATEMENT WHEN ((current_setting('search_path'::text) <> 'tocsin, pg_temp'::text)) EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard BEFORE DELETE OR UPDATE OR TRUNCATE ON tocsin.log_gap FOR EACH STATEMENT EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard_insert BEFORE INSERT ON tocsin.log_gap FOR EACH STATEMENT WHEN ((current_setting('search_path'::text) <> 'tocsin, pg_temp'::text)) EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard BEFORE DELETE OR UPDATE OR TRUNCATE ON tocsin.log_head FOR EACH STATEMENT EXECUTE FUNCTION refuse_direct_write()

CREATE TRIGGER guard_insert BEFORE INSERT ON tocsin.log_head FOR EACH STATEMENT WHEN ((current_setting('search_path'::text) <> 'tocsin, pg_temp'::text)) EXECUTE FUNCTION refuse_direct_write()

policy readable on action_step for SELECT using true

policy readable on datapoint_calculated for SELECT using true

policy readable on event for SELECT using true

policy readable on log_commit for SELECT using true

policy readable on log_gap for SELECT using true

policy readable on log_head for SELECT using true
