-- Retention: partitions are dropped whole. What must outlive them is copied first
-- (docs/decisions/0020).

create table tocsin.event_kept (
    like tocsin.event including defaults including comments,
    primary key (seq)
);
create index event_kept_of_rule on tocsin.event_kept (rule, seq);
create index event_kept_of_alarm on tocsin.event_kept (alarm_id) where alarm_id is not null;
comment on table tocsin.event_kept is
    'Events below the horizon that are among the newest of their rule. Not part of the record '
    'log: a rebuild of the stream begins at the horizon. Written by tocsin.raise_horizon.';

create table tocsin.datapoint_kept (
    owner text not null,
    key text not null,
    arrived_at timestamptz not null,
    ts timestamptz not null,
    value jsonb not null,
    labels jsonb,
    primary key (owner, key)
);
comment on table tocsin.datapoint_kept is
    'Last datapoint of each series before the oldest partition of tocsin.datapoint. A replay '
    'that begins there needs it to know which series were stale, and since when. Written by '
    'retention.';

create table tocsin.prune_report (
    only_row boolean primary key default true check (only_row),
    began_at timestamptz,
    ended_at timestamptz,
    removed jsonb not null default '{}',
    left_over jsonb not null default '[]'
) with (fillfactor = 50);
insert into tocsin.prune_report default values;
comment on table tocsin.prune_report is
    'One row: the last run of retention, or the one in progress. Written by the clock or `tocsin '
    'prune`, read by `tocsin doctor`.';
comment on column tocsin.prune_report.ended_at is
    'Null while the run is in progress, or if it was interrupted.';
comment on column tocsin.prune_report.removed is 'Number of removed rows, by table.';
comment on column tocsin.prune_report.left_over is 'What may be removed but could not be, and why.';

create function tocsin.raise_horizon(until_seq bigint, per_rule integer) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;
comment on function tocsin.raise_horizon is
    'Moves the horizon to until_seq: copies the newest per_rule events of each rule below it to '
    'tocsin.event_kept and removes kept events that newer ones replace. Returns how many were '
    'copied. Retention calls it before it drops partitions; a second call changes nothing.';
revoke all on function tocsin.raise_horizon from public;

create function tocsin.forget_commits(most integer) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;
comment on function tocsin.forget_commits is
    'Removes rows of tocsin.log_commit below the horizon, at most the given number. Returns how '
    'many.';
revoke all on function tocsin.forget_commits from public;
