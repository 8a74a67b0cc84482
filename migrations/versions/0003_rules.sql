-- Rules: every version of every document, and the actions they start.

-- The newest version of a document has no `until_seq`. A version holds for the events after `from_seq`, the seq
-- of the `rules-applied` event of its own transaction, and up to `until_seq`.
create table tocsin.rule_version (
    kind text not null,
    name text not null,
    version integer not null,
    document jsonb not null,
    from_seq bigint not null,
    until_seq bigint,
    primary key (kind, name, version)
);
create unique index rule_version_current on tocsin.rule_version (kind, name) where until_seq is null;
create index rule_version_from on tocsin.rule_version (from_seq);

-- One run of a response. The row is the current state; action_step is its history; both change in one transaction.
create table tocsin.action (
    id uuid primary key,
    name text not null,
    action_rule text not null,
    event_id uuid not null,
    event_seq bigint not null,
    document jsonb not null,
    owner text not null default '',
    state text not null check (state in ('running', 'completed', 'failed', 'cancelled')),
    step integer not null default 0,
    attempt integer not null default 1,
    started_at timestamptz not null,
    ended_at timestamptz,
    result jsonb,
    error text,
    correlation_id uuid not null,
    unique (action_rule, event_id)
);
create index action_newest on tocsin.action (started_at desc);
