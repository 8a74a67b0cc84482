-- Rules: the versions of every document, and where each lane began to use them.

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
-- An apply that only removes documents ends versions and begins none.
create index rule_version_until on tocsin.rule_version (until_seq);
comment on table tocsin.rule_version is
    'Every version of every document of the rule files. Written by an apply, in one transaction '
    '(docs/decisions/0005).';
comment on column tocsin.rule_version.kind is
    'Kind of document, such as schedule, event_rule or action.';
comment on column tocsin.rule_version.from_seq is
    'Seq of the rules-applied event of the apply that stored it. It is in force for later records.';
comment on column tocsin.rule_version.until_seq is
    'Last seq for which it is in force; null for the version in force now.';

create table tocsin.rule_cutover (
    lane text not null,
    partition integer not null,
    rules_seq bigint not null,
    seq bigint not null,
    watermark timestamptz,
    primary key (lane, partition, rules_seq)
);
comment on table tocsin.rule_cutover is
    'Cutovers: where each partition was when an apply committed. Later messages are evaluated '
    'with the rules of that apply. Written by the apply, which locks the partitions; read by '
    'replays.';
comment on column tocsin.rule_cutover.rules_seq is 'Seq of the rules-applied event of the apply.';
comment on column tocsin.rule_cutover.seq is 'Last sequence that the partition had read.';
comment on column tocsin.rule_cutover.watermark is
    'Watermark of the partition: everything that arrived up to this instant had been read.';
