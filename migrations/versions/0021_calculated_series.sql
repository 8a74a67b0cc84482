-- Calculated series: results of calc_rules are calculated datapoints, and the position up to which
-- their windows were calculated.

create table tocsin.lock_calculation ();
revoke all on tocsin.lock_calculation from public;
comment on table tocsin.lock_calculation is
    'Lock for calculating windows, without rows. See tocsin.try_lock_calculation().';

create function tocsin.try_lock_calculation() returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_calculation in share row exclusive mode nowait;
    return true;
exception
    when lock_not_available then
        return false;
end
$$;
comment on function tocsin.try_lock_calculation is
    'Takes the lock for calculating windows until the transaction ends. False if another session has it.';
revoke all on function tocsin.try_lock_calculation() from public;

alter table tocsin.datapoint_calculated drop constraint datapoint_calculated_kind_check;
alter table tocsin.datapoint_calculated
    add constraint datapoint_calculated_kind_check check (kind in ('stale', 'fresh', 'health', 'calc'));
comment on table tocsin.datapoint_calculated is
    'Datapoints that Tocsin derives: a series became stale or fresh, the health of a system '
    'changed, or a calc_rule gave a value. Written by tocsin.append for the clock (stale) and the '
    'workers.';
comment on column tocsin.datapoint_calculated.kind is
    'Kind of calculated datapoint: stale, fresh, health or calc.';
-- calc_rules read the results of others.
create index datapoint_calculated_result
    on tocsin.datapoint_calculated (split_part(key, '{', 1), ts) where kind = 'calc';
-- calc_rules read the series of a key, with and without dimensions.
create index current_value_base_key on tocsin.current_value (split_part(key, '{', 1));

create table tocsin.calc_position (
    only_row boolean primary key default true check (only_row),
    until timestamptz,
    rules_seq bigint,
    rules_begin timestamptz
) with (fillfactor = 50);
insert into tocsin.calc_position default values;
comment on table tocsin.calc_position is
    'How far the windows of calc_rules were calculated: one row. Written by the worker that '
    'calculates, in the transaction of the results.';
comment on column tocsin.calc_position.until is 'End of the last window that was calculated; null before the first.';
comment on column tocsin.calc_position.rules_seq is
    'Seq of the rules-applied event of the apply whose documents calculated it.';
comment on column tocsin.calc_position.rules_begin is
    'Instant from which these documents calculate windows.';

-- The calculation refers to an apply by the seq of its event, which tocsin.adopt may move.
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
    update tocsin.calc_position set rules_seq = rules_seq + shift where rules_seq > after_seq;
    -- A step that waits for an event began to wait at a record of its own transaction.
    update tocsin.action_wait w set after_seq = w.after_seq + shift where w.after_seq > move_records.after_seq;
    return moved;
end
$$;
