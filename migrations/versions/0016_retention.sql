-- Retention: partitions are dropped whole, the horizon is one number, and the newest events of each rule outlive their partition.

-- The first seq that the log still promises: raised before the partitions below it are dropped, so that whatever is left of them
-- after a crash is nobody's business.
alter table tocsin.log_head add column horizon bigint not null default 1;

create index event_of_rule on tocsin.event (rule, seq) where rule <> '';

-- Events that are kept because they are among the newest of their rule. Not part of the log: the stream has carried them, and a
-- rebuild begins at the horizon.
create table tocsin.event_kept (
    like tocsin.event including defaults,
    primary key (seq)
);
create index event_kept_of_rule on tocsin.event_kept (rule, seq);

-- Everything below `until_seq` is dropped from now on: keep the newest `per_rule` events of each rule, forget kept ones that are not
-- among them any more, and the commits. Returns how many events are kept of this range. Run before the partitions are dropped; run
-- again it does nothing more.
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

-- Forget commits below the horizon, at most `most` of them at once. Returns how many.
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
revoke all on function tocsin.raise_horizon, tocsin.forget_commits from public;
