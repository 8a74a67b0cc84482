-- The publisher: what its audit found, and the functions that repair a log which differs from the
-- stream (docs/decisions/0006, 0007).

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
    remedy text,
    seq bigint,
    since timestamptz
) with (fillfactor = 50);
insert into tocsin.cdc_report default values;
comment on table tocsin.cdc_report is
    'One row: what the leading publisher found when it last compared log and stream. Written by '
    'the publisher, read by `tocsin doctor`. The start and the end of a problem are one event '
    'each.';
comment on column tocsin.cdc_report.at is 'Time of the last comparison.';
comment on column tocsin.cdc_report.holder is 'Publisher that made it.';
comment on column tocsin.cdc_report.head is 'Head of the record log.';
comment on column tocsin.cdc_report.first_seq is 'First sequence of the record stream.';
comment on column tocsin.cdc_report.last_seq is 'Last sequence of the record stream.';
comment on column tocsin.cdc_report.lag_s is
    'Age of the oldest record that is not published, in seconds.';
comment on column tocsin.cdc_report.compared is 'Number of records that were compared.';
comment on column tocsin.cdc_report.problem is 'Kind of problem; null if there is none.';
comment on column tocsin.cdc_report.detail is 'Message about the problem.';
comment on column tocsin.cdc_report.remedy is 'What an operator can do about it.';
comment on column tocsin.cdc_report.seq is 'Sequence at which the problem is.';
comment on column tocsin.cdc_report.since is 'Start of the problem.';

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
comment on function tocsin.first_hole is
    'First gap after a seq that is in neither the log tables nor tocsin.log_gap. Returns no row '
    'if there is none. Walks the primary keys in order and stops at the first gap.';

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
comment on function tocsin.record_gap is
    'Records a gap of the log as lost, so that the publisher passes it. Raises TS005 unless '
    'every seq from first_missing to last_missing is missing.';
revoke all on function tocsin.record_gap from public;

-- The stream has used the sequences of these records for others, so they were never published.
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
    -- A step that waits for an event began to wait at a record of its own transaction.
    update tocsin.action_wait w set after_seq = w.after_seq + shift where w.after_seq > move_records.after_seq;
    return moved;
end
$$;
comment on function tocsin.move_records is
    'Moves all records after a seq by shift, with everything that refers to their seq. Returns '
    'how many. Called by tocsin.adopt only, under the lock of the log.';
revoke all on function tocsin.move_records from public;

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
    -- Workers remove waits before they lock the log. Locking the table first lets them commit and
    -- avoids a deadlock.
    lock table tocsin.action_wait in share row exclusive mode;
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
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
$$;
comment on function tocsin.adopt is
    'Lets the log continue behind a stream that has more than the log: both agree up to '
    'agreed_until, and the stream ends at stream_last. Records the range between as a gap and '
    'moves the records of the log in it behind stream_last. Returns how many were moved.';
revoke all on function tocsin.adopt from public;

-- Versions, cutovers and waits stay: the records behind the loss were published with them in force.
create function tocsin.adopt_inside(first_seq bigint, last_seq bigint, reason text, who text) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
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
    perform pg_advisory_xact_lock(hashtext('tocsin.log'));
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
$$;
comment on function tocsin.adopt_inside is
    'Moves the records from first_seq to last_seq behind the head of the log and records a gap in '
    'their place: the stream gave their sequences to others, and agrees with the log again behind '
    'them. Returns by how much their seq rose. Raises TS005 unless the log has all of them.';
revoke all on function tocsin.adopt_inside from public;
