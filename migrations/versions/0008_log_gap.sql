-- Holes of the record log that were accepted, what the publisher last found, and guards: only functions of ours write the log.

-- A hole that somebody knows about. The publisher passes it over; a hole that is not here stops it (docs/decisions/0007).
create table tocsin.log_gap (
    from_seq bigint not null check (from_seq > 0),
    until_seq bigint not null check (until_seq >= from_seq),
    reason text not null,
    who text not null,
    at timestamptz not null,
    constraint log_gap_apart exclude using gist (int8range(from_seq, until_seq, '[]') with &&)
        deferrable initially deferred
);

-- One row: what the leading publisher found when it last compared log and stream. `problem` holds from `since` until it
-- was found to be mended; one event tells of its beginning and one of its end.
create table tocsin.cdc_report (
    only_row boolean primary key default true check (only_row),
    at timestamptz,
    holder text,
    head bigint,
    first_seq bigint,
    last_seq bigint,
    lag_s double precision,
    compared integer,
    problem text,
    detail text,
    seq bigint,
    since timestamptz
) with (fillfactor = 50);
insert into tocsin.cdc_report default values;

-- One text is one token of a subject, as `schemas.wire.subjects.token` makes it: bytes outside [A-Za-z0-9_-] become %XX.
create function tocsin.token(value text) returns text
language sql immutable strict parallel safe
as $$
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
$$;

-- The tables that share the log's sequence, whatever later migrations add to them.
create function tocsin.log_tables() returns text[]
language sql stable
as $$
    select array_agg(c.relname::text order by c.relname)
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'seq' and not a.attisdropped
    where c.relnamespace = 'tocsin'::regnamespace and c.relkind = 'p'
$$;

-- Nobody but a superuser writes the log by hand. Functions of ours run as the owner, with a search path that no session
-- has: that tells them from an owner's own statement.
create function tocsin.refuse_direct_write() returns trigger
language plpgsql
as $$
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
$$;

-- Anybody with the right may read. Row security refuses an insert of anybody but the owner, whatever they were granted, and
-- costs the owner nothing; the trigger refuses the owner's own inserts without a call for those of tocsin.append.
create function tocsin.guard(log_table text) returns void
language plpgsql
as $$
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
$$;

-- As before, for all tables of the log, and guarded.
create or replace function tocsin.extend_log(ahead integer default 2) returns integer
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;

-- The part of a takeover that writes: `log_head` belongs to the log.
create function tocsin.raise_epoch(expected_epoch bigint, new_holder text, pid integer, backend_start timestamptz)
returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;

-- Runs as its caller, who may end sessions of his own role only.
create or replace function tocsin.take_over(expected_epoch bigint, new_holder text) returns bigint
language plpgsql volatile
as $$
begin
    perform pg_terminate_backend(a.pid, 1000)
    from tocsin.log_head h
    join pg_stat_activity a on a.pid = h.holder_pid and a.backend_start = h.holder_backend_start
    where h.epoch = expected_epoch and a.pid <> pg_backend_pid();
    return tocsin.raise_epoch(
        expected_epoch, new_holder, pg_backend_pid(),
        (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid()));
end
$$;

-- Move what the log has after a seq to `shift` later, in every table: those records were never published, because the
-- stream gave their sequences away. Returns how many. Called by tocsin.adopt alone, under the log's lock.
create function tocsin.move_records(after_seq bigint, shift bigint) returns bigint
language plpgsql volatile
set search_path = tocsin, pg_temp
as $$
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
    return moved;
end
$$;

-- Let the log go on behind a stream that has more than it: log and stream agree up to `agreed_until`, and the stream ends
-- at `stream_last`. What the stream has between them is a recorded hole of the log; what the log has there is moved
-- behind it. Returns how many records were moved.
create function tocsin.adopt(agreed_until bigint, stream_last bigint, reason text, who text) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;

-- Accept that records are gone: refuses a range in which one is left, or that the log has not reached.
create function tocsin.record_gap(first_missing bigint, last_missing bigint, reason text, who text) returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
$$;

-- The first hole after a seq: neither records nor a recorded gap, although the log has gone on. No row: there is none.
-- Walks the primary keys in order and ends at the first hole.
create function tocsin.first_hole(after_seq bigint) returns table (first_missing bigint, last_missing bigint)
language plpgsql stable
as $$
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
$$;

do $$
declare
    guarded text;
begin
    for guarded in
        select c.relname
        from pg_class c
        where c.relnamespace = 'tocsin'::regnamespace
          and (c.relname in ('log_head', 'log_commit', 'log_gap')
               or c.relname = any(tocsin.log_tables())
               or c.oid in (select i.inhrelid from pg_inherits i join pg_class p on p.oid = i.inhparent
                            where p.relnamespace = 'tocsin'::regnamespace and p.relname = any(tocsin.log_tables())
                              and p.relkind = 'p'))
        order by c.relname
    loop
        perform tocsin.guard(guarded);
    end loop;
end
$$;

revoke all on tocsin.log_gap from public;
revoke all on function tocsin.guard, tocsin.raise_epoch, tocsin.take_over, tocsin.extend_log, tocsin.move_records, tocsin.adopt,
    tocsin.record_gap from public;
