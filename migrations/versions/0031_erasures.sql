-- Erasure of the data of one owner (docs/decisions/0033). Records keep their place, identity and instants, and
-- lose their contents. An erasure is an event of the log, so consumers of the stream see it as well.

create table tocsin.erasure (
    seq bigint primary key,
    owner text not null,
    arrived_until timestamptz not null,
    ended_at timestamptz,
    counts jsonb not null default '{}'
);
create index erasure_owner on tocsin.erasure (owner, seq);
comment on table tocsin.erasure is
    'Erasures of the data of owners. Written by tocsin.begin_erasure and tocsin.end_erasure, for `tocsin forget`.';
comment on column tocsin.erasure.seq is
    'The event owner-forgotten: records of the owner before it have no content any more.';
comment on column tocsin.erasure.arrived_until is 'Datapoints of the owner that arrived up to then are removed.';
comment on column tocsin.erasure.ended_at is 'Null: interrupted. `tocsin forget` continues it.';
comment on column tocsin.erasure.counts is 'How many rows and messages were redacted or removed, by table or stream.';
select tocsin.guard('erasure');

alter table tocsin.audit_seal add column erased_digest bytea;
comment on column tocsin.audit_seal.erased_digest is
    'Digest of the row without its contents, which an erasure removed. The chain keeps the digest of the original.';

create function tocsin.begin_erasure(seq bigint, arrived_until timestamptz) returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    insert into tocsin.erasure (seq, owner, arrived_until)
    select e.seq, e.owner, begin_erasure.arrived_until
    from tocsin.event e
    where e.seq = begin_erasure.seq and e.type = 'owner-forgotten';
    if not found then
        raise exception 'record % is not an event owner-forgotten', begin_erasure.seq using errcode = 'TS002';
    end if;
end
$$;
comment on function tocsin.begin_erasure is
    'Begins the erasure that an event owner-forgotten announces, in the transaction of the event.';

create function tocsin.erase_records(erasure_seq bigint, first bigint, last bigint) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;
comment on function tocsin.erase_records is
    'Removes the contents of records of a forgotten owner in a range of seqs, before its erasure. Returns how many '
    'had any. The digests of external events go too, because short contents can be found by trying.';

create function tocsin.erase_kept_events(erasure_seq bigint) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;
comment on function tocsin.erase_kept_events is
    'Removes the contents of the kept events of a forgotten owner. Returns how many had any.';

create function tocsin.erase_audit(erasure_seq bigint) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;
comment on function tocsin.erase_audit is
    'Removes old and new contents from the audit rows about a forgotten owner. Who did what and when stays, and '
    '`tocsin audit verify` still detects any other change. Returns how many had any.';

create function tocsin.end_erasure(seq bigint, counts jsonb) returns void
language sql volatile security definer
set search_path = tocsin, pg_temp
as $$
    update tocsin.erasure x set ended_at = tocsin.instant(), counts = end_erasure.counts
    where x.seq = end_erasure.seq;
$$;
comment on function tocsin.end_erasure is 'Notes that an erasure is complete.';

revoke all on tocsin.erasure from public;
revoke all on function tocsin.begin_erasure, tocsin.erase_records, tocsin.erase_kept_events, tocsin.erase_audit,
    tocsin.end_erasure from public;
