-- tocsin.adopt may move the event that announced an erasure.

create or replace function tocsin.move_records(after_seq bigint, shift bigint)
returns bigint
language plpgsql
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
    -- An erasure is of the records before its event. Its new seq may still be the old one of another erasure.
    create temporary table moving on commit drop as select * from tocsin.erasure where seq > after_seq;
    delete from tocsin.erasure where seq > after_seq;
    update moving set seq = seq + shift;
    insert into tocsin.erasure select * from moving;
    drop table moving;
    update tocsin.calc_position set rules_seq = rules_seq + shift where rules_seq > after_seq;
    -- A step that waits for an event began to wait at a record of its own transaction.
    update tocsin.action_wait w set after_seq = w.after_seq + shift where w.after_seq > move_records.after_seq;
    return moved;
end
$$;
