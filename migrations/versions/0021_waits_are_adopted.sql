-- Records that move when a loss is adopted take the waits along that began at them: otherwise an event from before a wait would end it.

create or replace function tocsin.move_records(after_seq bigint, shift bigint) returns bigint
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
    -- A step that waits for an event began to wait at a record of its own transaction.
    update tocsin.action_wait w set after_seq = w.after_seq + shift where w.after_seq > move_records.after_seq;
    return moved;
end
$$;

create or replace function tocsin.adopt(agreed_until bigint, stream_last bigint, reason text, who text) returns bigint
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
$$;
